"""An author's declared state: copied before a call that may fail, and saved as plain data and back.

>>> from catchment.program.process import State
>>> class Seen(State):
...     places: dict[str, int] = {}
>>> seen = Seen(places={"oslo": 2})
>>> copied = copying(Seen)(seen)
>>> copied.places["oslo"] = 3
>>> seen.places, load_state(save_state(seen), Seen) == seen
({'oslo': 2}, True)
"""

from __future__ import annotations

import copy
import typing
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)

_UNCHANGING = (bool, int, float, str, bytes, type(None))


def copying(kind: type[S]) -> Callable[[S], S]:
    """A function that copies a state: flat where no field can be changed in place, else through and through."""
    hints = typing.get_type_hints(kind)
    flat = all(_is_unchanging(hints[name]) for name in kind.__struct_fields__)
    return copy.copy if flat else copy.deepcopy


def _is_unchanging(hint: Any) -> bool:
    hint = getattr(hint, "__supertype__", hint)  # Instant and Duration are ints
    parts = [part for part in typing.get_args(hint) if part is not Ellipsis]
    return hint in _UNCHANGING or (
        bool(parts) and typing.get_origin(hint) not in (list, dict, set) and all(map(_is_unchanging, parts))
    )


def save_state(state: msgspec.Struct) -> Any:
    """The state as plain data."""
    return msgspec.to_builtins(state, str_keys=True)


def load_state(saved: Any, kind: type[S]) -> S:
    """The state that was saved as this."""
    return msgspec.convert(saved, kind, str_keys=True)
