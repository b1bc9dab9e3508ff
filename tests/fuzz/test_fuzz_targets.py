"""The targets of `make fuzz` with what hypothesis thinks of; and that each of them would notice."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.gateway.exchange import Exchange
from catchment.sync.codecs import codec
from catchment.sync.frame import FRAME_BYTES_MAX, Bye, encode
from tests.fuzz.surface import surface
from tests.fuzz.targets import SCHEMAS, TARGETS, frames, payloads, sealed, unsealed
from tools.fuzz import seeds


@pytest.mark.parametrize("target", list(TARGETS.values()), ids=list(TARGETS))
@given(data=st.binary(max_size=300))
@settings(max_examples=300)
def test_whatever_comes_is_read_or_refused(target: Callable[[bytes], None], data: bytes) -> None:
    target(data)


@pytest.mark.parametrize("name", list(TARGETS))
def test_seeds_of_a_target_reach_what_it_is_about(name: str) -> None:
    found = seeds(name)
    assert len(found) > 5
    for seed in found:
        TARGETS[name](seed)


def test_a_frame_is_taken_apart_and_sealed_again() -> None:
    frame = encode(Bye("asleep", 7))
    assert sealed(unsealed(frame)) == frame


def test_what_a_frame_claims_is_not_allocated() -> None:
    claims = b"\xca\x7c\x01\x03\xff\xff" + (FRAME_BYTES_MAX - 70_000).to_bytes(4, "little") + bytes(40)
    tracemalloc.start()
    frames(claims)
    for name in range(6):
        payloads(bytes([0, name]) + b"\x01\xff\xff\x03" + b"\xff" * 40)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 4 << 20


def test_a_boolean_that_is_none_is_refused_by_both_readers() -> None:
    found = (
        "0104631469f19cc4a2c4b0edf65b30aadf9aaddeaf9c7bdb53c5f3f6b6499e93b6e5aa4c524170a7f1b230b1d43800012beba485890b9"
    )
    payloads(bytes.fromhex(f"{found}35818983021230b132313066404ca0000"))


def test_decimals_finer_than_the_step_are_rounded_to_it_once() -> None:
    payloads(bytes.fromhex("0000011401020002030842" + "00ffffffffd00702010200" + "00"))


def test_two_readers_that_disagree_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = codec("delta").encode(SCHEMAS[0], [(1000 * n, n * n / 8, 5 * n) for n in range(20)])
    payloads(bytes([0, 0]) + whole)
    monkeypatch.setattr("catchment.sync.codecs.delta_numpy._summed", lambda values, counts, which: values)
    with pytest.raises(AssertionError):
        payloads(bytes([0, 0]) + whole)


@given(data=st.lists(st.binary(min_size=6, max_size=200), min_size=20, max_size=40))
@settings(max_examples=8, deadline=None)
def test_whatever_is_asked_is_answered(tmp_path_factory: pytest.TempPathFactory, data: list[bytes]) -> None:
    with surface(tmp_path_factory.mktemp("gateway")) as found:
        for one in [*seeds("surface"), *data]:
            found.hear(one)


@pytest.mark.parametrize("claimed", ["²".encode("latin-1"), b"9" * 5000, b"-1", b""])
def test_a_length_that_is_none_is_answered(tmp_path: Path, claimed: bytes) -> None:
    with surface(tmp_path) as found:
        found.hear(bytes([0, 0, 0, 0x81, 0, 0]) + claimed)


def test_a_gateway_that_breaks_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: Exchange, *words: object) -> None:
        raise ValueError("nobody expected this")

    monkeypatch.setattr(Exchange, "turn", broken)
    with surface(tmp_path) as found, pytest.raises(AssertionError, match="500"):
        found.hear(bytes([0, 0, 0, 0, 0, 0]) + encode(Bye()))
    monkeypatch.undo()
