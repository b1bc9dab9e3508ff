"""The definitions of the paper (section 2.5) as they stand there, by brute force; and histories to try them on.

A history is a pair (ideal, real) of mappings from stream to a list of elements (sequence, payload, instant). The
functions named after the paper's levels quantify over sets exactly as its formulas do, in quadratic time or worse.
Where a formula needs a repair, both forms are here.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TypeAlias

from hypothesis import strategies as st

from catchment.program.reliability import (
    BEST_EFFORT,
    CROSS_STREAM_ORDER,
    DELAY_FREE,
    IN_STREAM_ORDER,
    LOSSLESS,
    Reliability,
    limited_delay,
    limited_loss,
)
from catchment.program.types import Duration, Instant
from catchment.reliability import Element, Report, verify

E: TypeAlias = tuple[int, str, int]
Streams: TypeAlias = dict[str, list[E]]
History: TypeAlias = tuple[Streams, Streams]


def correct(ideal: list[E], real: list[E]) -> set[E]:
    """DSc: the elements of DSr for which there is exactly one dei in DSi with dei.ξ = dec.ξ and dei.pd = dec.pd."""
    return {(n, pd, t) for n, pd, t in set(real) if sum((i[0], i[1]) == (n, pd) for i in set(ideal)) == 1}


def incorrect(ideal: list[E], real: list[E]) -> set[E]:
    """DSf: the elements of DSr for which there is none."""
    return {(n, pd, t) for n, pd, t in set(real) if not any((i[0], i[1]) == (n, pd) for i in set(ideal))}


def without_time(elements: set[E]) -> set[tuple[int, str]]:
    """The repair of loss, which "does not put constraints on the global timestamp": elements by ξ and pd alone."""
    return {(n, pd) for n, pd, _ in elements}


def lilo(ideal: list[E], real: list[E], lf: float, ef: float) -> bool:
    """Limited loss, with factors read as the decimals that the author wrote."""
    due, right, wrong = set(ideal), correct(ideal, real), incorrect(ideal, real)
    assert set(real) == right | wrong
    count_right, count_wrong = len(without_time(right)), len(without_time(wrong))
    return len(due) >= count_right >= len(due) * Fraction(str(lf)) and count_wrong <= len(due) * Fraction(str(ef))


def lilo_as_written(ideal: list[E], real: list[E], lf: float, ef: float) -> bool:
    """Limited loss with |DSc| and |DSf| counting every instant at which the same element came."""
    due, right, wrong = set(ideal), correct(ideal, real), incorrect(ideal, real)
    return len(due) >= len(right) >= len(due) * Fraction(str(lf)) and len(wrong) <= len(due) * Fraction(str(ef))


def lide(ideal: list[E], real: list[E], within: int) -> bool:
    return all(
        sum((i[0], i[1]) == (n, pd) and i[2] <= t <= i[2] + within for i in set(ideal)) == 1
        for n, pd, t in correct(ideal, real)
    )


def iaso_as_written(ideal: list[E], real: list[E]) -> bool:
    """dec(ξ).τ ≤ dec(ξ+1).τ, which says nothing where ξ+1 is missing."""
    right = correct(ideal, real)
    return all(a[2] <= b[2] for a in right for b in right if b[0] == a[0] + 1)


def iaso(ideal: list[E], real: list[E]) -> bool:
    """The repair: any two correct elements, neighbours or not."""
    right = correct(ideal, real)
    return all(a[2] <= b[2] for a in right for b in right if a[0] < b[0])


def ieso_of_two(ideal1: list[E], real1: list[E], ideal2: list[E], real2: list[E]) -> bool:
    """The formula for DS1 and DS2, in this order."""
    right1, right2 = correct(ideal1, real1), correct(ideal2, real2)
    return all(
        (i1[2] <= i2[2] and c1[2] <= c2[2]) or (i1[2] > i2[2] and c1[2] > c2[2])
        for c1 in right1
        for c2 in right2
        for i1 in ideal1
        for i2 in ideal2
        if i1[:2] == c1[:2] and i2[:2] == c2[:2]
    )


def ieso(history: History, *, also_itself: bool = False) -> bool:
    """The formula for every ordered pair of streams, so that its outcome does not depend on how they are numbered."""
    ideal, real = history
    pairs = itertools.product(ideal, repeat=2) if also_itself else itertools.permutations(ideal, 2)
    return all(ieso_of_two(ideal[a], real[a], ideal[b], real[b]) for a, b in pairs)


def kept(level: Reliability, history: History) -> bool:
    """A declared level, by the definitions: for every output stream, and across them."""
    ideal, real = history
    streams = [(ideal[name], real[name]) for name in ideal]
    if level.loss is not None:
        factors = level.loss.loss_factor, level.loss.error_factor
        if not all(lilo(i, r, *factors) for i, r in streams):
            return False
    if level.delay is not None and not all(lide(i, r, level.delay.within_us) for i, r in streams):
        return False
    if level.order is not None and not all(iaso(i, r) for i, r in streams):
        return False
    return level.order != "cross-stream" or ieso(history)


def elements(streams: Streams) -> dict[str, list[Element]]:
    return {name: [Element(n, pd, Instant(t)) for n, pd, t in stream] for name, stream in streams.items()}


def compare(history: History) -> Report:
    return verify(elements(history[0]), elements(history[1]))


# Histories and levels -------------------------------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Small, with everything that goes wrong: loss, copies, delays and haste, disorder, ties, wrong elements."""
    ideal: Streams = {}
    real: Streams = {}
    delays = draw(st.sampled_from([[0], [2], [0, 0, 1], [0, 1, 2, 5], [-1, 0, 1]]))
    copies = draw(st.sampled_from([[1], [1, 1, 0], [1, 1, 2], [0, 1, 2]]))
    for name in draw(st.sampled_from(["a", "ab", "abc"])):
        size = draw(st.integers(0, 5))
        numbers = sorted(draw(st.sets(st.integers(0, 7), min_size=size, max_size=size)))
        instants = sorted(draw(st.lists(st.integers(0, 6), min_size=size, max_size=size)))
        ideal[name] = [(n, draw(st.sampled_from("xy")), t) for n, t in zip(numbers, instants, strict=True)]
        came = [
            (n, pd, t + draw(st.sampled_from(delays)))
            for n, pd, t in ideal[name]
            for _ in range(draw(st.sampled_from(copies)))
        ]
        wrong = draw(
            st.lists(st.tuples(st.integers(0, 8), st.sampled_from("xyz"), st.integers(0, 8)), max_size=2)
            if draw(st.booleans())
            else st.just([])
        )
        real[name] = draw(st.permutations(came + wrong))
    return ideal, real


ALL_LOSS = [
    BEST_EFFORT,
    LOSSLESS,
    limited_loss(0.5),
    limited_loss(0.5, 0.5),
    limited_loss(1, 0.5),
    limited_loss(0.3, 1),
]
ALL_DELAY = [BEST_EFFORT, DELAY_FREE, limited_delay(Duration(1)), limited_delay(Duration(2))]
ALL_ORDER = [BEST_EFFORT, IN_STREAM_ORDER, CROSS_STREAM_ORDER]
ALL_LEVELS = [a & b & c for a, b, c in itertools.product(ALL_LOSS, ALL_DELAY, ALL_ORDER)]


def small_world() -> list[History]:
    """Every history of a world with two streams of two elements, ties in and between them, and up to two wrong ones.

    Without the tie inside a stream, elements a step apart and at most a step late would be in order by chance.
    """
    ideal: Streams = {"a": [(0, "x", 1), (1, "x", 1)], "b": [(0, "x", 1), (1, "x", 3)]}
    due = [(name, *element) for name, stream in ideal.items() for element in stream]
    world: list[History] = []
    for shifts in itertools.product((None, -1, 0, 1, 2), repeat=4):
        for wrong in range(3):
            real: Streams = {"a": [(9, f"wrong {index}", 0) for index in range(wrong)], "b": []}
            for (name, n, pd, t), shift in zip(due, shifts, strict=True):
                if shift is not None:
                    real[name].append((n, pd, t + shift))
            world.append((ideal, real))
    return world


SMALL_WORLD = small_world()
