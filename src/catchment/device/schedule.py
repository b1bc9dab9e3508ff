"""The sensors of a plan: each source step with the sensor that feeds it, taken when they are due.

Promises: readings of one sensor come in order; one that fails or does not fit is told, and the others go on. Knows
sensors and the plan's source steps. Must not know engines, outboxes or clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from catchment.device.sampling import Rate
from catchment.device.sensors.fitting import Fitting, Unfit
from catchment.device.sensors.named import Made, Spec, Surrounded, make
from catchment.device.sensors.polled import Polled
from catchment.device.sensors.sensor import Values
from catchment.device.surroundings import Surroundings
from catchment.errors import CatchmentError, ProgramError
from catchment.program import steps
from catchment.program.sampling import Sampling
from catchment.program.types import Row


class Reading(NamedTuple):
    """A row to enter at a step, and its own moment where the sensor brought one."""

    step: str
    at_us: int | None
    row: Callable[[int], Row]
    """The row, once its moment is known; raises `Unfit`."""
    power: str


@runtime_checkable
class Hurried(Protocol):
    """A sensor that can give at once what it would give over some time."""

    def hurry(self, by_us: int) -> None:
        """So much of it."""
        ...


class _Beat:
    """What a timer reads: nothing but the moment."""

    def read(self, at_us: int) -> Values:
        return {}


class Schedule:
    """See the module. `tell` is told what went wrong: an event's name, and its fields."""

    def __init__(
        self,
        sources: Mapping[str, steps.Step],
        specs: Iterable[Spec],
        around: Surrounded,
        tell: Callable[[str, str, str], None],
    ) -> None:
        self.is_adaptive = any(
            isinstance(s, steps.Sensor) and s.sampling and s.sampling.rules for s in sources.values()
        )
        """Whether some interval depends on what is around."""
        named = {spec.name: spec for spec in specs}
        self._tell = tell
        self._sensors: dict[str, Made] = {}
        self._used: set[str] = set()
        for step, source in sources.items():
            made = self._make(step, source, named, around)
            if made is not None:
                self._sensors[step] = made
        stray = next((name for name in named if name not in self._used), None)
        if stray is not None:
            raise ProgramError(
                "D626",
                f"the plan has no sensor {stray!r}",
                why=f"its sensors on a device are: {', '.join(sorted(map(_name, sources.values()))) or 'none'}",
                fix="name one of them in --sensor NAME=…, or leave it out",
            )

    def _make(self, step: str, source: steps.Step, named: Mapping[str, Spec], around: Surrounded) -> Made | None:
        match source:
            case steps.Timer():
                rate = Rate(Sampling(source.every))
                fitting = Fitting(source.record, device=around.device, user=around.user)
                return Made(Polled(_Beat(), rate, now_us=around.now_us), fitting, "none")
            case steps.Sensor() | steps.Append():
                name = _name(source)
                spec = named.get(name)
                if spec is not None:
                    self._used.add(name)
                    sampling = source.sampling if isinstance(source, steps.Sensor) else None
                    return make(spec, source.record, sampling, around)
                if isinstance(source, steps.Append):
                    return None  # a program outside appends, or nobody does
                raise ProgramError(
                    "D627",
                    f"nothing reads the sensor {name!r}",
                    why=f"{step} draws from it, and no --sensor names it",
                    fix=f"add --sensor {name}=replay:FILE, machine, generate or python:module:factory",
                )
            case _:
                return None

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps that have a sensor."""
        return tuple(self._sensors)

    def recorded(self, step: str) -> bool:
        """Whether its readings bring their own moments."""
        return self._sensors[step].sensor.recorded

    def is_patient(self, step: str) -> bool:
        """Whether the sensor can wait for room without losing anything."""
        return bool(getattr(self._sensors[step].sensor, "is_patient", False))

    def ended(self, step: str) -> bool:
        """Whether nothing more comes from it."""
        return self._sensors[step].sensor.ended

    def is_over(self, step: str) -> bool:
        """Whether nothing more comes from it, and it may promise so."""
        sensor = self._sensors[step].sensor
        return sensor.ended and bool(getattr(sensor, "closes", False))

    def played_us(self, step: str, now_us: int) -> int | None:
        """Of a recording that is played: nothing older than that is to come."""
        played: Callable[[int], int | None] | None = getattr(self._sensors[step].sensor, "played_us", None)
        return None if played is None else played(now_us)

    def hurry(self, by_us: int) -> None:
        """Have recordings that are played at a pace give so much of themselves at once."""
        for made in self._sensors.values():
            if isinstance(made.sensor, Hurried):
                made.sensor.hurry(by_us)

    def due_us(self, around: Surroundings, room: Mapping[str, int] = {}) -> int | None:
        """When the next reading is due; of the steps without `room`, none is."""
        times = [made.sensor.due_us(around) for step, made in self._sensors.items() if room.get(step, 1) > 0]
        return min([at_us for at_us in times if at_us is not None], default=None)

    def take(
        self,
        now_us: int,
        around: Surroundings,
        limit: int,
        room: Mapping[str, int] = {},
    ) -> list[Reading]:
        """What is due, of all sensors; of those in `room`, at most so many."""
        taken: list[Reading] = []
        for step, made in self._sensors.items():
            many = min(limit - len(taken), room.get(step, limit))
            if many <= 0:
                continue
            try:
                found = made.sensor.take(now_us, around, many)
            except CatchmentError:
                raise
            except Exception as error:
                # A sensor is somebody else's code and somebody else's wire: the device goes on without this reading.
                self._tell("sensor failed", step, f"{type(error).__name__}: {error}")
                continue
            for reading in found:
                taken.append(Reading(step, reading.at_us, _row(made.fitting, reading.values), made.power))
        return taken

    def left_out(self, step: str, error: Unfit) -> None:
        """A reading did not become a row."""
        self._tell("reading left out", step, str(error))

    def positions(self) -> dict[str, bytes]:
        """Where every sensor stands."""
        return {step: made.sensor.position() for step, made in self._sensors.items()}

    def resume(self, positions: Mapping[str, bytes], now_us: int) -> None:
        """Go on from there; a sensor that is new begins."""
        for step, made in self._sensors.items():
            if step in positions:
                made.sensor.resume(positions[step], now_us)


def _row(fitting: Fitting, values: Values) -> Callable[[int], Row]:
    return lambda at_us: fitting.row(values, at_us)


def _name(source: steps.Step) -> str:
    match source:
        case steps.Sensor(_, name):
            return name
        case steps.Append(record):
            return record.name
        case _:
            return type(source).__name__.lower()
