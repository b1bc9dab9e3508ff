"""Made-up texts of people who walk about the grid: words by the frequencies of a novel, and what each place talks of.

`words.tsv` has how often each word stands in P. G. Wodehouse's "My Man Jeeves" (see README.md). A text has 5 to 20 of
them, as in Sonora's experiment. So that there is something to find, one text in four also says the word of its
neighbourhood. All of it is generated from a seed.

On a device: `--sensor texts=python:texts:open_texts,seed=3`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SIDE_DEG = (0.33, 0.4752)
SOUTH_DEG, WEST_DEG = 45.90, 14.30
WORDS = Path(__file__).with_name("words.tsv")
TOPICS = ("market", "bridge", "concert", "rain", "strike", "football", "library", "harbour", "vineyard")
DAY_US = 86_400_000_000


def words() -> dict[str, int]:
    """How often each word stands in the novel."""
    lines = WORDS.read_text(encoding="utf-8").splitlines()
    return {word: int(count) for word, _, count in (line.partition("\t") for line in lines)}


def topic(lat_deg: float, lon_deg: float) -> str:
    """What a place talks of: the grid is cut into nine neighbourhoods."""
    row = min(2, int((lat_deg - SOUTH_DEG) / SIDE_DEG[0] * 3))
    column = min(2, int((lon_deg - WEST_DEG) / SIDE_DEG[1] * 3))
    return TOPICS[row * 3 + column]


def texts(seed: int) -> Iterator[dict[str, Any]]:
    """Texts without end, each with its place."""
    chance = random.Random(seed)
    known = words()
    spoken, weights = list(known), list(itertools.accumulate(known.values()))
    while True:
        lat_deg = SOUTH_DEG + chance.random() * SIDE_DEG[0]
        lon_deg = WEST_DEG + chance.random() * SIDE_DEG[1]
        said = chance.choices(spoken, cum_weights=weights, k=chance.randint(5, 20))
        if chance.random() < 0.25:
            said[chance.randrange(len(said))] = topic(lat_deg, lon_deg)
        yield {"lat_deg": lat_deg, "lon_deg": lon_deg, "text": " ".join(said)}


class Writer:
    """A person who writes whenever the sensor is asked."""

    def __init__(self, seed: int) -> None:
        self._texts = texts(seed)

    def read(self, at_us: int) -> dict[str, Any]:
        """The next text."""
        return next(self._texts)


def open_texts(seed: str = "1") -> Writer:
    """A sensor of texts."""
    return Writer(int(seed))
