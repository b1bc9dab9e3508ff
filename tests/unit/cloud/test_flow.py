"""Admission against machines of all kinds: batches last as long as was aimed at, and the log is caught up with."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.cloud.flow import Admission, Cost, Flow, Pace, standing

MB = 1 << 20


@dataclass
class Machine:
    """A query on a virtual clock: a batch costs `fixed_s` and the rest by its bytes, give or take."""

    fixed_s: float
    bytes_per_s: float
    target_s: float = 1.0
    now_s: float = 0.0
    start: int = 0
    logged: float = 0.0
    lasted_s: list[float] = field(default_factory=list)
    behind: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.admission = Admission(Pace(self.target_s), clock_s=lambda: self.now_s)

    def run(self, arriving_per_s: float, seconds: float, noise: tuple[float, ...] = (1.0,)) -> None:
        until_s, number = self.now_s + seconds, 0
        while self.now_s < until_s:
            begun_s = self.now_s
            limit = self.admission.asked({"0": self.start})
            end = min(int(self.logged), self.start + limit)
            self.admission.gave({"0": self.start}, {"0": end}, {"0": int(self.logged)})
            if end > self.start:
                number += 1
                lasted_s = (self.fixed_s + (end - self.start) / self.bytes_per_s) * noise[number % len(noise)]
                self.lasted_s.append(lasted_s)
                self.now_s += lasted_s
            else:
                self.now_s += 1.0
            self.start = end
            self.logged += arriving_per_s * (self.now_s - begun_s)
            self.behind.append(int(self.logged) - self.start)


def test_input_that_triples_waits_in_the_log_and_batches_stay_as_long_as_was_aimed_at() -> None:
    machine = Machine(fixed_s=0.1, bytes_per_s=10 * MB)
    machine.run(4 * MB, 60)
    assert max(machine.behind[-20:]) < 4 * MB, "calm: nothing waits longer than a batch"
    calm = len(machine.lasted_s)
    machine.run(12 * MB, 120)
    assert machine.behind[-1] > 100 * MB, "what is more than the machine computes waits"
    assert all(0.5 < lasted_s < 1.5 for lasted_s in machine.lasted_s[calm + 10 :])
    machine.run(4 * MB, 120)
    assert machine.behind[-1] < 4 * MB, "and is caught up with"


def test_a_machine_that_is_slow_whatever_it_gets_is_not_starved() -> None:
    machine = Machine(fixed_s=3.0, bytes_per_s=10 * MB)
    machine.run(2 * MB, 60)
    machine.run(6 * MB, 600)
    assert machine.behind[-1] < 6 * 30 * MB, "cutting batches ever shorter would leave the log behind for good"


@settings(max_examples=40)
@given(
    fixed_s=st.floats(0.1, 5.0),
    rate_mb=st.floats(0.5, 200),
    share=st.floats(0.05, 0.6),
    noise=st.lists(st.floats(0.5, 2.0), min_size=1, max_size=7),
)
def test_whatever_the_machine_its_log_is_caught_up_with(
    fixed_s: float, rate_mb: float, share: float, noise: list[float]
) -> None:
    machine = Machine(fixed_s, rate_mb * MB)
    mean = sum(noise) / len(noise)
    # What the largest batches that are allowed can sustain.
    most = 64 * MB / ((fixed_s + 64 / rate_mb) * mean)
    machine.run(most * share * 0.5, 100, tuple(noise))
    machine.run(most * 3, 60, tuple(noise))
    machine.run(most * share * 0.5, 1500, tuple(noise))
    assert machine.behind[-1] <= most * share * 0.5 * 20 * (fixed_s + 1) * max(noise)


@given(
    st.lists(
        st.tuples(st.integers(1, 1 << 40), st.floats(0, 1e4, allow_nan=False), st.booleans()), min_size=1, max_size=40
    )
)
def test_the_bound_stays_within_its_own_whatever_is_measured(batches: list[tuple[int, float, bool]]) -> None:
    pace = Pace(1.0)
    flow = Flow(pace)
    for taken, lasted_s, left in batches:
        flow = flow.after(taken, lasted_s, left=left)
        assert pace.least_bytes <= flow.limit_bytes <= pace.most_bytes


def test_the_first_batch_of_a_query_and_a_batch_that_was_not_the_one_given_teach_nothing() -> None:
    now = [0.0]
    admission = Admission(Pace(1.0), clock_s=lambda: now[0])
    first = admission.asked({"0": 0})
    admission.gave({"0": 0}, {"0": first}, {"0": 100 * MB})
    now[0] = 30.0
    assert admission.asked({"0": first}) == first, "classes were loaded and workers started"
    admission.gave({"0": first}, {"0": 2 * first}, {"0": 100 * MB})
    now[0] = 60.0
    assert admission.asked({"0": 7}) == first
    assert admission.flow.cost == Cost()


@pytest.mark.parametrize(
    "source",
    [
        {"startOffset": None, "endOffset": None, "latestOffset": None},
        {"startOffset": 3, "endOffset": 4, "latestOffset": 5},
        {"startOffset": {"0": "x"}, "endOffset": {"0": "y"}, "latestOffset": {"0": "z"}},
    ],
)
def test_offsets_of_other_sources_say_nothing(source: dict[str, object]) -> None:
    assert standing({"durationMs": {}, "sources": [source]}) is None
