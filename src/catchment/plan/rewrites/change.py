"""What a rewrite did, or saw and left alone, and why: the planner's own account, which `explain` prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from catchment.plan.graph import Graph


class Change(msgspec.Struct, frozen=True):
    """`what` was done to `step`, and `why`; where `done` is false, it was not done, and why is the reason."""

    step: str
    what: str
    why: str
    done: bool = True


Rewritten: TypeAlias = tuple[Graph, tuple[Change, ...]]
Rewrite: TypeAlias = Callable[[Graph], Rewritten]
