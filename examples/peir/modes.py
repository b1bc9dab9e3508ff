"""Transport mode by a hidden Markov model, one step for each fix: still, walk, bike or motor.

The hidden state is the mode; what is observed is the speed from one fix to the next and, where the phone has an
accelerometer, how strongly it sways at the pace of steps. The forward filter is incremental: a belief of four numbers
is all that is remembered of a user. How likely each observation is in each mode are tables, which a plan carries as
parameters: `published()` makes them of the literature's speeds (see there), `train_modes.py` of labelled tracks.

Knows nothing of where it runs: the same class is on the phone and in the cloud, and gives the same there.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import catchment as cm
from readings import Evidence, Waypoint

MODES = ("still", "walk", "bike", "motor")
SPEED_EDGES_MPS = (0.3, 0.7, 1.1, 1.6, 2.2, 3.0, 4.0, 5.0, 6.5, 8.5, 11.0, 15.0, 22.0)
"""Speeds are told apart by these bounds: 14 bands."""
GAIT_EDGES_G = (0.03, 0.08, 0.16)
GAIT_FRESH = cm.seconds(15)
"""So long a reading of the gait speaks for the fixes after it."""
GAP = cm.minutes(5)
"""After a silence of that length nothing is carried over: what follows is another trip."""
STAYS_S = 600.0
"""How long a mode lasts on average: an assumption of ours, about a leg of a trip in a town."""
JUMPS = (
    (0.0, 0.6, 0.2, 0.2),
    (0.4, 0.0, 0.2, 0.4),
    (0.4, 0.58, 0.0, 0.02),
    (0.4, 0.58, 0.02, 0.0),
)
"""Where a mode leads when it ends. Between riding and driving people walk or stand: Zheng et al., UbiComp 2008."""
PRIOR = (0.25, 0.35, 0.15, 0.25)
GAIT = ((0.82, 0.13, 0.04, 0.01), (0.05, 0.15, 0.35, 0.45), (0.25, 0.45, 0.2, 0.1), (0.55, 0.33, 0.1, 0.02))
"""Of each mode, how often the sway falls into each band of `GAIT_EDGES_G`: assumptions of ours; the feature itself is
that of Reddy et al., ACM TOSN 6(2), 2010."""


class Belief(cm.State):
    """What is remembered of a user."""

    at: int | None = None
    lat_deg: float = 0.0
    lon_deg: float = 0.0
    belief: list[float] = []  # noqa: RUF012  a state's default is copied for each key
    gait_g: float = 0.0
    gait_at: int | None = None


class TransportMode(cm.Process[Evidence, Waypoint, Belief]):
    """From what speaks for a mode to way-points that have one.

    `speeds` and `gaits` say, of each mode, how likely each band is; each row adds up to one.
    """

    speeds: list[list[float]]
    gaits: list[list[float]]

    def on_element(self, element: Evidence, state: Belief, context: cm.Context) -> Iterable[Waypoint]:
        """A reading of the gait is remembered; a fix gives a way-point."""
        at = int(context.at)
        if element.gait_g is not None:
            state.gait_g, state.gait_at = element.gait_g, at
        if element.lat_deg is None or element.lon_deg is None:
            return ()
        if state.at is None or at - state.at > GAP:
            distance_m, took_s = 0.0, 0.0
            state.belief = list(PRIOR)
        else:
            distance_m = metres_between(state.lat_deg, state.lon_deg, element.lat_deg, element.lon_deg)
            took_s = (at - state.at) / 1e6
        if took_s > 0:
            likely = self._likelihood(distance_m / took_s, state, at)
            state.belief = filtered(state.belief, took_s, likely)
        state.at, state.lat_deg, state.lon_deg = at, element.lat_deg, element.lon_deg
        mode = MODES[max(range(len(MODES)), key=state.belief.__getitem__)]
        waypoint = Waypoint(
            user=element.user,
            at=element.at,
            lat_deg=element.lat_deg,
            lon_deg=element.lon_deg,
            mode=mode,
            distance_m=round(distance_m, 1),
            took_s=round(took_s, 1),
        )
        return (waypoint,)

    def _likelihood(self, speed_mps: float, state: Belief, at: int) -> list[float]:
        band = bisect_right(SPEED_EDGES_MPS, speed_mps)
        likely = [row[band] for row in self.speeds]
        if state.gait_at is not None and at - state.gait_at <= GAIT_FRESH:
            band = bisect_right(GAIT_EDGES_G, state.gait_g)
            likely = [one * row[band] for one, row in zip(likely, self.gaits, strict=True)]
        return likely


def filtered(belief: Sequence[float], took_s: float, likely: Sequence[float]) -> list[float]:
    """The belief after so long and one more observation: the step of a forward filter.

    >>> [round(part, 2) for part in filtered((0.0, 1.0, 0.0, 0.0), 60.0, (0.1, 0.1, 0.1, 0.7))]
    [0.03, 0.74, 0.02, 0.22]
    """
    stays = math.exp(-took_s / STAYS_S)
    moved = [
        stays * belief[mode] + (1 - stays) * sum(belief[other] * JUMPS[other][mode] for other in range(len(MODES)))
        for mode in range(len(MODES))
    ]
    joint = [before * like for before, like in zip(moved, likely, strict=True)]
    whole = sum(joint)
    return [part / whole for part in joint] if whole > 0 else moved


def metres_between(lat1_deg: float, lon1_deg: float, lat2_deg: float, lon2_deg: float) -> float:
    """Between places that are near each other, on a sphere: within 0.1 % up to 50 km."""
    middle = math.cos(math.radians((lat1_deg + lat2_deg) / 2))
    return 111_195.0 * math.hypot(lat2_deg - lat1_deg, (lon2_deg - lon1_deg) * middle)


# -- what is shipped: tables of published speeds ---------------------------------------------------------------------

WALK_MPS = (1.34, 0.26)
"""Mean and standard deviation of walking: Weidmann, Transporttechnik der Fussgänger, ETH Zürich, IVT 90, 1993."""
BIKE_MPS = (15.3 / 3.6, 1.5)
"""Mean of conventional bicycles: Schleinitz et al., Safety Science 92, 2017; the deviation is an assumption of ours."""
DRIVES = ((589.0, 0.265, 25.3), (433.0, 0.111, 44.5), (455.0, 0.068, 60.7), (323.0, 0.022, 94.0))
"""The four phases of the driving cycle WLTC, class 3: seconds, share of them standing, km/h of the others. From UNECE
GTR 15 and its technical report GRPE-68-03, made of in-use data of five regions."""
DRIVE_SPREAD = 0.45
"""Deviation within a phase as a share of its speed: an assumption of ours."""
STOPS = (1.0, 0.05, 0.10)
"""How much of still, walk and bike is standing: assumptions of ours."""
DRIFT_MPS = 0.35
"""How fast a fix that stands seems to move, on average: of fixes 10 m apart, as they are once filtered."""
NOISE_MPS = 0.35
"""What the noise of two fixes adds to a speed's deviation: 5 m in about 15 s."""


def published() -> list[list[float]]:
    """The speed table that the program ships with: no labelled tracks went into it."""
    standing = _bands(lambda speed: 1 - math.exp(-speed / DRIFT_MPS))
    walking, riding = (_normal(mean, math.hypot(deviation, NOISE_MPS)) for mean, deviation in (WALK_MPS, BIKE_MPS))
    whole_s = sum(seconds for seconds, _, _ in DRIVES)
    driving = [0.0] * (len(SPEED_EDGES_MPS) + 1)
    for seconds, stop, kmh in DRIVES:
        moving = _normal(kmh / 3.6, DRIVE_SPREAD * kmh / 3.6)
        driving = [
            sum(parts) for parts in zip(driving, _mixed(stop, standing, moving, weight=seconds / whole_s), strict=True)
        ]
    rows = [standing, _mixed(STOPS[1], standing, walking), _mixed(STOPS[2], standing, riding), driving]
    return [smoothed(row) for row in rows]


def smoothed(row: Sequence[float], floor: float = 0.004) -> list[float]:
    """With a little for every band: a fix may jump, and no single one may decide."""
    raised = [part + floor for part in row]
    return [round(part / sum(raised), 6) for part in raised]


def _bands(below: Callable[[float], float]) -> list[float]:
    cumulative = [0.0, *(below(edge) for edge in SPEED_EDGES_MPS), 1.0]
    return [high - low for low, high in pairwise(cumulative)]


def _normal(mean: float, deviation: float) -> list[float]:
    return _bands(lambda speed: 0.5 * (1 + math.erf((speed - mean) / (deviation * math.sqrt(2)))))


def _mixed(stop: float, standing: Sequence[float], moving: Sequence[float], weight: float = 1.0) -> list[float]:
    return [weight * (stop * s + (1 - stop) * m) for s, m in zip(standing, moving, strict=True)]
