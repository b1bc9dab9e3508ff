"""Codecs: rows of one schema as the payload of a frame, and back.

A codec is named in every data frame, so both ends find it by name: `codec("delta/zstd")` is the codec `delta` with
its bytes compressed by `zstd`. Nothing heavy is imported until a name asks for it.

>>> from catchment.program.types import Column, FLOAT, STR, Schema
>>> fix = Schema("Fix", (Column("user", STR), Column("lat_deg", FLOAT)))
>>> plain = codec("none")
>>> plain.encode(fix, [("ada", 48.1), ("bob", float("nan"))])
b'[["ada",48.1],["bob","NaN"]]'
>>> codec("none/deflate").decode(fix, codec("none/deflate").encode(fix, [("ada", 48.1)]))
[('ada', 48.1)]
"""

from catchment.sync.codecs.codec import Codec, available, codec, register

__all__ = ["Codec", "available", "codec", "register"]
