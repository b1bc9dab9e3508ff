"""Steps that pair two inputs keep their keys apart: what a batch touches, what is let go, and what they were before."""

from __future__ import annotations

import random
from typing import Any

import pytest

import catchment as cm
from catchment.engines.reference import evaluate
from catchment.engines.spark.vector import engine
from catchment.errors import ProgramError
from catchment.plan.history import Outcome, Progress, Source, Tick
from tests.unit.edge.generated_history import differences, history
from tests.unit.edge.generated_records import Fix
from tests.unit.spark.bucketed import USERS, Bucket, fix, promise, users
from tests.unit.spark.test_shards import STEPS

ADA = Source("ada", "ada")
NEAR = (cm.microseconds(9), cm.microseconds(9))
PAIRED: dict[str, Any] = {
    **{name: STEPS[name] for name in ("zip", "combine", "latest", "interval", "window join")},
    "lonely": lambda a, b: a.join(b, within=NEAR, outer=True, at=Fix.at, n=Fix.place),
    "many windows": lambda a, b: a.join(b, within=cm.hop(20, 5), outer=True, at=Fix.at, n=Fix.place),
    "union": lambda a, b: a.union(b).key_by(Fix.user).combine(b, at=Fix.at, n=Fix.place),
}


@pytest.mark.parametrize("step", PAIRED)
def test_state_that_a_step_kept_event_by_event_is_gone_on_from_in_columns(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was kept before the step had a vectorised form."""
    drawn = users(PAIRED[step])
    for seed in range(20):
        entries = [each for each in history(random.Random(seed), drawn, 60) if isinstance(each, Tick) or each.source[1]]
        with monkeypatch.context() as patched:
            patched.setattr(engine, "vector_operator", lambda vertex, given: None)
            before = Bucket(drawn)
            assert not before.is_sharded
            before.take(entries[:30])
        after = Bucket(drawn)
        assert after.is_sharded
        after.store = before.store
        after.take(entries[30:])
        expected, first, second = evaluate(drawn, tuple(entries)), before.outcome(), after.outcome()
        found = {port: (*results, *second.results[port]) for port, results in first.results.items()}
        failures = (*first.failures, *second.failures)
        assert differences(expected, Outcome(found, failures), found) == []


def test_state_that_cannot_be_gone_on_from_in_columns_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = users(lambda a, b: a.union(b).key_by(Fix.user).window(cm.hop(20, 5)).agg(n=cm.count()))
    with monkeypatch.context() as patched:
        patched.setattr(engine, "vector_operator", lambda vertex, given: None)
        before = Bucket(drawn)
        before.take([fix("ada", 3), promise("ada", 4)])
    after = Bucket(drawn)
    after.store = before.store
    with pytest.raises(ProgramError, match="C333") as refused:
        after.take([fix("ada", 8)])
    assert refused.value.why == "alone/aggregated kept its state event by event, and keeps it in columns now"


def test_state_that_a_step_kept_in_columns_is_not_lost_event_by_event(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = users(PAIRED["zip"])
    before = Bucket(drawn)
    before.take([fix("ada", 3), promise("ada", 4)])
    monkeypatch.setattr(engine, "vector_operator", lambda vertex, given: None)
    after = Bucket(drawn)
    after.store = before.store
    with pytest.raises(ProgramError, match="C333") as refused:
        after.take([fix("ada", 8)])
    assert "alone/zip kept state in columns" in str(refused.value.why)


def test_what_can_have_no_partner_any_more_is_let_go() -> None:
    bucket = Bucket(users(PAIRED["interval"]), keys_of_a_shard=4)
    sizes = []
    for at in range(0, 2000, 100):
        said = [promise(user, at + 10) for user in USERS[:20]]
        said += [Progress("right/append", each.source, each.at) for each in said]
        bucket.take([*(fix(user, at, 3) for user in USERS[:20]), *said])
        sizes.append(sum(map(len, bucket.store.kept.values())))
    assert max(sizes[10:]) <= 1.1 * max(sizes[3:10])


def test_what_is_held_of_a_key_can_be_looked_up() -> None:
    bucket = Bucket(users(PAIRED["combine"]))
    bucket.take([fix("ada", 3, 7), fix("bob", 4), promise("ada", 5), Progress("right/append", ADA, 5)])
    ((key, found),) = bucket.running.look_up(bucket.store, ("ada",))["alone/combine"]
    assert key == ("ada",)
    assert [each["place"] for each in found["left"]] == [7]
    assert found["right"] == []
