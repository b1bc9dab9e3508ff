"""The supervisor of a program's cloud side: plan, gateway, Spark and queries, started and kept as one thing.

    data/log, enrolment.db, downlink.db, …    the gateway's
    data/programs/NAME/lease                   who runs it, and the generation
    data/programs/NAME/plan.json               what it runs
    data/programs/NAME/status.json             what it says of itself
    data/programs/NAME/PART/checkpoint         Spark's, per cloud part
    data/programs/NAME/PART/results            what sinks outside have yet to take

A query that fails starts again from its checkpoint, later each time. A gateway that dies is started again. When the
supervisor dies, however it dies, the gateway and Spark end with it, and the next one goes on where this one was.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from catchment.cloud import lease, query, status
from catchment.cloud.checkpoint import RANGE, mend
from catchment.cloud.children import GatewayProcess
from catchment.cloud.cluster import for_master
from catchment.cloud.flow import COPY, OPTION, PAUSE
from catchment.cloud.keeping import Keeping, keeping_of
from catchment.cloud.latency import Latency
from catchment.cloud.publish import Publisher, Store
from catchment.cloud.quarantine import trim
from catchment.cloud.readers import Owner, reading
from catchment.cloud.said import overheard, reason
from catchment.cloud.sinks.downlink import DownlinkSink
from catchment.cloud.sinks.quarantine import QuarantineSink
from catchment.cloud.sources.checks import check_fed, check_read, is_read
from catchment.cloud.sources.session import with_sources
from catchment.cloud.upgrade import Forms, upgrade
from catchment.engines.spark.session import start_session
from catchment.errors import ProgramError
from catchment.gateway.journal import say
from catchment.gateway.log.files.reader import open_log
from catchment.gateway.stores import open_downlink, open_plans
from catchment.plan import document
from catchment.plan.physical import Part, Plan
from catchment.program import steps
from catchment.program.site import CLOUD, FLEET, REGION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

RESTART_S_MAX = 60.0
LOOP_S = 0.2
BATCH_S_MAX = 30.0
TIDY_S = 3600.0
MOMENT_S = 30.0
PREDECESSOR_S = 15.0
PAUSED = "paused"
"""While this file is in a program's directory, its queries begin no batch."""


class SparkDiedError(Exception):
    """Spark's JVM died. All else was stopped; a fresh process can run the program again, from its checkpoints."""


@dataclass(frozen=True)
class Options:
    """How a program is run."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 8080
    master: str = "local[*]"
    trigger_ms: int = 100
    batch_target_ms: int = 1000
    """How long a batch should last when there is more to do than fits in one: see `flow`."""
    quick: bool = False
    standby: bool = False
    """Wait while another runs the program, and take over."""
    gateway: Sequence[str] = ()
    """Further words for the gateway's command line."""
    silent_s: float = lease.SILENT_S
    """A standby ends a holder that has said nothing for so long."""
    spark: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    """Another directory's log, which is computed from until it is caught up with; no gateway is started."""
    start: str = "earliest"
    """Where in the log a query without a checkpoint begins: earliest, latest or an offset."""


@dataclass
class _Query:
    part: Part
    publisher: Publisher
    keeping: Keeping | None = None
    running: StreamingQuery | None = None
    failures: int = 0
    start_at_s: float = 0.0
    trouble: str = ""
    latency: Latency = field(default_factory=Latency)


class Supervisor:
    """Runs a plan until told to stop."""

    def __init__(
        self,
        plan: Plan,
        options: Options,
        stopping: Callable[[], bool],
        draining: Callable[[], bool] = lambda: False,
    ) -> None:
        """`stopping` says that it was told to stop; `draining`, to compute all that is logged first."""
        check_runs(plan)
        self._plan = plan
        self._options = options
        self._stopping = stopping
        self._draining = draining
        self._home = options.data / "programs" / plan.program
        self._restarts = 0
        self._tidy_at_s = 0.0
        self._cloud_plan = plan
        """With the schemas that what is in the log was written with before an upgrade."""
        self._goal: dict[str, int] = {}
        self._goal_at_s = -MOMENT_S

    def run(self) -> None:
        """Run until told to stop, then stop all that was started, queries at the end of a batch."""
        with contextlib.ExitStack() as ending:
            held = self._lease()
            if held is None:
                return
            ending.callback(held.release)
            for part in self._plan.at(CLOUD):
                owner = Owner(self._plan.program, str(self._options.data.resolve()), os.getpid())
                ending.enter_context(reading(self._log, self._reader(part), owner))
            queries: list[_Query] = []
            ending.callback(lambda: self._say("stopped", held.generation, queries))
            self._say("starting", held.generation, queries)
            self._settle()
            (self._home / PAUSED).unlink(missing_ok=True)
            fence(self._options.data, self._plan.program, held.generation)
            gateway = self._gateway(ending)
            self._say("starting", held.generation, queries)
            # The gateway starts meanwhile, and takes what devices send before Spark is there.
            spark = self._session()
            ending.callback(_quietly, spark.stop)
            if gateway is not None:
                # A predecessor's gateway may still be letting go of the port.
                gateway.wait_ready(patience_s=PREDECESSOR_S)
            parts = [part for part in self._plan.at(CLOUD) if part.inputs or (is_read(part) and gateway is not None)]
            queries += [self._query(spark, part, held.generation) for part in parts]
            ending.callback(self._stop, queries)
            while not self._stopping():
                if gateway is not None:
                    # What is drained takes in nothing more.
                    gateway.stop() if self._draining() else gateway.keep()
                self._keep_all(spark, queries)
                self._tidy()
                self._say("draining" if self._draining() else "running", held.generation, queries)
                if (gateway is None or self._draining()) and self._is_level(queries):
                    break
                time.sleep(LOOP_S)
            self._say("stopping", held.generation, queries)
            self._pause(queries)

    def _tidy(self) -> None:
        """Keep what failed within its bounds."""
        if time.monotonic() >= self._tidy_at_s:
            self._tidy_at_s = time.monotonic() + TIDY_S
            gone = trim(self._options.data / "quarantine" / "programs" / self._plan.program, now_s=time.time())
            if gone:
                say("quarantine_trimmed", program=self._plan.program, files=gone)

    def _lease(self) -> lease.Lease | None:
        if not self._options.standby:
            return lease.take(self._home, self._plan.program)
        say("standing_by", program=self._plan.program)
        return lease.wait(self._home, lambda: self._stopping() or self._draining(), silent_s=self._options.silent_s)

    def _session(self) -> SparkSession:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        name, options = f"catchment {self._plan.program}", self._options
        settings = with_sources(self._plan, {**for_master(options.master), **options.spark})
        with overheard():
            spark = start_session(name, options.master, settings, quick=options.quick)
        for number, handler in handlers.items():  # Spark takes SIGINT for itself
            signal.signal(number, handler)
        return spark

    def _keep_all(self, spark: SparkSession, queries: list[_Query]) -> None:
        for one in queries:
            try:
                self._keep(spark, one)
            except (Py4JError, ConnectionError) as error:
                raise SparkDiedError(str(error)) from error

    def _gateway(self, ending: contextlib.ExitStack) -> GatewayProcess | None:
        """Started, with the plan that devices get from it."""
        if self._options.log is not None:
            return None
        open_plans(self._options.data).publish(self._plan.program, document.write(self._plan))
        gateway = GatewayProcess(self._options.data, self._options.host, self._options.port, self._options.gateway)
        ending.callback(gateway.stop)
        gateway.start()
        return gateway

    @property
    def _log(self) -> Path:
        return self._options.log or self._options.data / "log"

    def _is_level(self, queries: list[_Query]) -> bool:
        """Whether all is computed that was logged a moment ago: where a gateway runs, its log never stands still."""
        now = time.monotonic()
        # What is read from outside has no end that could be waited for.
        logged = [one for one in queries if one.part.inputs]
        if not self._goal or not all(one.running is not None and _reached(one.running, self._goal) for one in logged):
            self._goal = self._goal or self._ends()
            return False
        is_recent = now - self._goal_at_s < MOMENT_S
        self._goal, self._goal_at_s = self._ends(), now
        return is_recent

    def _ends(self) -> dict[str, int]:
        log = open_log(self._log)
        return {str(partition): log.end(partition) for partition in range(log.partitions)}

    def _pause(self, queries: list[_Query]) -> None:
        """Let each query come to the end of its batch, and begin no other."""
        (self._home / PAUSED).touch()
        until = time.monotonic() + BATCH_S_MAX
        for one in queries:
            while one.running is not None and time.monotonic() < until and _is_in_a_batch(one.running):
                time.sleep(0.02)

    def _reader(self, part: Part) -> str:
        """The name under which a part keeps what it has yet to read."""
        name = f"{self._plan.program}.{part.name.replace('@', '.')}"
        return name if self._options.log is None else f"{name}.backfill"

    def _let_go(self) -> None:
        """What was computed from another's log keeps nothing of it any more."""
        if self._options.log is not None:
            for part in self._plan.at(CLOUD):
                open_log(self._log).leave(self._reader(part))

    def _stop(self, queries: list[_Query]) -> None:
        for one in queries:
            if one.running is not None:
                _quietly(one.running.stop)
                one.running, one.trouble = None, "stopped"
            if one.keeping is not None:
                one.keeping.close()
        self._let_go()

    def _settle(self) -> None:
        """Go on from the state that is here, or refuse."""
        path, forms = self._home / "plan.json", self._home / "forms.json"
        known = document.read(path.read_bytes()) if path.exists() else None
        kept = msgspec.json.decode(forms.read_bytes(), type=dict[str, Forms]) if forms.exists() else {}
        made = upgrade(known, kept, self._plan)
        if made.changed:
            say("upgraded", program=self._plan.program, begins=made.began, ends=made.ended)
        for old, new in made.renamed.items():
            (self._home / old).rename(self._home / new)
        self._cloud_plan = made.plan
        for place, written in ((forms, msgspec.json.encode(made.forms)), (path, document.write(made.plan))):
            fresh = place.with_suffix(".tmp")
            fresh.write_bytes(written)
            fresh.replace(place)

    def _query(self, spark: SparkSession, part: Part, generation: int) -> _Query:
        quarantine = self._options.data / "quarantine" / "programs" / self._plan.program / part.name
        stores: list[Store] = [
            DownlinkSink(document.write(self._cloud_plan), str(self._options.data), generation),
            QuarantineSink(str(quarantine)),
        ]
        keeping = keeping_of(spark, self._plan, part, self._home / part.name, quarantine, generation)
        if keeping is None:
            return _Query(part, Publisher(stores))
        return _Query(part, Publisher(stores, keeping.outputs, keeping.output, keeping.more), keeping)

    def _keep(self, spark: SparkSession, one: _Query) -> None:
        if one.running is not None and one.running.isActive:
            one.latency.look(one.running)
            if one.failures and one.running.lastProgress is not None:
                one.failures = 0
            return
        now = time.monotonic()
        if one.running is not None:
            error = one.running.exception()
            one.trouble = reason(str(error)) if error is not None else "ended"
            one.running = None
            one.failures += 1
            self._restarts += 1
            one.start_at_s = now + min(RESTART_S_MAX, 0.5 * 2 ** (one.failures - 1))
            say("query_failed", part=one.part.name, error=one.trouble)
        if now >= one.start_at_s:
            home = self._home / one.part.name
            home.mkdir(exist_ok=True)
            mend(home / "checkpoint", home / RANGE)
            options = {
                "reader": self._reader(one.part),
                "from": self._options.start,
                OPTION: str(self._options.batch_target_ms),
                PAUSE: str(self._home / PAUSED),
                COPY: str(home / RANGE),
            }
            frame = query.results(spark, self._cloud_plan, one.part, str(self._log), options)
            say("query_starts", part=one.part.name, failures=one.failures)
            one.running = query.start(
                frame, one.part.name, str(home / "checkpoint"), one.publisher, every_ms=self._options.trigger_ms
            )

    def _say(self, state: str, generation: int, queries: list[_Query]) -> None:
        said = status.Status(
            program=self._plan.program,
            plan=self._plan.fingerprint,
            generation=generation,
            process=os.getpid(),
            state=state,
            queries={
                one.part.name: "running" if one.running is not None else one.trouble or "starting" for one in queries
            },
            given={f"{one.part.name}/{name}": n for one in queries for name, n in one.publisher.given.items()},
            restarts=self._restarts,
            latency={
                f"{one.part.name}/{name}": delay for one in queries for name, delay in one.latency.outputs().items()
            },
            newest={
                f"{one.part.name}/{name}": spread for one in queries for name, spread in one.latency.newest().items()
            },
            flow={one.part.name: one.latency.flow for one in queries if one.latency.flow is not None},
            sinks={name: how for one in queries if one.keeping for name, how in one.keeping.standings().items()},
        )
        status.write(self._home, said)


def fence(data: Path, program: str, generation: int) -> None:
    """From now on no sink takes anything from an earlier generation."""
    downlink = open_downlink(data)
    try:
        downlink.fence(program, generation)
    finally:
        downlink.close()


def _reached(running: StreamingQuery, ends: Mapping[str, int]) -> bool:
    last = running.lastProgress
    if last is None:
        return False
    reached = json.loads(last["sources"][0]["endOffset"] or "{}")
    return all(reached.get(partition, 0) >= end for partition, end in ends.items())


def _is_in_a_batch(running: StreamingQuery) -> bool:
    try:
        said = running.status
    except (Py4JError, ConnectionError):
        return False
    return running.isActive and bool(said["isTriggerActive"] or said["isDataAvailable"])


def _quietly(stop: Callable[[], None]) -> None:
    """Stop a piece of Spark; where the whole group of processes was told to stop, its JVM may have gone first."""
    try:
        stop()
    except Exception as error:
        say("spark_went_first", error=str(error).partition("\n")[0])


def check_runs(plan: Plan) -> None:
    """Refuse what no site of this version runs, before anything is started."""
    brought = {stream.target for stream in plan.syncs}
    for part in plan.parts:
        if part.site in (REGION, FLEET):
            raise ProgramError(
                "E035",
                f"{part.name} cannot be run yet",
                why=f"steps at {part.site.name} are planned and explained, and run on the reference engine only",
                fix="move its steps to DEVICE or CLOUD with at=",
                at=part.vertices[0].line.source(),
            )
        for vertex in part.vertices:
            if isinstance(vertex.step, steps.External):
                check_read(vertex)
            elif part.site == CLOUD and vertex.id not in brought:
                check_fed(vertex)
