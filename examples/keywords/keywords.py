"""Popular keywords: what people write about near a place, over the last seven days, on a grid of 33 by 33 cells.

Sonora's second service. Phones send short texts with their place; each day, each cell of the grid gets the words that
were mentioned most within `NEAR_M` of it during the last week. A phone asks for its place and gets the answer back.

The week is a window of seven days that moves by one. The planner computes it of daily tallies (`catchment explain
examples/keywords/keywords.py` says so): a text is counted once, on its day, and each day seven tallies are added up.
"""

from __future__ import annotations

import math
import re

import catchment as cm

SIDE = 33
SOUTH_DEG, WEST_DEG = 45.90, 14.30
CELL_LAT_DEG, CELL_LON_DEG = 0.010, 0.0144  # about 1.1 km by 1.1 km
NEAR_M = 1_500.0

# What is said everywhere is no keyword: the most frequent words of English prose, and what is too short to say much.
_COMMON = """
about after again all and any are because been before but came can come could dear did didn't don't down ever for
from get give going good got had has have he'd her here herself him his how i'd i'll i'm i've into isn't it's its
just know like little look made make man more much must never not now off old one only other our out over put right
said say see seem seemed she should some something such take tell than that that's the them then there there's they
thing think this thought time told too two upon very want was way we're well went were what when where which while
who will with won't would yes you you're your
"""
COMMON = frozenset(_COMMON.split())
_WORD = re.compile(r"[a-z']{3,}")


class Text(cm.Record):
    """A short text, and where it was written."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)
    text: cm.Field[str]


class Mention(cm.Record):
    """A keyword of a text, once for each cell that the text is near to."""

    at: cm.Field[cm.Instant] = cm.event_time()
    cell: cm.Field[int] = cm.key()
    word: cm.Field[str]


class Popular(cm.Record):
    """What was mentioned most near a cell."""

    cell: cm.Field[int] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    keywords: cm.Field[tuple[str, ...]]
    mentions: cm.Field[int]


class Ask(cm.Record):
    """Somebody wants to know what a place talks about."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)


class News(cm.Record):
    """What a cell hears of: somebody asks (`user`), or a week is known (`keywords`)."""

    at: cm.Field[cm.Instant] = cm.event_time()
    cell: cm.Field[int] = cm.key()
    user: cm.Field[str | None]
    keywords: cm.Field[tuple[str, ...] | None]


class Answer(cm.Record):
    """What the place of an ask talks about, most first; nothing where nobody wrote for a week."""

    user: cm.Field[str] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    cell: cm.Field[int]
    keywords: cm.Field[tuple[str, ...]]


def cells_near(lat_deg: float, lon_deg: float) -> list[int]:
    """The cells whose middle lies within `NEAR_M` of a place."""
    north, east = (lat_deg - SOUTH_DEG) / CELL_LAT_DEG, (lon_deg - WEST_DEG) / CELL_LON_DEG
    high_m = CELL_LAT_DEG * 111_195.0
    wide_m = CELL_LON_DEG * 111_195.0 * math.cos(math.radians(lat_deg))
    rows = range(max(0, math.ceil(north - 0.5 - NEAR_M / high_m)), min(SIDE, int(north - 0.5 + NEAR_M / high_m) + 1))
    columns = range(max(0, math.ceil(east - 0.5 - NEAR_M / wide_m)), min(SIDE, int(east - 0.5 + NEAR_M / wide_m) + 1))
    return [
        row * SIDE + column
        for row in rows
        for column in columns
        if math.hypot((row + 0.5 - north) * high_m, (column + 0.5 - east) * wide_m) <= NEAR_M
    ]


@cm.function
def mentioned(text: Text) -> list[Mention]:
    """The keywords of a text, each word once, for each cell that is near."""
    words = dict.fromkeys(word for word in _WORD.findall(text.text.lower()) if word not in COMMON)
    near = cells_near(text.lat_deg, text.lon_deg)
    return [Mention(at=text.at, cell=cell, word=word) for cell in near for word in words]


class Known(cm.State):
    """What a cell knows."""

    keywords: tuple[str, ...] = ()


class Answering(cm.Process[News, Answer, Known]):
    """Answers with the latest week that is known, at once: who asks does not wait for the day to end."""

    def on_element(self, element: News, state: Known, context: cm.Context) -> list[Answer]:
        """A week replaces the one before; an ask is answered."""
        if element.user is None:
            state.keywords = element.keywords or ()
            return []
        return [Answer(user=element.user, at=element.at, cell=element.cell, keywords=state.keywords)]


keywords = cm.Program("keywords")


@keywords.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(records=20, within=cm.seconds(10))))
def texts(device: cm.DeviceSite) -> cm.Stream[Text]:
    """What is written on this phone."""
    return device.sensor(Text, "texts")


@keywords.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(records=1), priority=1))
def asks(device: cm.DeviceSite) -> cm.Stream[Ask]:
    """What is asked on this phone, sent at once."""
    return device.sensor(Ask, "asks")


@keywords.stream(at=cm.CLOUD)
def mentions(texts: cm.Stream[Text]) -> cm.Stream[Mention]:
    """Every keyword, in every cell that is near."""
    return texts.flat_map(mentioned)


@keywords.stream(at=cm.CLOUD)
def popular(mentions: cm.Stream[Mention]) -> cm.Stream[Popular]:
    """The week's ten words of each cell, each day."""
    week = cm.hop(size=cm.days(7), every=cm.days(1), grace=cm.minutes(5))
    return mentions.key_by(Mention.cell).window(week).agg(keywords=cm.top(10, Mention.word), mentions=cm.count())


@keywords.stream(at=cm.CLOUD)
def answers(asks: cm.Stream[Ask], popular: cm.Stream[Popular]) -> cm.Stream[Answer]:
    """To each ask, what its place talks about."""
    row = cm.floor((Ask.lat_deg - SOUTH_DEG) / CELL_LAT_DEG).cast(int)
    column = cm.floor((Ask.lon_deg - WEST_DEG) / CELL_LON_DEG).cast(int)
    asked = asks.select(News, cell=row * SIDE + column, keywords=None)
    known = popular.select(News, user=None)
    return asked.union(known).key_by(News.cell).process(Answering(), order="arrival")


keywords.deliver(answers, by=Answer.user)
