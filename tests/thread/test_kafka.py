"""`catchment run` of a program that reads a real Kafka broker, killed at work: each message is computed once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka import Kafka
from tests.thread.cloud import SPARK_S
from tests.thread.keeping import Keeping
from tests.thread.processes import wait_until

pytestmark = [
    pytest.mark.process,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:kafka.*"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:importlib.*"),
]
PROGRAM = Path(__file__).with_name("sales.py")
SHOPS = (b"corner", b"mill")
BAD = [
    (0, b"corner", b'{"at": 1, "cents": "five"}', "Expected `int`, got `str` - at `$.cents`"),
    (0, b"corner", b"\xff\x00", "JSON is malformed"),
    (1, None, b'{"at": 1, "cents": 5}', "it has no key, which shop is"),
    (1, b"mill", None, "it has no value"),
    (1, b"mill", b'{"cents": 5}', "missing required field `at`"),
]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    broker = Kafka(partitions=2)
    try:
        yield broker.start()
    finally:
        broker.stop()


@pytest.fixture
def selling(tmp_path: Path, kafka: Kafka) -> Iterator[Keeping]:
    running = Keeping(tmp_path, PROGRAM, {"CATCHMENT_TEST_KAFKA": kafka.servers})
    yield running
    running.kill()


def sold(numbers: range) -> list[tuple[int, bytes, bytes]]:
    """A sale for each number, in the partition of its shop."""
    return [(n % 2, SHOPS[n % 2], json.dumps({"at": n * 1_000_000, "cents": n}).encode()) for n in numbers]


def test_kill_9_and_each_message_is_computed_once(selling: Keeping, kafka: Kafka) -> None:
    kafka.send("sales", [*sold(range(200)), *[(where, key, value) for where, key, value, _ in BAD]])
    selling.start()
    wait_until(lambda: bool(selling.kept()), 2 * SPARK_S)
    selling.kill()
    before = len(selling.kept())
    kafka.send("sales", sold(range(200, 400)))
    selling.start()
    # The newest is of 399 s, and what is two minutes older may still come.
    closed = {
        (SHOPS[odd].decode(), start): range(start + odd, start + 10, 2) for start in range(0, 270, 10) for odd in (0, 1)
    }
    wait_until(lambda: len(selling.kept()) >= 400 and len(selling.kept("turnover")) >= len(closed), 2 * SPARK_S)
    selling.stop()
    windows = [
        (row["shop"], int(row["window_start"].timestamp()), row["cents"], row["n"]) for row in selling.kept("turnover")
    ]
    assert sorted(windows) == sorted((shop, at, sum(sales), len(sales)) for (shop, at), sales in closed.items())
    rows = selling.kept()
    assert before < 400, "it was killed at work"
    assert sorted(row["cents"] for row in rows) == list(range(400))
    assert all((row["partition"], row["shop"]) in ((0, "corner"), (1, "mill")) for row in rows)
    # Those that are no sale have places of their own, and are in quarantine with them.
    failed = [json.loads(line) for path in selling.folder.rglob("*.jsonl") for line in path.read_text().splitlines()]
    places = {(row["partition"], row["offset"]) for row in rows}
    assert len(places) == 400
    refused = {(each["given"]["partition"], each["given"]["offset"]): each["reason"] for each in failed}
    assert len(failed) == len(refused) == len(BAD)
    assert not places & set(refused)
    for partition, reasons in ((0, BAD[:2]), (1, BAD[2:])):
        assert sorted(place for at, place in places | set(refused) if at == partition) == list(
            range(200 + len(reasons))
        )
        for (at, _), said in sorted(refused.items()):
            if at == partition:
                assert any(reason in said for *_, reason in reasons)
    assert failed[0]["given"]["topic"] == "sales"
