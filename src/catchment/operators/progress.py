"""Progress: from the promises, the presence and the clock of sources to the watermark of each group of them.

A group's watermark is the least effective promise over its known sources; it never goes back. A source that is
connected and quiet follows the clock `idle` behind, one that is away follows it `at_most` behind (or not at all).
So a group's least is the least of three: of the busy, of the quiet, and of those away, where the last two have the
clock as a floor. Each is a heap whose stale entries are corrected when they come to the top: an event costs
O(log n) of its group, and a tick what the groups cost whose watermark follows the clock. The collapsed source without
owner is a source of every group, so its promise is kept once, beside them.

Knows sources and times. Does not know what waits for the watermark.

>>> tracker = Tracker(1, Closing(idle=10), own("user"))
>>> phone = Source("phone", "ada")
>>> tracker.progress(0, phone, 100), tracker.watermark("ada")
(['ada'], 100)
>>> tracker.tick(0, 200), tracker.tick(0, 211), tracker.watermark("ada")
([], ['ada'], 201)
"""

from __future__ import annotations

from collections.abc import Callable

from catchment.operators.contract import Snapshot
from catchment.operators.members import AWAY, BUSY, NEVER, QUIET, Group, Member, Sources
from catchment.plan.history import Source
from catchment.program.steps import Scope
from catchment.program.window import Closing, Offline

HOUR_US = 3_600_000_000


EVERYONE = Source("", None)
"""The collapsed source that stands for all: what a step of scope `all` gives its results as."""


def own(stamp: str | None) -> Callable[[Source], Group]:
    """The group of a source where each value of the stamped field is one: its owner, or its device."""
    if stamp == "device":
        return lambda source: source[0] or source[1]
    return lambda source: source[1]


def resolved(closing: Closing, scope: Scope) -> Closing:
    """With what `offline` means where it was left out: one's own devices are waited for, those of many an hour."""
    if closing.offline is not None:
        return closing
    return Closing(closing.grace, closing.idle, Offline(None if scope == "own" else HOUR_US), closing.keep)


class Tracker:
    """The watermarks of the groups of one operator. The methods of events give the groups whose watermark rose.

    `group_of` None says that there is one group, of all sources.
    """

    def __init__(self, ports: int, closing: Closing, group_of: Callable[[Source], Group] | None) -> None:
        self.marks: dict[Group, int] = {}
        """The watermark of each group that has one; operators look here for each element."""
        self._group_of = group_of
        self._everyone: list[int | None] = [None] * ports
        self._idle = closing.idle
        self._at_most = closing.offline.at_most if closing.offline is not None else None
        self._now: list[int | None] = [None] * ports
        self._members: list[dict[Source, Member]] = [{} for _ in range(ports)]
        # Those that may fall quiet, the one heard longest ago first.
        self._awake: list[dict[Member, None]] = [{} for _ in range(ports)]
        self._groups: dict[Group, Sources] = {}
        self._floating: dict[Group, Sources] = {}
        self._met = 0
        # Groups that had a watermark as they began, which is told at the next event that can raise one.
        self._begun: list[Group] = []

    def watermark(self, group: Group) -> int:
        """Nothing of the group that is older is still to come, as far as it is known."""
        return self.marks.get(group, NEVER)

    def now(self, port: int = 0) -> int | None:
        """The latest tick at a port."""
        return self._now[port]

    def begin(self, group: Group) -> None:
        """An element of the group came. From now on what everyone promises is promised to it."""
        if group in self._groups:
            return
        made = self._groups[group] = Sources(group, len(self._now))
        if self._rises(made):
            self._begun.append(group)

    def heard(self, port: int, source: Source) -> None:
        """An element of the source came. This never raises a watermark."""
        member = self._members[port].get(source)
        if member is not None and (member.heard != self._now[port] or member.state == QUIET):
            self._hear(port, member)

    def progress(self, port: int, source: Source, at: int) -> list[Group]:
        """The source promises that nothing older than `at` is still to come at this port."""
        if source == EVERYONE and self._group_of is not None:
            return self._promise_of_everyone(port, at)
        member = self._members[port].get(source)
        if member is None:
            member = self._meet(port, source)
        elif at <= member.promise:
            self._hear(port, member)
            return self._risen(None)
        else:
            self._hear(port, member)
            heap = member.group.sides[port].heaps[member.state]
            if heap[0][2] is not member:  # someone else holds the group back
                member.promise = at
                return self._risen(None)
        member.promise = at
        return self._risen(member.group)

    def presence(self, port: int, source: Source, since: int | None) -> list[Group]:
        """The source went away, or came back (None)."""
        if source == EVERYONE and self._group_of is not None:
            return self._promise_of_everyone(port, NEVER)
        member = self._members[port].get(source) or self._meet(port, source)
        awake = self._awake[port]
        if source[0]:  # a collapsed source is never quiet or away
            awake.pop(member, None)
            if since is None:
                member.heard = self._now[port]
                awake[member] = None
                self._move(port, member, BUSY)
            else:
                self._move(port, member, AWAY if self._at_most is not None else BUSY)
        return self._risen(member.group)

    def tick(self, port: int, now: int) -> list[Group]:
        """The clock reads `now`."""
        awake = self._awake[port]
        before = self._now[port]
        if before is None:
            for member in awake:
                member.heard = now
        elif now <= before:
            return self._risen(None)
        self._now[port] = now
        quiet = now - self._idle
        while awake:
            member = next(iter(awake))
            if member.heard is None or member.heard > quiet:
                break
            del awake[member]
            self._move(port, member, QUIET)
        return self._risen(*self._floating.values())

    def _promise_of_everyone(self, port: int, at: int) -> list[Group]:
        before = self._everyone[port]
        self._everyone[port] = at if before is None or at > before else before
        return self._risen(*self._groups.values())

    def _risen(self, *groups: Sources | None) -> list[Group]:
        risen = [group.name for group in groups if group is not None and self._rises(group)]
        if self._begun:
            risen = list(dict.fromkeys([*self._begun, *risen]))
            self._begun.clear()
        return risen

    def _meet(self, port: int, source: Source) -> Member:
        member = self._seated(port, Member(source, self._group(source), self._met))
        member.heard = self._now[port]
        if source[0]:
            self._awake[port][member] = None
        return member

    def _group(self, source: Source) -> Sources:
        name = None if self._group_of is None else self._group_of(source)
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = Sources(name, len(self._now))
        return group

    def _seated(self, port: int, member: Member) -> Member:
        self._members[port][member.source] = member
        self._met = max(self._met, member.number + 1)
        side = member.group.sides[port]
        side.size += 1
        side.seat(member)
        if member.state != BUSY:
            member.group.floating += 1
            self._floating[member.group.name] = member.group
        return member

    def _hear(self, port: int, member: Member) -> None:
        now = self._now[port]
        awake = self._awake[port]
        if member.state == QUIET:
            awake[member] = None
            self._move(port, member, BUSY)
        elif member.heard != now and member in awake:
            del awake[member]
            awake[member] = None
        member.heard = now

    def _move(self, port: int, member: Member, state: int) -> None:
        if member.state == state:
            return
        group = member.group
        group.floating += (state != BUSY) - (member.state != BUSY)
        if group.floating:
            self._floating[group.name] = group
        else:
            self._floating.pop(group.name, None)
        member.state = state
        group.sides[port].seat(member)

    def _rises(self, group: Sources) -> bool:
        low: int | None = None
        for port, side in enumerate(group.sides):
            effective = self._everyone[port]
            if not side.size and effective is None:
                return False
            least = side.least(BUSY)
            if least is not None and (effective is None or least < effective):
                effective = least
            if group.floating:
                now = self._now[port]
                for state, behind in ((QUIET, self._idle), (AWAY, self._at_most)):
                    least = side.least(state)
                    if least is not None:
                        if now is not None and behind is not None and now - behind > least:
                            least = now - behind
                        if effective is None or least < effective:
                            effective = least
            if effective is not None and (low is None or effective < low):
                low = effective
        if low is None or low <= self.marks.get(group.name, NEVER):
            return False
        self.marks[group.name] = low
        return True

    def snapshot(self) -> Snapshot:
        """All of it as plain data; of each source its number, so that ties are broken as before."""
        members = [
            [port, *m.source, None if m.promise == NEVER else m.promise, m.heard, m.state, m.number, m in awake]
            for port, awake in enumerate(self._awake)
            for m in [*(m for m in self._members[port].values() if m not in awake), *awake]
        ]
        return {
            "now": list(self._now),
            "everyone": [[at is not None, None if at == NEVER else at] for at in self._everyone],
            "groups": list(self._groups),
            "begun": list(self._begun),
            "members": members,
            "marks": [list(pair) for pair in self.marks.items()],
        }

    def restore(self, state: Snapshot) -> None:
        """Remember exactly that."""
        self.marks.clear()
        self._groups.clear()
        self._floating.clear()
        for port, members in enumerate(self._members):
            members.clear()
            self._awake[port].clear()
        self._met = 0
        self._now[:] = state["now"]
        self._everyone[:] = [None if not known else NEVER if at is None else at for known, at in state["everyone"]]
        for name in state["groups"]:
            self._groups[name] = Sources(name, len(self._now))
        for port, device, owner, promise, heard, standing, number, awake in state["members"]:
            source = Source(device, owner)
            member = Member(source, self._group(source), number)
            member.promise = NEVER if promise is None else promise
            member.heard, member.state = heard, standing
            self._seated(port, member)
            if awake:
                self._awake[port][member] = None
        self._begun[:] = state["begun"]
        self.marks.update((group, mark) for group, mark in state["marks"])
