"""A sink: where results are kept outside. What each must promise for results to be there exactly once.

The driver opens a sink and says what is next; tasks on executors write; the driver commits. Whatever is cut short is
done again with the same or more portions, so `write` may leave nothing that counts before `commit`, or must refuse by a
mark of its own what it has already taken. One that needs both (Kafka's transactions, Delta's log) has both places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from catchment.cloud.materialised import Portion


class Brought(NamedTuple):
    """A file of a portion, and which portion that is."""

    number: int
    path: str
    epoch: int
    generation: int
    """Of the supervisor that computed it."""
    log: str
    """How far in the log it goes: a JSON object, offset by partition."""


@dataclass(frozen=True)
class Share:
    """What one task writes: the files of one part, in order."""

    part: int
    files: tuple[Brought, ...]


@dataclass(frozen=True)
class Identity:
    """Whose results these are: what a sink writes beside them."""

    program: str
    sink: str
    store: str
    generation: int


Work = Callable[[], bytes]
"""Something for an executor: what it returns goes to `commit` or `settle`."""


class Opened(Protocol):
    """A sink as the driver holds it."""

    upto: int
    """It has everything up to this number."""

    def write(self, share: Share) -> Work:
        """What writes a share."""
        ...

    def commit(self, portions: Sequence[Portion], receipts: Sequence[bytes]) -> None:
        """All shares of these portions were written: from here on they count."""
        ...

    def chores(self) -> Sequence[Work]:
        """What is to be tidied up, for executors."""
        ...

    def settle(self, receipts: Sequence[bytes]) -> None:
        """The chores are done."""
        ...

    def close(self) -> None:
        """Let go."""
        ...


class Sink(Protocol):
    """What the author declared, as plain data that travels to executors."""

    @property
    def name(self) -> str:
        """The step that the author wrote."""
        ...

    @property
    def output(self) -> str:
        """The output that it takes."""
        ...

    @property
    def every_us(self) -> int:
        """How long results gather before they are written."""
        ...

    def open(self, identity: Identity) -> Opened:
        """Make what is not there, take over from whoever wrote before, and find out how far that got."""
        ...
