"""What a device remembers: a crash between any two writes leaves exactly what the last of them said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.device.memory import SMALL_BYTES, Memory


class Store:
    """A disk that keeps what a transaction wrote when it ends, and nothing of one that does not."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.open: dict[str, bytes] = {}
        self.written = 0

    def save(self, key: str, value: bytes) -> None:
        self.open[key] = value
        self.written += len(value)

    def end(self, *, well: bool = True) -> None:
        if well:
            self.kept |= self.open
        self.open = {}

    def memory(self) -> Memory:
        return Memory(self.save, self.kept.get)


class Sum:
    """A state that is as large as it is told, and counts what entered."""

    def __init__(self, size: int) -> None:
        self.numbers: list[int] = []
        self.size = size

    def state(self) -> bytes:
        return bytes(self.numbers) + b"\0" + b"x" * self.size

    @staticmethod
    def recover(state: bytes | None, entries: list[bytes]) -> list[int]:
        return [*(b"" if state is None else state.split(b"\0")[0]), *(number for entry in entries for number in entry)]


@given(
    st.sampled_from([0, 100, SMALL_BYTES + 1, 20_000]),
    st.lists(
        st.tuples(st.sampled_from(["write", "fail", "restart"]), st.integers(1, 9), st.integers(1, 6000)), max_size=40
    ),
)
def test_a_restart_stands_behind_the_last_transaction(size: int, story: list[tuple[str, int, int]]) -> None:
    store, sums = Store(), Sum(size)
    memory = store.memory()
    for what, number, width in story:
        if what == "restart":
            memory = store.memory()
            assert Sum.recover(*memory.read()) == sums.numbers
            continue
        before = list(sums.numbers)
        sums.numbers += [number] * width
        memory.write(sums.state, lambda number=number, width=width: bytes([number] * width))  # type: ignore[misc]
        store.end(well=what == "write")
        if what == "fail":
            # What was taken in waits, and is written again with what follows; here it is dropped with its transaction.
            sums.numbers = before
            memory.begin_anew()
    assert Sum.recover(*store.memory().read()) == sums.numbers


def test_a_large_state_costs_about_twice_what_enters_and_never_its_size_each_time() -> None:
    store, sums = Store(), Sum(200_000)
    memory = store.memory()
    for _ in range(3000):
        memory.write(sums.state, lambda: b"e" * 300)
        store.end()
    entered = 3000 * 300
    assert store.written < 2.5 * entered
    state, entries = store.memory().read()
    assert state is not None
    assert sum(map(len, entries)) <= len(state), "a start replays no more than about a snapshot's worth"


def test_a_small_state_is_written_whole_each_time() -> None:
    store, sums = Store(), Sum(10)
    memory = store.memory()
    for _ in range(5):
        memory.write(sums.state, lambda: pytest.fail("no entry is needed"))
        store.end()
    assert store.memory().read() == (sums.state(), [])
