"""A list of 64-bit integers as their first value, their unit, and the bytes of what a steady motion does not foretell.

With x₀ the first and g the greatest common divisor of all distances from it, y = (x − x₀) / g. Of y itself (order 0),
its differences (order 1) or the differences of these (order 2), whichever are smallest, the zigzag values are written
byte by byte: first all lowest bytes, then all second ones, for as many bytes as the largest needs. Arithmetic is modulo
2⁶⁴, so every list of 64-bit integers comes back exactly.

    order(2 bits) width(4 bits) has unit(1 bit)   x₀   g if it has one   first difference if order is 2   planes

>>> data = pack([1000, 2000, 3000, 4000, 6000])
>>> len(data), unpack(Reader(data), 5)
(9, [1000, 2000, 3000, 4000, 6000])
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import gcd
from typing import NamedTuple

from catchment.sync.codecs.reader import MASK, MalformedError, Reader, signed, unzigzag, varint, zigzag


class Head(NamedTuple):
    """What stands before the planes of a list."""

    base: int
    unit: int
    order: int
    width: int
    first_difference: int

    def planes_count(self, count: int) -> int:
        """How many values each plane has, of a list of so many."""
        less = 2 if self.order == 2 else 1
        return count - less if count > less else 0


def pack(values: Sequence[int]) -> bytes:
    """The integers as bytes. How many there are is the caller's to remember."""
    if not values:
        return b""
    base = values[0]
    distances = [value - base for value in values]
    unit = gcd(*distances) or 1
    steady = [distance // unit for distance in distances] if unit > 1 else distances
    differences = [b - a for a, b in pairwise(steady)]
    second = [b - a for a, b in pairwise(differences)]
    choices = [_zigzags(steady[1:]), _zigzags(differences), _zigzags(second)]
    order = min(range(3 if len(values) > 2 else 2), key=lambda which: (_bits(choices[which]), which))
    residuals = choices[order]
    width = (max(residuals, default=0).bit_length() + 7) // 8
    parts = [bytes([order | width << 2 | (unit > 1) << 6]), varint(zigzag(signed(base)))]
    if unit > 1:
        parts.append(varint(unit & MASK))
    if order == 2:
        parts.append(varint(zigzag(signed(differences[0]))))
    parts.extend([bytes([value >> shift & 255 for value in residuals]) for shift in range(0, width * 8, 8)])
    return b"".join(parts)


def read_head(reader: Reader, count: int) -> Head:
    """What stands before the planes; the reader is then at the first of them."""
    if not count:
        return Head(0, 1, 0, 0, 0)
    first = reader.byte()
    order, width, has_unit = first & 3, first >> 2 & 15, first >> 6
    if order > 2 or width > 8 or has_unit > 1 or (order == 2 and count < 3):
        raise MalformedError(f"no list of {count} integers begins with {first}")
    base = unzigzag(reader.varint())
    unit = reader.varint() if has_unit else 1
    return Head(base, unit, order, width, unzigzag(reader.varint()) if order == 2 else 0)


def unpack(reader: Reader, count: int) -> list[int]:
    """So many integers."""
    head = read_head(reader, count)
    if not count:
        return []
    size = head.planes_count(count)
    planes = [reader.take(size) for _ in range(head.width)]
    values: list[int] = [0] * size if not planes else list(planes[0])
    for place, plane in enumerate(planes[1:], start=1):
        shift = 8 * place
        values = [value | byte << shift for value, byte in zip(values, plane, strict=True)]
    steady = [unzigzag(value) for value in values]
    if head.order == 2:
        steady = list(accumulate(steady, initial=head.first_difference))
    if head.order:
        steady = list(accumulate(steady))
    base, unit = head.base, head.unit
    rest = [base + unit * value for value in steady]
    if rest and (min(rest) < -(2**63) or max(rest) >= 2**63):
        rest = [signed(value) for value in rest]
    return [base, *rest]


def _zigzags(values: Sequence[int]) -> list[int]:
    # Nearly always nothing comes near 64 bits.
    if not values or (max(values) < 2**62 and min(values) > -(2**62)):
        return [(value << 1) ^ (value >> 63) for value in values]
    return [zigzag(signed(value)) for value in values]


def _bits(values: Sequence[int]) -> int:
    """About how many bits the values hold, which is what is left of them after compression."""
    return sum([value.bit_length() for value in values])
