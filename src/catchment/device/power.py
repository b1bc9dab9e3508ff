"""What a run costs in energy, by a model of a phone's sensors and radio.

This is a model, and no measurement: its parameters are those that make it give the figures of Sonora's Tables 3 and 4,
taken on an HTC phone of 2011, and are derived from them below. It serves to compare policies, not to predict batteries.

Sensors (Table 3): a phone that only reads one sensor every 5 s draws a base and that sensor's share. Three single
figures and the one of all three together (Fixed) give the base; the Adaptive figure is then predicted. A sensor that
is read more often than every 5 s is taken to stay on; one that is read more seldom costs the same per reading.

Radio (Table 4): idle it draws nothing beyond the base. A transfer raises it (ramp), takes as long as its bytes need
(active), and leaves it raised for a while (tail); all three draw the same. The three figures and the traffic give the
power, the throughput and the sum of ramp and tail. How that sum is divided changes no figure; it is divided so that the
tail is about the 12 s that 3G networks of the time had.

>>> meter = PowerMeter(now_us=0)
>>> meter.transfer(22_000, at_us=0); round(meter.used(60_000_000).radio_j, 1)
17.3
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

PERIOD_US = 5_000_000
"""How often the sensors of Table 3 were read."""
TABLE_3_W = {"accelerometer": 0.27, "gsm": 0.28, "battery": 0.19, "gps": 0.88, "fixed": 1.00, "adaptive": 0.70}
"""Watts while reading one sensor; accelerometer, battery and GPS together; the same adaptively, indoors half the
time."""
TABLE_4_W = {"none": 1.35, "batch": 0.50, "batch and zip": 0.45}
"""Watts while sending 1 KB/s for 30 minutes: each element at once, one transfer a minute, the same compressed."""
TABLE_4_BYTES = {"none": 2.087e6, "batch": 2.087e6, "batch and zip": 0.392e6}
MINUTES = 30


class Radio(NamedTuple):
    """A radio's parameters."""

    high_w: float
    """What it draws beyond the base while it is not idle."""
    bytes_per_s: float
    ramp_us: int
    tail_us: int


def _base_w() -> float:
    """Single figures each hold the base once; the figure of all three holds it once and not thrice."""
    table = TABLE_3_W
    return (table["accelerometer"] + table["battery"] + table["gps"] - table["fixed"]) / 2


def _radio() -> Radio:
    """What gives Table 4: sending every second the radio is never idle; once a minute it is raised for a while."""
    high_w = TABLE_4_W["none"] - BASE_W
    raised_s = {name: (TABLE_4_W[name] - BASE_W) * 60 / high_w for name in ("batch", "batch and zip")}
    minute_bytes = {name: TABLE_4_BYTES[name] / MINUTES for name in raised_s}
    bytes_per_s = (minute_bytes["batch"] - minute_bytes["batch and zip"]) / (
        raised_s["batch"] - raised_s["batch and zip"]
    )
    idle_cost_s = raised_s["batch"] - minute_bytes["batch"] / bytes_per_s
    tail_s = 12.0
    return Radio(high_w, bytes_per_s, round((idle_cost_s - tail_s) * 1e6), round(tail_s * 1e6))


BASE_W = _base_w()
"""What the phone draws anyway."""
SENSOR_W = {name: TABLE_3_W[name] - BASE_W for name in ("accelerometer", "gsm", "battery", "gps")} | {"none": 0.0}
"""What reading each sensor every 5 s adds."""
RADIO = _radio()


class Used(msgspec.Struct, frozen=True):
    """Joules since the meter began."""

    seconds: float
    base_j: float
    sensors_j: dict[str, float]
    ramp_j: float
    active_j: float
    tail_j: float

    @property
    def radio_j(self) -> float:
        """What the radio took."""
        return self.ramp_j + self.active_j + self.tail_j

    @property
    def total_j(self) -> float:
        """Everything."""
        return self.base_j + sum(self.sensors_j.values()) + self.radio_j

    @property
    def watts(self) -> float:
        """On average."""
        return self.total_j / self.seconds if self.seconds else 0.0


class PowerMeter:
    """Follows one run. Times are readings of the boot clock, and do not go back."""

    def __init__(self, *, now_us: int, radio: Radio = RADIO) -> None:
        self._begun_us = now_us
        self._radio = radio
        self._read_us: dict[str, int] = {}
        self._sensors_j: dict[str, float] = {}
        self._ramp_us = self._active_us = self._tail_us = 0
        self._active_until_us: int | None = None

    def read(self, kind: str, at_us: int) -> None:
        """A sensor of that kind was read."""
        last_us = self._read_us.get(kind)
        on_us = PERIOD_US if last_us is None else min(PERIOD_US, at_us - last_us)
        self._read_us[kind] = at_us
        self._sensors_j[kind] = self._sensors_j.get(kind, 0.0) + SENSOR_W.get(kind, 0.0) * on_us / 1e6

    def transfer(self, size: int, at_us: int) -> None:
        """So many bytes went over the radio, up or down, from that moment on."""
        takes_us = round(size / self._radio.bytes_per_s * 1e6)
        until_us = self._active_until_us
        if until_us is None or at_us >= until_us + self._radio.tail_us:
            self._settle(at_us)
            self._ramp_us += self._radio.ramp_us
            at_us += self._radio.ramp_us
        elif at_us > until_us:
            self._tail_us += at_us - until_us
        else:
            at_us = until_us
        self._active_us += takes_us
        self._active_until_us = at_us + takes_us

    def used(self, now_us: int) -> Used:
        """The account so far."""
        ramp_us, active_us, tail_us = self._ramp_us, self._active_us, self._tail_us
        if self._active_until_us is not None:
            tail_us += min(max(now_us - self._active_until_us, 0), self._radio.tail_us)
        watts = self._radio.high_w / 1e6
        seconds = (now_us - self._begun_us) / 1e6
        return Used(
            seconds, BASE_W * seconds, dict(self._sensors_j), ramp_us * watts, active_us * watts, tail_us * watts
        )

    def _settle(self, at_us: int) -> None:
        """The last transfer's tail has ended."""
        if self._active_until_us is not None:
            self._tail_us += min(at_us - self._active_until_us, self._radio.tail_us)
