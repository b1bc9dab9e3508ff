"""When two payloads are the same: by value, exactly, unless a field has a tolerance.

Numbers are the same when they are equal (1 is 1.0, -0.0 is 0.0) and NaN is NaN; a bool is not a number; lists and
tuples compare element by element. A payload is held as a few bytes: itself while it is small, a hash of it otherwise.

>>> same = Sameness({2: 0.5})
>>> key, near = same.split(("ada", 1, 20.0), encode(("ada", 1, 20.0)))
>>> rows = [("ada", 1.0, 20.4), ("ada", 1, 20.6)]
>>> [same.matches(same.hold(key), near, *same.split(row, encode(row))) for row in rows]
[True, False]

Knows values only: no stream, no sequence, no time.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

Field: TypeAlias = int | str
"""What a payload is indexed by: a position in a row, or the name of an entry."""

EXACT_BYTES_MAX = 32
_HASH_BYTES = EXACT_BYTES_MAX + 1  # so that the length tells a hash from a payload
_FLOAT_EXACT_MAX = 2**53

_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder().decode


def encode(payload: object) -> bytes:
    """The payload as bytes. Values that differ have different bytes; the same value may have several."""
    return _encode(payload)


class Sameness:
    """The rule by which one stream's payloads are compared: `tolerances` by field, all else by value.

    A payload is split into its *key*, compared by value, and its *near* numbers, one per tolerance and compared
    within it (NaN where the field holds no finite number: then it is in the key).
    """

    def __init__(self, tolerances: Mapping[Field, float]) -> None:
        self._tolerances = dict(tolerances)
        self._limits = tuple(tolerances.values())

    def split(self, payload: object, raw: bytes) -> tuple[bytes, tuple[float, ...]]:
        """The key and the near numbers of a payload, of which `raw` is the encoding."""
        if not self._tolerances:
            return raw, ()
        rest: Any = dict(payload) if isinstance(payload, Mapping) else _listed(payload)
        near = []
        for field in self._tolerances:
            number = _near_number(rest[field]) if has_field(rest, field) else math.nan
            if number == number:
                rest[field] = None
            near.append(number)
        return encode((rest, [number == number for number in near])), tuple(near)

    def hold(self, key: bytes) -> bytes:
        """What to keep of a key: at most 33 bytes."""
        # A small key is kept as it came: two equal payloads nearly always have the same bytes, which is cheap to see.
        return key if len(key) <= EXACT_BYTES_MAX else identity(key)

    def matches(self, held: bytes, held_near: tuple[float, ...], key: bytes, near: tuple[float, ...]) -> bool:
        """Whether a payload of that key and those numbers is the same as the one that was held."""
        if held != key:
            name = identity(key)
            as_it_came = len(held) <= EXACT_BYTES_MAX
            if held != name and not (as_it_came and identity(held) == name):
                return False
        return all(
            ideal != ideal or abs(ideal - real) <= limit
            for ideal, real, limit in zip(held_near, near, self._limits, strict=True)
        )

    def show(self, held: bytes, near: tuple[float, ...]) -> str:
        """A payload that was held, for people."""
        if len(held) > EXACT_BYTES_MAX:
            return f"a payload with the hash {held.hex()[:16]}"
        if not self._tolerances:
            return show(_decode(held))
        rest, _ = _decode(held)
        for field, number in zip(self._tolerances, near, strict=True):
            if number == number:
                rest[field] = number
        return show(rest)


def identity(key: bytes) -> bytes:
    """What encodings of the same value share, and others do not: at most 33 bytes."""
    canonical = encode(_canonical(_decode(key)))
    if len(canonical) <= EXACT_BYTES_MAX:
        return canonical
    return hashlib.blake2b(canonical, digest_size=_HASH_BYTES).digest()


def has_field(payload: object, field: Field) -> bool:
    """Whether a tolerance for that field has something to apply to."""
    if isinstance(payload, Mapping):
        return field in payload
    return isinstance(payload, list | tuple) and isinstance(field, int) and 0 <= field < len(payload)


def show(payload: object) -> str:
    """A payload for people: one short line."""
    text = repr(tuple(payload) if isinstance(payload, list | tuple) else payload)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _listed(payload: object) -> object:
    return list(payload) if isinstance(payload, list | tuple) else payload


def _near_number(value: object) -> float:
    # An integer that a float cannot hold is compared exactly rather than rounded.
    match value:
        case bool():
            return math.nan
        case int() if abs(value) <= _FLOAT_EXACT_MAX:
            return float(value)
        case float() if math.isfinite(value):
            return value
    return math.nan


def _canonical(value: Any) -> Any:
    """The one way of writing a value: whole floats as integers, every NaN alike."""
    match value:
        case float():
            if value.is_integer() and -(2.0**63) <= value < 2.0**64:
                return int(value)
            return value if value == value else math.nan
        case list() | tuple():
            return [_canonical(item) for item in value]
        case dict():
            return {_canonical(name): _canonical(item) for name, item in value.items()}
    return value
