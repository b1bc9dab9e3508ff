"""Sensors by name, as a command line gives them: `NAME=KIND:ARGUMENT,option=value,…`.

    fixes=replay:track.gpx,speed=10         a recording, at ten times its pace (`speed=max`: as fast as it is taken)
    fixes=replay:t.csv,then=done            at its end, promise that nothing more is to come
    fixes=replay:t.csv,at=when,unit=s       its column `when` is the field `at`, in seconds
    load=machine                            this machine's figures
    meter=generate:seed=7,high=40           made-up values
    gps=python:vendor.gps:open_gps,port=/dev/ttyS0   a factory of your own
    accelerometer=none                  this device has none

NAME is the sensor's in the program. `every=5s` is the interval where the program names none. Knows how sensors are
made; must not know the process around them.

>>> parse("gps=replay:track.gpx,speed=10")
Spec(name='gps', kind='replay', argument='track.gpx', options={'speed': '10'})
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from catchment.device.sampling import Rate
from catchment.device.sensors.absent import Absent
from catchment.device.sensors.fitting import UNITS_US, Fitting
from catchment.device.sensors.polled import Polled
from catchment.device.sensors.sensor import Probe, Sensor
from catchment.errors import ProgramError
from catchment.program.sampling import Sampling
from catchment.program.types import Schema

SECOND_US = 1_000_000
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(us|ms|s|min|h)")
_SCALES_US = {"us": 1, "ms": 1_000, "s": SECOND_US, "min": 60 * SECOND_US, "h": 3600 * SECOND_US}


class Spec(msgspec.Struct, frozen=True):
    """A sensor as it was named. A field's own name as an option says under which name the sensor gives it."""

    name: str
    kind: str
    argument: str
    options: dict[str, str]


class Made(NamedTuple):
    """A sensor, how its readings become rows, and what it costs to read it."""

    sensor: Sensor
    fitting: Fitting
    power: str


@dataclass(frozen=True, slots=True)
class Surrounded:
    """What a sensor is made for: the device's names, the time, and whom to tell what was left out."""

    device: str
    user: str
    now_us: int
    tell: Callable[[str], None]


def parse(text: str) -> Spec:
    """A sensor as the command line names it."""
    name, equals, rest = text.partition("=")
    kind, _, arguments = rest.partition(":")
    if not (name and equals and kind in KINDS):
        raise _wrong(text, f"a sensor is NAME=KIND or NAME=KIND:ARGUMENT, and KIND is one of {', '.join(KINDS)}")
    argument, options = "", {}
    for index, word in enumerate(arguments.split(",")) if arguments else ():
        key, is_option, value = word.partition("=")
        if is_option:
            options[key] = value
        elif index == 0:
            argument = word
        else:
            raise _wrong(text, f"{word!r} is no option: options are key=value")
    return Spec(name, kind, argument, options)


def make(spec: Spec, schema: Schema, sampling: Sampling | None, around: Surrounded) -> Made:
    """The sensor of that name for a record."""
    options = dict(spec.options)
    try:
        every_us = duration_us(options.pop("every", "1s"))
        power = options.pop("power", _POWER.get(spec.kind, "none"))
        unit = options.pop("unit", "us")
        if unit not in UNITS_US:
            raise ValueError(f"unit={unit} is none of {', '.join(UNITS_US)}")
        columns = {key: options.pop(key) for key in list(options) if key in schema.names and key not in _OWN[spec.kind]}
        for key in [key for key in options if key.startswith("field.")]:
            columns[key.removeprefix("field.")] = options.pop(key)
        fitting = Fitting(schema, device=around.device, user=around.user, columns=columns, unit=unit)
        rate = Rate(sampling if sampling is not None else Sampling(every_us))
        sensor = KINDS[spec.kind](spec, options, fitting, rate, around)
        if options:
            raise ValueError(f"{next(iter(options))!r} is no option of {spec.kind}, and no field of {schema.name}")
    except ValueError as error:
        raise _wrong(f"{spec.name}={spec.kind}", str(error)) from None
    return Made(sensor, fitting, power)


def duration_us(text: str) -> int:
    """A duration such as `5s`, `250ms` or `1.5min`.

    >>> duration_us("250ms"), duration_us("1.5min")
    (250000, 90000000)
    """
    found = _DURATION.fullmatch(text)
    if found is None or not float(found[1]) > 0:
        raise ValueError(f"{text!r} is no length of time: write 5s, 250ms or 1.5min")
    return round(float(found[1]) * _SCALES_US[found[2]])


def duration_of(option: str, text: str) -> int:
    """The duration that an option of the command line says."""
    try:
        return duration_us(text)
    except ValueError as error:
        raise ProgramError("D628", f"{option} {text} says no time", why=str(error), fix=f"write {option} 30s") from None


def _replay(spec: Spec, options: dict[str, str], fitting: Fitting, rate: Rate, around: Surrounded) -> Sensor:
    from catchment.device.sensors.replay import Replay  # a parser of XML is a tenth of a device's start

    speed = options.pop("speed", "1")
    times = options.pop("times", "recorded")
    then = options.pop("then", "silence")
    if then not in ("silence", "done"):
        raise ValueError(f"then={then} is neither silence nor done")
    if times not in ("recorded", "live"):
        raise ValueError(f"times={times} is neither recorded nor live")
    if speed != "max" and not float(speed) > 0:
        raise ValueError(f"speed={speed} plays nothing: write a positive number, or max")
    return Replay(
        Path(spec.argument),
        fitting,
        rate,
        now_us=around.now_us,
        tell=around.tell,
        speed=0.0 if speed == "max" else float(speed),
        live=times == "live",
        sampled=_truth("sampled", options),
        closes=then == "done",
    )


def _machine(spec: Spec, options: dict[str, str], fitting: Fitting, rate: Rate, around: Surrounded) -> Sensor:
    from catchment.device.sensors.machine import Machine

    return Polled(Machine(fitting.schema), rate, now_us=around.now_us)


def _none(spec: Spec, options: dict[str, str], fitting: Fitting, rate: Rate, around: Surrounded) -> Sensor:
    return Absent()


def _generate(spec: Spec, options: dict[str, str], fitting: Fitting, rate: Rate, around: Surrounded) -> Sensor:
    from catchment.device.sensors.generate import Generator

    count = options.pop("count", None)
    probe = Generator(
        fitting.schema,
        seed=int(options.pop("seed", "0")),
        low=float(options.pop("low", "0")),
        high=float(options.pop("high", "1")),
        count=None if count is None else int(count),
    )
    return Polled(probe, rate, now_us=around.now_us)


def _python(spec: Spec, options: dict[str, str], fitting: Fitting, rate: Rate, around: Surrounded) -> Sensor:
    module, _, name = spec.argument.partition(":")
    try:
        factory: Callable[..., Probe] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ProgramError(
            "D624",
            f"the sensor {spec.name} cannot be made of {spec.argument}",
            why=str(error),
            fix="name an installed module and a function of it that returns an object with read(at_us)",
        ) from None
    given = dict(options)
    options.clear()
    return Polled(factory(fitting.schema, **given), rate, now_us=around.now_us)


def _truth(name: str, options: dict[str, str]) -> bool:
    word = options.pop(name, "false")
    if word not in ("true", "false"):
        raise ValueError(f"{name}={word} is neither true nor false")
    return word == "true"


def _wrong(text: str, why: str) -> ProgramError:
    return ProgramError(
        "D625",
        f"{text!r} is no sensor",
        why=why,
        fix="write --sensor fixes=replay:track.gpx or the like: see catchment device run --help",
    )


KINDS: dict[str, Callable[[Spec, dict[str, str], Fitting, Rate, Surrounded], Sensor]] = {
    "replay": _replay,
    "machine": _machine,
    "generate": _generate,
    "python": _python,
    "none": _none,
}
_POWER = {"machine": "battery"}
_OWN = {
    "replay": {"speed", "times", "sampled", "then"},
    "machine": set[str](),
    "generate": {"seed", "low", "high", "count"},
    "python": set[str](),
    "none": set[str](),
}
"""Options of each kind that are not taken for a field of the same name; `field.NAME=COLUMN` names that."""
