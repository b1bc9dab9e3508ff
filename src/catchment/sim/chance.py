"""Chance: independent streams of randomness by name, all from one seed.

What one part draws never shifts what another draws, so that taking a misfortune out of a script leaves the luck of
everything else as it was: that is what makes shrinking work.

>>> Chance(7).stream("network").random() == Chance(7).stream("network").random()
True
>>> Chance(7).stream("network").random() == Chance(7).stream("disk").random()
False
"""

from __future__ import annotations

import random
import zlib


class Chance:
    """The luck of one world."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, random.Random] = {}

    def stream(self, *name: str | int) -> random.Random:
        """A generator of its own for that name, from its beginning."""
        known = "/".join(map(str, name))
        text = known.encode()
        # Seeding with an integer costs a third of seeding with a string, and worlds do it often.
        self._streams[known] = random.Random((self.seed << 64) | (zlib.crc32(text) << 32) | zlib.adler32(text))
        return self._streams[known]

    def drawn(self) -> list[tuple[str, object]]:
        """How far each stream has come: whatever happens otherwise draws otherwise."""
        return sorted((name, stream.getstate()) for name, stream in self._streams.items())
