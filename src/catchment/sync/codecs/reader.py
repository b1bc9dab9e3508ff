"""Bytes read from front to back, never past their end, whatever they claim.

>>> reader = Reader(varint(300) + varint(zigzag(-2)) + b"rest")
>>> reader.varint(), unzigzag(reader.varint()), reader.take(4)
(300, -2, b'rest')
"""

from __future__ import annotations

MASK = 2**64 - 1


class MalformedError(ValueError):
    """The bytes are not what their codec writes."""


def varint(value: int) -> bytes:
    """An unsigned integer of 64 bits, seven at a time, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> int:
    """A signed integer of 64 bits, small where it is near zero."""
    return (value << 1) ^ (value >> 63)


def unzigzag(value: int) -> int:
    """The signed integer of such a one."""
    return (value >> 1) ^ -(value & 1)


def signed(value: int) -> int:
    """The signed integer that the lowest 64 bits stand for."""
    value &= MASK
    return value - 2**64 if value >> 63 else value


class Reader:
    """A position in some bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def byte(self) -> int:
        """The next byte."""
        if self.at >= len(self.data):
            raise MalformedError("it ends too early")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        """The next unsigned integer."""
        data, at = self.data, self.at
        if at < len(data) and data[at] < 128:  # most are that small
            self.at = at + 1
            return data[at]
        value = shift = 0
        # Ten bytes hold 64 bits; the slice ends where the bytes do.
        for byte in data[at : at + 10]:
            at += 1
            if byte < 128:
                value |= byte << shift
                if value > MASK:
                    break
                self.at = at
                return value
            value |= (byte & 127) << shift
            shift += 7
        raise MalformedError("an integer exceeds 64 bits, or it ends too early")

    def take(self, size: int) -> bytes:
        """The next so many bytes."""
        if size > len(self.data) - self.at:
            raise MalformedError(f"{size} bytes are announced and {len(self.data) - self.at} are there")
        self.at += size
        return self.data[self.at - size : self.at]
