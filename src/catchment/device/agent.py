"""The agent: one loop that reads sensors, runs a program's device parts, stores their output, talks to the gateway.

Promises: everything that a turn took in, and everything that came of it, is stored by one transaction or not at all, so
that a process that dies at any moment begins again right behind its last transaction; and nothing leaves before it is
stored. A turn ends with when the next one is due. Knows no thread, socket or system clock: all of that is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from catchment.device import remembered
from catchment.device.clock import Clock
from catchment.device.correspondent import Correspondent, PlanGiven
from catchment.device.journal import Journal
from catchment.device.ledger import Ledger
from catchment.device.power import PowerMeter
from catchment.device.program import Running
from catchment.device.sensors.fitting import Unfit
from catchment.device.surroundings import Environment, Surroundings
from catchment.device.timekeeper import Timekeeper
from catchment.device.transport import Reply
from catchment.errors import CatchmentError
from catchment.sync.exchange import Clocks, Exchange, Joined, Parted
from catchment.sync.frame import Offset, Pressure
from catchment.sync.happening import Arrived, Happening, Noticed, PlanArrived, Told, Trouble
from catchment.sync.outbox import Health, Outbox, Result, Stamp

TURN_RECORDS = 1000
"""So many readings are taken in one turn."""
COMMIT_US = 100_000
"""Elements wait so long for others to be stored with: a sync of the disk is dear."""
REST_US = 600_000_000
"""Where only time has passed, that is stored this often, and before anything is promised to the gateway."""
TICK_US = 1_000_000
LOOK_US = 5_000_000
"""How often the device looks around itself while it is awake: battery, building, link."""
NOTICE_US = 30_000_000
"""Where a sensor's interval depends on what is around, the device looks this often."""
RETRY_US = 1_000_000
"""After so long a disk that took nothing is tried again."""
RESULTS_KEPT = 10_000
"""Of results that are all kept, the program has dealt with so many: they can still be looked at."""
END_US = (1 << 53) - 1
"""What a sensor that is over promises: the last moment that a frame can name."""


class Agent:
    """See the module."""

    def __init__(
        self,
        running: Running,
        *,
        outbox: Outbox,
        ledger: Ledger,
        correspondent: Correspondent | None,
        keeper: Timekeeper,
        fed: dict[str, int],
        told: dict[str, bool | float],
        clock: Clock,
        environment: Environment,
        meter: PowerMeter,
        journal: Journal,
        follow: Callable[[Agent, PlanGiven], None] = lambda agent, plan: None,
    ) -> None:
        """`follow` is told of the gateway's plan where it differs from the one that runs."""
        self.running = running
        self.outbox = outbox
        self.ledger = ledger
        self.correspondent = correspondent
        self.keeper = keeper
        self.clock = clock
        self.meter = meter
        self.journal = journal
        self.around = Surroundings()
        self.taken = self.quarantined = 0
        """Readings that entered the program, and elements that it could not compute, since the start."""
        self._fed = fed
        self._inferred = told
        self._seen = Surroundings()
        self._environment = environment
        self._follow = follow
        self._pressure: Pressure | None = None
        self._looked_us: int | None = None
        self._committed_us: int | None = None
        self._ticked_us: int | None = None
        self._retry_us: int | None = None
        self._entered = False
        self._results_wait = True
        self._reached: dict[str, int] = {}
        self._over: set[str] = set()
        self._metered_bytes = 0
        self._health = Health.WORKING

    # -- the loop ------------------------------------------------------------------------------------------------

    def turn(self) -> int | None:
        """Do all that is due. Returns the reading at which the next turn is, if nothing happens before."""
        now_us = self._look()
        at_us = self.keeper.place(now_us)
        self._sense(now_us, at_us)
        self._feed(now_us, at_us)
        self._pass_time(now_us, at_us)
        if self._is_commit_due(now_us):
            self.commit()
        self.correspond()
        return self._wake_us(now_us)

    def correspond(self) -> None:
        """Write to the gateway, if something is due."""
        if self.correspondent is not None:
            clocks = self._clocks()
            # What is promised has to be remembered first, so that a restart keeps to it.
            if self.ledger.promises and self._retry_us is None and self.correspondent.is_due(clocks):
                self.commit()
            self._happened(self.correspondent.turn(clocks))
            self._meter_radio(clocks.reading_us)

    def say_goodbye(self) -> bool:
        """Tell the gateway that the device is leaving. Returns whether there is anybody to tell."""
        if self.correspondent is None:
            return False
        clocks = self._clocks()
        said = self.correspondent.last_word(clocks)
        self._meter_radio(clocks.reading_us)
        return said

    def answered(self, reply: Reply) -> None:
        """The gateway answered, or did not."""
        assert self.correspondent is not None
        clocks = self._clocks()
        self._happened(self.correspondent.answered(reply, clocks))
        self._meter_radio(clocks.reading_us)

    def commit(self) -> bool:
        """Store what the program gave and where it stands. Returns whether the disk took it."""
        standing = self._standing()
        parts = self.running.parts
        failure = self.ledger.commit(
            lambda: remembered.encode(remembered.State(parts.snapshot(), standing)),
            lambda: remembered.encode(remembered.Since(parts.entries(), standing)),
        )
        # When it failed, the next attempt is a snapshot, which needs no entries either.
        parts.forget_entries()
        self._note_health()
        now_us = self.clock.reading_us()
        if failure is not None:
            self._retry_us = now_us + RETRY_US
            gone = self.ledger.make_room()
            if gone:
                self.journal.say("elements given up", count=gone, why=failure.what)
            return False
        self._retry_us = None
        self._committed_us = now_us
        self._entered = False
        return True

    def switch(self, wanted: Running, exchange: Exchange, plan: bytes, tag: str) -> bool:
        """Run another program from now on. Returns whether that is stored; else this one goes on."""
        if not self.commit():
            return False
        now_us = self.clock.reading_us()
        wanted.schedule.resume(self.running.schedule.positions(), now_us)
        wanted.connect(exchange, now_us=now_us)
        self.running = wanted
        self._over.clear()
        self._inferred.clear()
        self.ledger.begin_anew(plan)
        if self.correspondent is not None:
            self.correspondent.plan_tag = tag
        self._results_wait = True
        return self.commit()

    # -- a turn's steps ------------------------------------------------------------------------------------------

    def _look(self) -> int:
        now_us, wall_us = self.clock.reading_us(), self.clock.wall_us()
        self.keeper.look(reading_us=now_us, wall_us=wall_us)
        if self._looked_us is None or now_us - self._looked_us >= LOOK_US:
            self._looked_us = now_us
            try:
                self._seen = self._environment.look()
            except CatchmentError as error:
                self.journal.say("surroundings unknown", code=error.code, why=error.why, fix=error.fix)
        exchange = None if self.correspondent is None else self.correspondent.exchange
        if exchange is not None:
            exchange.metered(self.around.metered)
        # What the program infers of its sensors, it knows better than the machine.
        self._inferred.update(self.running.parts.told())
        self.around = self._seen.inferred(self._inferred).told(
            connected=exchange is not None and exchange.is_connected, pressure=self._pressure
        )
        return now_us

    def _sense(self, now_us: int, at_us: int) -> None:
        running = self.running
        readings = running.schedule.take(now_us, self.around, TURN_RECORDS, self._room())
        for reading in readings:
            at = at_us if reading.at_us is None else reading.at_us
            self.meter.read(reading.power, now_us)
            try:
                row = reading.row(at)
            except Unfit as error:
                running.schedule.left_out(reading.step, error)
                continue
            running.parts.element(reading.step, at, row)
            self.taken += 1
            if reading.at_us is not None:
                self._reached[reading.step] = max(at, self._reached.get(reading.step, at))
        if readings:
            self._entered = True
            self._collect(now_us)

    def _feed(self, now_us: int, at_us: int) -> None:
        """Results that came down enter the program, each once."""
        if not self._results_wait:
            return
        parts = self.running.parts
        self._results_wait = False
        for name, stream in parts.down.items():
            wire = self.running.wire_name(name)
            moment = self.running.moment_of(name)
            results = self.outbox.results(wire, after=self._fed.get(wire, 0), limit=TURN_RECORDS)
            for result in results:
                at = at_us if moment is None else result.row[moment]
                parts.element(stream.target, at, result.row)
                self._reached[stream.target] = max(at, self._reached.get(stream.target, at))
                self._fed[wire] = result.id
            if results:
                self._entered = True
                self._results_wait = self._results_wait or len(results) == TURN_RECORDS
                if stream.deliver is not None and stream.deliver.keep == "all":
                    self.outbox.forget_results(wire, self._fed[wire] - RESULTS_KEPT)
        self._collect(now_us)

    def _pass_time(self, now_us: int, at_us: int) -> None:
        """What every source step promises now, and a tick for the steps that wait for one."""
        parts, schedule = self.running.parts, self.running.schedule
        for step in schedule.steps:
            # One that is over promises the end of time below, once those that go on have said where they stand.
            if not schedule.recorded(step) and not schedule.is_over(step):
                parts.progress(step, at_us)
            elif (played_us := schedule.played_us(step, now_us)) is not None:
                self._reached[step] = max(played_us, self._reached.get(step, played_us))
        for step, reached_us in self._reached.items():
            parts.progress(step, reached_us)
        self._reached.clear()
        for step in schedule.steps:
            if step not in self._over and schedule.is_over(step):
                self._over.add(step)
                self._entered = True
                parts.progress(step, END_US)
        if parts.waits and (self._ticked_us is None or now_us - self._ticked_us >= TICK_US):
            self._ticked_us = now_us
            parts.tick(at_us)
        self._collect(now_us)

    def _collect(self, now_us: int) -> None:
        running = self.running
        for name, given in running.parts.given().items():
            self.ledger.add(running.wire_name(name), [one.row for one in given], now_us, self._stamp(name))
            self._entered = True
        for name, until_us in running.parts.promised().items():
            self.ledger.promise(running.wire_name(name), until_us, self._stamp(name))
        failures = running.parts.failures()
        self.quarantined += failures.total
        for failure in failures.latest:
            self.journal.say("element quarantined", step=failure.step, reason=failure.reason, row=failure.row)

    def _stamp(self, stream: str) -> Stamp:
        return self.keeper.stamp(recorded=stream in self.running.recorded)

    # -- when ----------------------------------------------------------------------------------------------------

    def _commit_due_us(self) -> int | None:
        if self._retry_us is not None:
            return self._retry_us
        if self._committed_us is None:
            return 0
        return self._committed_us + (COMMIT_US if self._entered else REST_US)

    def _is_commit_due(self, now_us: int) -> bool:
        due_us = self._commit_due_us()
        return (due_us is not None and now_us >= due_us) or (
            self._retry_us is None and self.ledger.records >= TURN_RECORDS
        )

    def _wake_us(self, now_us: int) -> int | None:
        times = [
            now_us + NOTICE_US if self.running.schedule.is_adaptive else None,
            self.running.schedule.due_us(self.around, self._room()),
            self._commit_due_us(),
            now_us if self._results_wait else None,
            None if not self.running.parts.waits or self._ticked_us is None else self._ticked_us + TICK_US,
        ]
        if self.correspondent is not None:
            times.append(self.correspondent.wake_at_us(self._clocks()))
        return min([at_us for at_us in times if at_us is not None], default=None)

    def _room(self) -> dict[str, int]:
        """Of each sensor that can wait, how much there is room for: better later than refused."""
        running = self.running
        patient = [step for step in running.schedule.steps if running.schedule.is_patient(step)]
        if not patient:
            return {}
        if self._retry_us is not None:
            return dict.fromkeys(patient, 0)
        free = {name: self._free(name) for name in running.parts.up}
        return {step: min([TURN_RECORDS, *(free[name] for name in running.reach[step])]) for step in patient}

    def _free(self, name: str) -> int:
        """About how many elements a stream takes before it is full: half of what is left, for an element may make
        two."""
        bound = self.running.parts.up[name].policy.outbox
        wire = self.running.wire_name(name)
        records, size = self.outbox.size(wire)
        if bound.bytes is not None and 2 * size > bound.bytes:
            return 0
        return TURN_RECORDS if bound.records is None else (bound.records - records - self.ledger.waiting(wire)) // 2

    # -- what happened -------------------------------------------------------------------------------------------

    def _happened(self, happenings: Iterable[Happening | PlanGiven]) -> None:
        assert self.correspondent is not None
        for happening in happenings:
            match happening:
                case Told(offset, pressure):
                    self._told(offset, pressure)
                case Arrived(stream, count):
                    self._results_wait = True
                    self.journal.say("results arrived", stream=stream, count=count)
                case Joined(welcome):
                    if welcome.plan and welcome.plan != self.correspondent.plan_tag:
                        self.correspondent.want_plan()
                case PlanGiven():
                    self._follow(self, happening)
                case PlanArrived(fingerprint, payload):
                    self._follow(self, PlanGiven(fingerprint, payload))
                case Trouble(code, what, fix):
                    self.journal.say("trouble", code=code, what=what, fix=fix)
                case Noticed(stream, connected):
                    self.journal.say("connection came" if connected else "connection went", stream=stream)
                case Parted(retry_at_us, gateway):
                    wait_ms = (retry_at_us - self.clock.reading_us()) // 1000
                    self.journal.say("parted", retry_ms=wait_ms, **({"gateway": gateway} if gateway else {}))

    def _told(self, offset: Offset | None, pressure: Pressure | None) -> None:
        if pressure is not None and pressure != self._pressure:
            self._pressure = pressure
            self.journal.say("pressure", lag_us=pressure.lag_us, slow_down=pressure.slow_down)
        if offset is None:
            return
        before_us, was_bridged = self.keeper.offset_us, self.keeper.bridged
        if self.keeper.learn(offset, reading_us=self.clock.reading_us(), wall_us=self.clock.wall_us()):
            self.journal.say(
                "clock placed",
                segment=offset.segment,
                error_us=offset.error_us,
                moved_us=offset.offset_us - before_us,
                was_bridged=was_bridged,
            )

    # -- what there is -------------------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether no sensor has anything more to give, and nothing waits to be sent."""
        schedule = self.running.schedule
        return all(schedule.ended(step) for step in schedule.steps) and not self._entered and not self.backlog()

    def backlog(self) -> int:
        """Elements that are stored, or wait to be, and that no gateway has acknowledged."""
        return self.ledger.records + sum(self.outbox.size(stream)[0] for stream in self.outbox.streams())

    def outbox_results(self, stream: str, after: int) -> list[Result]:
        """Results that came down, as they are stored."""
        return self.outbox.results(stream, after=after, limit=TURN_RECORDS)

    def _standing(self) -> remembered.Standing:
        return remembered.Standing(
            self.running.schedule.positions(), dict(self._fed), self.keeper.memory(), dict(self._inferred)
        )

    def _clocks(self) -> Clocks:
        reading_us = self.clock.reading_us()
        return Clocks(self.keeper.session, reading_us, self.clock.wall_us() - reading_us)

    def _meter_radio(self, now_us: int) -> None:
        assert self.correspondent is not None
        carried = self.correspondent.bytes_sent + self.correspondent.bytes_received
        if carried != self._metered_bytes:
            self.meter.transfer(carried - self._metered_bytes, now_us)
            self._metered_bytes = carried

    def _note_health(self) -> None:
        if self.outbox.health is not self._health:
            self._health = self.outbox.health
            salvaged = self.outbox.salvaged
            self.journal.say("outbox", health=self._health.value, salvaged=None if salvaged is None else str(salvaged))
