"""The device's conversation with gateways over HTTP: when to write, to whom, and what the answer means.

Nothing is sent unless a policy says that something is due, a result may be waiting, or it is time for a sign of life:
a radio that sleeps is what batching is for. One message is on its way at a time. A gateway that has moved is
followed, and left again when it cannot be reached. Knows the exchange of frames and times that it is given. Must not
know sockets, clocks or what the program does.
"""

from __future__ import annotations

import msgspec

from catchment.device.transport import Reply, Request, Transport, basic
from catchment.sync.exchange import Clocks, Exchange, Parted
from catchment.sync.happening import Arrived, Happening, Trouble

SYNC_PATH, PLAN_PATH = "/v1/sync", "/v1/plan"
_FRAMES = {"Content-Type": "application/vnd.catchment.sync"}
HEAD_BYTES = 300
"""About what HTTP adds to a request or an answer."""
LIFE_US = 120_000_000
"""After so long without a word the gateway is told that the device is alive, and what it promises: seldom, for the
radio's sake, and before the gateway would take it for away."""
AWAY_US = 10_000_000
"""A request that the gateway answers with an error of HTTP is made again after this, unless it says when."""


class PlanGiven(msgspec.Struct, frozen=True):
    """The gateway's present plan, as it was asked for."""

    tag: str
    document: bytes


class _Problem(msgspec.Struct):
    code: str = ""
    what: str = ""
    fix: str = ""


class Correspondent:
    """See the module. With `poll_us`, results are asked for that often; they also come with every answer."""

    def __init__(self, exchange: Exchange, transport: Transport, *, gateway: str, poll_us: int | None) -> None:
        self.exchange = exchange
        self.gateway = gateway
        """The gateway that is spoken with at present."""
        self.plan_tag = ""
        """What is told of the plan that runs here."""
        self.last_heard_us: int | None = None
        self.bytes_sent = self.bytes_received = self.requests = 0
        self._transport = transport
        self._home = gateway
        self._poll_us = poll_us
        self._under_way: str | None = None
        self._not_before_us = 0
        self._at_once = True
        self._wants_plan = False

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is awaited."""
        return self._under_way is not None

    # -- what is due ---------------------------------------------------------------------------------------------

    def is_due(self, clocks: Clocks) -> bool:
        """Whether `turn` would write now."""
        if self.is_waiting or clocks.reading_us < self._not_before_us:
            return False
        return self._wants_plan or self._is_due(clocks)

    def turn(self, clocks: Clocks) -> list[Happening]:
        """Begin what is due."""
        happenings = self.exchange.due(clocks)
        self._note(happenings)
        if not self.is_due(clocks):
            return happenings
        if self._wants_plan:
            self._ask_for_plan()
        else:
            more = self.exchange.connected(clocks, plan=self.plan_tag)
            self._note(more)
            happenings += more
            self._post(clocks)
        return happenings

    def wake_at_us(self, clocks: Clocks) -> int | None:
        """When `turn` has something to do, if nothing happens before."""
        if self.is_waiting:
            return None
        if self._wants_plan or self._is_due(clocks):
            return max(clocks.reading_us, self._not_before_us)
        times = [self._next_word_us(), *self._release_times()]
        if self.exchange.is_connected:
            times += self.exchange.uplink.wake_times(clocks)
        return min([at_us for at_us in times if at_us > clocks.reading_us], default=None)

    def hurry(self) -> int:
        """The device is about to stop: write as soon as may be, whatever batches wait for. Returns when."""
        self._at_once = self.exchange.uplink.is_leaving = True
        return self._not_before_us

    def last_word(self, clocks: Clocks) -> bool:
        """Send what is left and a goodbye, in one message. Returns whether there is anybody to send it to."""
        exchange = self.exchange
        if self.is_waiting or exchange.outbox.epoch is None or not exchange.session.was_joined:
            return False
        self._note(exchange.connected(clocks, plan=self.plan_tag))
        self._start(Request(self.gateway, "POST", SYNC_PATH, exchange.leave(clocks, reason="it stops"), _FRAMES))
        return True

    # -- what is answered ----------------------------------------------------------------------------------------

    def answered(self, reply: Reply, clocks: Clocks) -> list[Happening | PlanGiven]:
        """The answer to the request that is under way."""
        asked, self._under_way = self._under_way, None
        if reply.status:
            self.bytes_received += len(reply.body) + HEAD_BYTES
        if asked == PLAN_PATH:
            return self._plan(reply, clocks)
        if reply.status != 200:
            return self._failed(reply, clocks)
        self.last_heard_us = clocks.reading_us
        happenings = self.exchange.received(reply.body, clocks)
        self._note(happenings)
        is_challenged = self.exchange.session.state == "proving" and not any(
            isinstance(one, Parted) for one in happenings
        )
        # A challenge: the hello that answers it is part of the same conversation.
        if not is_challenged or not self._post(clocks):
            self.exchange.finished(clocks.reading_us)
            if is_challenged:
                # It was answered, and what came back said nothing to it.
                self._not_before_us = max(self._not_before_us, clocks.reading_us + AWAY_US)
        # Where there were results there may be more, and the gateway waits to hear that these arrived.
        self._at_once = any(isinstance(one, Arrived) for one in happenings)
        return [*happenings]

    def _failed(self, reply: Reply, clocks: Clocks) -> list[Happening | PlanGiven]:
        happenings = self.exchange.disconnected(clocks.reading_us)
        self._note(happenings)
        if self.gateway != self._home:
            self.gateway = self._home
        if reply.status == 0:
            return [
                *happenings,
                Trouble("unreachable", reply.problem, "it is tried again by itself"),
            ]
        problem = _problem(reply)
        retry_s = reply.headers.get("retry-after", "")
        wait_us = int(retry_s) * 1_000_000 if retry_s.isdigit() else AWAY_US
        self._not_before_us = max(self._not_before_us, clocks.reading_us + wait_us)
        return [*happenings, Trouble(problem.code or f"HTTP {reply.status}", problem.what, problem.fix)]

    def want_plan(self) -> None:
        """Ask for the present plan as soon as may be."""
        self._wants_plan = True

    def _plan(self, reply: Reply, clocks: Clocks) -> list[Happening | PlanGiven]:
        self._wants_plan = False
        if reply.status == 200:
            self.last_heard_us = clocks.reading_us
            return [PlanGiven(reply.headers.get("etag", "").strip('"'), reply.body)]
        if reply.status == 304:
            return []
        self._wants_plan = reply.status == 0
        self._not_before_us = max(self._not_before_us, clocks.reading_us + AWAY_US)
        problem = _problem(reply)
        return [Trouble(problem.code or f"HTTP {reply.status}", problem.what or reply.problem, problem.fix)]

    # -- how -----------------------------------------------------------------------------------------------------

    def _post(self, clocks: Clocks) -> bool:
        """Send what there is to say, if there is something."""
        body = self.exchange.outgoing(clocks)
        if body:
            self._start(Request(self.gateway, "POST", SYNC_PATH, body, _FRAMES))
        return bool(body)

    def _ask_for_plan(self) -> None:
        who = self.exchange.session.identity
        headers = basic(who.device, who.credential)
        if self.plan_tag:
            headers["If-None-Match"] = f'"{self.plan_tag}"'
        self._start(Request(self.gateway, "GET", PLAN_PATH, headers=headers))

    def _start(self, request: Request) -> None:
        self._under_way = request.path
        self._at_once = False
        self.requests += 1
        self.bytes_sent += len(request.body) + HEAD_BYTES
        self._transport.start(request)

    def _is_due(self, clocks: Clocks) -> bool:
        if self._at_once or clocks.reading_us >= self._next_word_us():
            return True
        if self.exchange.is_connected:
            return self.exchange.uplink.is_due(clocks)
        return self._has_something()

    def _next_word_us(self) -> int:
        """When there is a reason to write although nothing is due to be sent."""
        every_us = LIFE_US if self._poll_us is None else min(self._poll_us, LIFE_US)
        return self._not_before_us if self.last_heard_us is None else self.last_heard_us + every_us

    def _has_something(self) -> bool:
        outbox = self.exchange.outbox
        return any(outbox.start(stream) is not None for stream in outbox.streams())

    def _release_times(self) -> list[int]:
        times = [intake.release_at_us() for intake in self.exchange.uplink.intakes.values()]
        return [at_us for at_us in times if at_us is not None]

    def _note(self, happenings: list[Happening]) -> None:
        for happening in happenings:
            if isinstance(happening, Parted):
                self._not_before_us = happening.retry_at_us
                self._at_once = bool(happening.gateway)
                if happening.gateway:
                    self.gateway = happening.gateway


def _problem(reply: Reply) -> _Problem:
    try:
        return msgspec.json.decode(reply.body, type=_Problem)
    except msgspec.DecodeError:
        return _Problem(what=reply.problem or f"HTTP {reply.status}")
