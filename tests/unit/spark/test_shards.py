"""A bucket whose state lies in shards gives what the reference gives, and reads and writes what a batch touches."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import catchment as cm
from catchment.engines.edge import EdgeEngine
from catchment.engines.reference import evaluate
from catchment.engines.spark.events import FORGET, Arrived
from catchment.engines.spark.state import shape
from catchment.engines.spark.state.shards import BOOK, Book
from catchment.errors import ProgramError
from catchment.plan.graph import Graph, graph_of
from catchment.plan.history import Element, Entry, Outcome, Presence, Progress, Source, Tick
from catchment.testing import alone
from tests.unit.edge.generated import graph
from tests.unit.edge.generated_history import close, differences, history
from tests.unit.edge.generated_records import Busy, Fix, Span, Total, added
from tests.unit.spark.bucketed import STEP, USERS, Bucket, filled, fix, promise, users
from tests.unit.spark.vector_processes import Timely
from tests.unit.spark.vector_programs import pair_graph, vector_graph


def kept_in_shards(seed: int, *graphs: Callable[[random.Random], Graph]) -> tuple[bool, list[str]]:
    """Whether a random program's state is in shards, and in what it differs from the reference."""
    draw = random.Random(seed)
    drawn = draw.choice(graphs)(draw)
    entries = [
        entry
        for entry in history(draw, drawn, draw.choice((20, 60, 150)))
        # Collapsed sources are what steps give; the log has devices, and here each has an owner: what a step promises
        # of those without one it promises of everyone, also in other buckets.
        if isinstance(entry, Tick) or (entry.source.device and entry.source.owner)
    ]
    bucket = Bucket(drawn, draw.choice((1, 2, 32)))
    batch: list[Entry] = []
    for entry in entries:
        batch.append(entry)
        if draw.random() < 0.2:
            bucket.take(batch)
            batch = []
    bucket.take(batch)
    expected = evaluate(drawn, tuple(entries))
    expected = Outcome(expected.results, tuple(sorted(expected.failures, key=repr)))
    return bucket.is_sharded, differences(expected, bucket.outcome(), expected.results)


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 10**9))
@example(22)
@example(1135)
@example(3392)
@example(4723)
def test_generated(seed: int) -> None:
    try:
        _, found = kept_in_shards(seed, vector_graph, graph)
    except ProgramError as error:
        assert error.code == "C330"  # a step without key behind one with a key
    else:
        assert found == []


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 10**9))
def test_generated_of_two_inputs(seed: int) -> None:
    try:
        _, found = kept_in_shards(seed, pair_graph)
    except ProgramError as error:
        assert error.code == "C330"  # the same, or a stream that goes by two keys
    else:
        assert found == []


@pytest.mark.parametrize("graph_of_steps", [vector_graph, pair_graph])
def test_most_programs_keep_their_state_in_shards(graph_of_steps: Callable[[random.Random], Graph]) -> None:
    """Were it one piece, the test above would hold all the same."""
    sharded = []
    for seed in range(60):
        with contextlib.suppress(ProgramError):
            sharded.append(Bucket(graph_of_steps(random.Random(seed))).is_sharded)
    assert sum(sharded) > len(sharded) / 2


def stays(ttl: int | None = None, kind: Any = Timely) -> Graph:
    """A process per user."""
    return graph_of(
        alone(
            lambda left, right: left.key_by(Fix.user).process(kind(gap=20), ttl=ttl and cm.microseconds(ttl)),
            left=Fix,
            right=Fix,
        )
    )


def test_a_batch_touches_the_shards_of_its_own_keys_only() -> None:
    bucket = filled(stays())
    bucket.take([fix("user-7", 30, 3)])
    assert len(bucket.store.read) == len(bucket.store.written) == 2
    assert BOOK in bucket.store.read


def test_a_tick_touches_what_is_due_by_it_and_nothing_else() -> None:
    bucket = filled(stays())
    bucket.take([fix("user-7", 30, 0), promise("user-7", 31)])  # sets a timer for 50
    bucket.take([Tick(40)])
    assert bucket.store.read == {BOOK}
    bucket.take([Presence(Source("user-7", "user-7"), 45), Tick(100)])
    assert bucket.store.read > {BOOK}


def test_state_grows_with_live_keys_and_not_with_time() -> None:
    bucket = Bucket(stays(ttl=50), keys_of_a_shard=4)
    sizes = []
    for at in range(0, 4000, 100):
        bucket.take([entry for user in USERS[:20] for entry in (fix(user, at, 3), promise(user, at + 10))])
        sizes.append(sum(map(len, bucket.store.kept.values())))
    assert max(sizes[10:]) <= 1.1 * max(sizes[3:10])
    full = sizes[-1]
    bucket.take([promise(user, 10_000) for user in USERS[:20]])
    assert sum(map(len, bucket.store.kept.values())) < full


def test_what_is_forgotten_leaves_no_trace() -> None:
    bucket = filled(stays())
    bucket.running.take(Arrived(1, said=[(0, FORGET, "user-199", "user-199", True)]), {"0": 2}, bucket.store)
    assert not any(b"user-199" in state for state in bucket.store.kept.values())
    assert bucket.running.look_up(bucket.store, ("user-199",)) == {"alone/processed": []}
    assert any(b"user-198" in state for state in bucket.store.kept.values())


STEPS: dict[str, Any] = {
    "changes": lambda a, b: a.changes(Fix.tag),
    "moved": lambda a, b: a.moved(by=1.0, lat_deg=Fix.raw, lon_deg=Fix.raw),
    "fold": lambda a, b: a.fold(added, Total(at=cm.Instant(0), n=1)),
    "sessions": lambda a, b: a.window(cm.session(gap=5)).agg(n=cm.collect(Fix.user)),
    "counts": lambda a, b: a.window(cm.count_window(3)).agg(n=cm.collect(Fix.user)),
    "kept windows": lambda a, b: a.window(cm.tumble(5, keep=50)).agg(n=cm.count()),
    "texts": lambda a, b: a.window(cm.hop(20, 10)).agg(n=cm.collect(Fix.user)),
    "largest": lambda a, b: a.window(cm.hop(20, 10)).top(2, by=Fix.user),
    "an author's": lambda a, b: a.window(cm.hop(20, 10)).agg(n=Span()(Fix.place)),
    "running": lambda a, b: a.state(n=cm.collect(Fix.user)),
    "running, and more": lambda a, b: a.state(n=cm.count()).changes(),
    "zip": lambda a, b: a.zip(b, at=Fix.at, n=Fix.place),
    "combine": lambda a, b: a.combine(b, at=Fix.at, n=Fix.place),
    "latest": lambda a, b: a.join_latest(b, at=Fix.at, n=Fix.place),
    "interval": lambda a, b: a.join(b, within=(cm.microseconds(9), cm.microseconds(9)), at=Fix.at, n=Fix.place),
    "window join": lambda a, b: a.join(b, within=cm.tumble(5), at=Fix.at, n=Fix.place),
    "windows in columns": lambda a, b: a.window(cm.hop(20, 10)).agg(n=cm.count()),
    "sessions in columns": lambda a, b: a.window(cm.session(gap=5)).agg(n=cm.count(), most=cm.max(Fix.place)),
    "counts in columns": lambda a, b: a.window(cm.count_window(4, 2)).agg(n=cm.sum(Fix.place)),
}
"""Steps that keep the state of a key in its shard."""
IN_ONE_PIECE: dict[str, Any] = {
    "by arrival": lambda a, b: a.process(Timely(gap=20), order="arrival"),
    "clocks": lambda a, b: a.process(Busy(gap=20), order="arrival"),
}
IN_COLUMNS = {"kept windows", "running, and more", *(step for step in STEPS if step.endswith("in columns"))}
"""Steps that cannot go on from what an operator of devices remembered."""


@pytest.mark.parametrize("step", STEPS | IN_ONE_PIECE)
def test_who_is_forgotten_leaves_no_trace_in_any_step(step: str) -> None:
    bucket = Bucket(users((STEPS | IN_ONE_PIECE)[step]))
    assert bucket.is_sharded == (step in STEPS)
    people = ("ada", "bob")
    bucket.take([each for user in people for each in (fix(user, 3), promise(user, 4), fix(user, 5), fix(user, 6, 2))])
    bucket.running.take(Arrived(1, said=[(0, FORGET, "ada", "ada", True)]), {"0": 2}, bucket.store)
    kept = b"".join(bucket.store.kept.values())
    assert b"ada" not in kept
    assert b"bob" in kept
    bucket.take([each for user in people for each in (fix(user, 13), promise(user, 20))])


@pytest.mark.parametrize("step", STEPS)
def test_a_batch_of_one_key_touches_its_shard_only(step: str) -> None:
    bucket = filled(users(STEPS[step]))
    state = sum(map(len, bucket.store.kept.values()))
    bucket.take([fix("user-7", 30, 3), promise("user-7", 31)])
    assert len(bucket.store.read) == 2
    touched = sum(len(bucket.store.kept[number]) for number in bucket.store.written if number != BOOK)
    assert touched < state / 10


@pytest.mark.parametrize("step", STEPS)
def test_what_a_step_remembers_of_a_key_can_be_looked_up(step: str) -> None:
    bucket = Bucket(users(STEPS[step]))
    bucket.take([each for user in ("ada", "bob") for each in (fix(user, 3, 1), promise(user, 4), fix(user, 5, 2))])
    found = bucket.running.look_up(bucket.store, ("ada",))
    assert [key for entries in found.values() for key, _ in entries] == [("ada",)] * (step.count("and") + 1)
    msgspec.json.encode(found)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("seed", range(5))
def test_state_that_was_kept_event_by_event_is_gone_on_from_or_refused(step: str, seed: int) -> None:
    """From a book that holds what an engine of devices remembered, as each of these steps was once kept."""
    drawn, draw = users(STEPS[step]), random.Random(seed)
    entries = [each for each in history(draw, drawn, 160) if isinstance(each, Tick) or each.source.owner]
    entries = [each for each in entries if isinstance(each, Tick) or each.source.device]
    entries = [each for each in entries if not isinstance(each, Element | Progress) or each.step == STEP]
    half = len(entries) // 2
    bucket = Bucket(drawn)
    by_event = EdgeEngine(bucket.stages.rest)
    doors = [door for (origin, _), door in bucket.stages.entrances.items() if origin == STEP]
    for entry in entries[:half]:
        match entry:
            case Element(_, at, source, row):
                for door in doors:
                    by_event.element(door, at, source, row)
            case Progress(_, source, at):
                for door in doors:
                    by_event.progress(door, source, at)
            case Presence(source, since):
                by_event.presence(source, since)
            case Tick(now):
                by_event.tick(now)
    shared = {"format": 1, "vectors": {}, "edge": by_event.snapshot()}
    book = Book(shared=shared, is_sharded=False, shapes=shape.shapes(bucket.stages.rest))
    bucket.store.put(BOOK, msgspec.msgpack.encode(book))
    if step in IN_COLUMNS:
        with pytest.raises(ProgramError, match="C333"):
            bucket.take(entries[half:])
        return
    bucket.take(entries[half:])
    before, after = evaluate(drawn, tuple(entries[:half])), evaluate(drawn, tuple(entries))
    for port, found in bucket.outcome().results.items():
        expected = after.results[port][len(before.results[port]) :]
        assert close(tuple(each.row for each in found), tuple(each.row for each in expected))


def test_the_state_of_a_key_can_be_looked_up() -> None:
    bucket = Bucket(stays())
    bucket.take([fix("ada", 3, 0), fix("bob", 4, 3), promise("ada", 5), promise("bob", 5)])
    ((key, found),) = bucket.running.look_up(bucket.store, ("ada",))["alone/processed"]
    assert key == ("ada",)
    assert found == {"state": {"count": 1, "tags": []}, "latest": 3, "timers": {"a": 23}}


class More(cm.State):
    count: int = 0
    longest: float = 1.5


class Other(cm.State):
    count: str = ""


class Counting(cm.Process[Fix, Total, More]):
    gap: int

    def on_element(self, element: Fix, state: More, context: cm.Context) -> list[Total]:
        state.count += 1
        return [Total(at=element.at, n=round(state.count * state.longest * 2))]


class Texting(cm.Process[Fix, Total, Other]):
    gap: int

    def on_element(self, element: Fix, state: Other, context: cm.Context) -> list[Total]:
        return []


def test_a_changed_process_goes_on_from_its_state_where_that_only_gained_or_lost_fields() -> None:
    before, after = Bucket(stays()), Bucket(stays(kind=Counting))
    before.take([fix("ada", 3, 3), promise("ada", 5)])
    after.store = before.store
    after.take([fix("ada", 6, 3), promise("ada", 7)])
    (result,) = after.outcome().results["alone/processed", 0]
    assert result.row == (6, 6)
    other = Bucket(stays(kind=Texting))
    other.store = before.store
    with pytest.raises(ProgramError, match="C333") as refused:
        other.take([fix("ada", 8)])
    assert refused.value.why == "alone/processed kept count as int, and now as str"
    gone = Bucket(graph_of(alone(lambda left, right: left.key_by(Fix.user).state(n=cm.count()), left=Fix, right=Fix)))
    gone.store = before.store
    gone.take([fix("ada", 8), promise("ada", 9)])
    (result,) = gone.outcome().results["alone/running", 0]
    assert result.row == ("ada", 8, 1)


class Counted(cm.Record):
    """A count so far."""

    user: cm.Field[str | None] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    n: cm.Field[int]


class Idle(cm.Process[Counted, Total, More]):
    """Gives nothing, and keeps nothing."""

    def on_element(self, element: Counted, state: More, context: cm.Context) -> None:
        context.forget()


def test_state_moves_between_one_piece_and_shards_when_a_program_changes() -> None:
    """With a step behind it that takes elements as they arrive, keys are no longer apart."""

    def step(left: Any, right: Any) -> Any:
        return left.key_by(Fix.user).state(n=cm.count())

    def more(left: Any, right: Any) -> Any:
        return step(left, right).select(Counted).key_by(Counted.user).process(Idle(), order="arrival")

    alone_, together = (graph_of(alone(made, left=Fix, right=Fix)) for made in (step, more))
    first, second, third = Bucket(alone_), Bucket(together), Bucket(alone_)
    assert (first.is_sharded, second.is_sharded) == (True, False)
    second.store = third.store = first.store
    counts = []
    for at, bucket in ((10, first), (20, second), (30, second), (40, third), (50, third)):
        bucket.take([fix("ada", at), fix("bob", at), promise("ada", at + 1), promise("bob", at + 1)])
        assert (len(first.store.kept) > 1) == bucket.is_sharded
        counts.append([result.row[2] for result in bucket.outcome().results["alone/running", 0]][-2:])
    assert counts == [[1, 1], [2, 2], [3, 3], [4, 4], [5, 5]]


def test_state_in_one_piece_cannot_be_looked_up() -> None:
    bucket = Bucket(users(IN_ONE_PIECE["by arrival"]))
    bucket.take([fix("ada", 3)])
    with pytest.raises(ProgramError, match="C334"):
        bucket.running.look_up(bucket.store, ("ada",))
