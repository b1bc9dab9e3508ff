"""The certificate of a demo: the log computed again by other engines, and compared with what the devices hold.

    python -m catchment.demo.certificate DIR EXAMPLES

Two comparisons, both by the reliability verifier, each stream of each device or user on its own:

- **up**: every number that a device's outbox has given to an element, against the numbers in the log;
- **down**: what the cloud part gives for the log, by the reference engine, against the results that the user's device
  holds. Of streams that keep every result, each of them; the order is that of arrival. Of users for whom the
  reference engine has no time, what the edge engine gives entry by entry; the certificate says of how many.

While it is computed the demo goes on: results that came of what was logged later are compared with what they came of.
What has no instants to compare (a device's results do not say when they came) makes no claim about delay.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from catchment.demo.judge import Due, judged
from catchment.demo.phone import place
from catchment.device.control import ask
from catchment.engines.edge import EdgeEngine
from catchment.errors import ProgramError
from catchment.gateway.log.entry import NO_INSTANT, Entry, Kind, Online
from catchment.gateway.log.files.reader import open_log
from catchment.gateway.stores import open_plans
from catchment.plan import document, history
from catchment.plan.history import Source
from catchment.plan.physical import Plan
from catchment.plan.portable import outgoing
from catchment.program.reliability import IN_STREAM_ORDER, LOSSLESS
from catchment.program.site import CLOUD
from catchment.program.types import Instant, Row, Schema
from catchment.program_file import load_program
from catchment.reliability import Certificate, Element, certify, verify
from catchment.sync.codecs import codec

SETTLE_S = 8.0
"""From the end of what is computed to the question what devices hold: Spark's batches and the devices' polling."""
ARRIVE_S = 60.0
JUDGE_S = 60.0
"""So long the reference engine may take."""
Numbers = dict[str, list[int]]


class Ideal:
    """What the cloud part gives for the log, entry by entry."""

    def __init__(self, plan: Plan) -> None:
        self.given: dict[str, dict[str, list[Row]]] = {}
        """By delivered stream and user, in the order of the log."""
        self.arrived: Numbers = {}
        """By device, stream and epoch, the numbers in the log."""
        self.log: list[tuple[str | None, history.Entry]] = []
        """What entered the part, and whose it is."""
        self.outputs: dict[str, tuple[str, int]] = {}
        """Where the delivered streams come out."""
        self.entries = self.elements = 0
        self.plan = plan
        (part,) = [part for part in plan.at(CLOUD) if part.inputs]
        self.graph = plan.graph(part)
        self._engine = EdgeEngine(self.graph)
        self._inputs = {
            f"{plan.program}/{name}": (plan.sync(name).target, plan.schemas[plan.sync(name).schema])
            for name in part.inputs
        }
        for stream in plan.syncs:
            if stream.deliver is not None and stream.deliver.keep == "all":
                schema = plan.schemas[stream.schema]
                self.given[stream.name] = {}
                self.outputs[stream.name] = stream.source
                self._follow(stream.name, stream.source, schema.position(stream.deliver.by))

    def _follow(self, name: str, port: tuple[str, int], whom: int) -> None:
        def take(number: int, at: int, source: Source, row: Row) -> None:
            self.given[name].setdefault(str(row[whom]), []).append(row)

        self._engine.on_output(port, take)

    def take(self, entry: Entry) -> None:
        """One more entry of the log."""
        self.entries += 1
        source = Source(entry.device, entry.user or None)
        match entry.kind:
            case Kind.TICK:
                self.log.append((None, history.Tick(entry.received_us)))
                self._engine.tick(entry.received_us)
            case Kind.PRESENCE:
                self._presence(source, None if entry.count == Online.ONLINE else entry.base_us)
            case Kind.JOINED:
                self._presence(source, None)
            case Kind.DATA | Kind.PROMISE if entry.stream in self._inputs:
                step, schema = self._inputs[entry.stream]
                if entry.kind == Kind.DATA:
                    self._data(entry, step, schema, source)
                if entry.promise_us != NO_INSTANT:
                    self.log.append((entry.user, history.Progress(step, source, entry.promise_us)))
                    self._engine.progress(step, source, entry.promise_us)

    def judge(self, upto: int) -> dict[str, Due]:
        """What the reference engine gives for so many entries of the part, by user."""
        return judged(self.graph, self.outputs, self.log[:upto], within_s=JUDGE_S / 2)

    def _presence(self, source: Source, since: int | None) -> None:
        self.log.append((source.owner, history.Presence(source, since)))
        self._engine.presence(source, since)

    def _data(self, entry: Entry, step: str, schema: Schema, source: Source) -> None:
        self.elements += entry.count
        nonce = entry.epoch_nonce.to_bytes(8, "little", signed=True)
        start = place(entry.device, entry.stream, entry.epoch_counter, nonce)
        self.arrived.setdefault(start, []).extend(range(entry.first, entry.upto))
        if not entry.count:
            return
        at = schema.position(schema.event_time) if schema.event_time is not None else None
        for row in codec(entry.codec).decode(schema, bytes(entry.payload)):
            values: list[Any] = [
                entry.device if field.stamp == "device" else entry.user if field.stamp == "user" else value
                for field, value in zip(schema.fields, row, strict=True)
            ]
            if at is not None:
                values[at] += entry.shift_us
            element = history.Element(step, entry.base_us if at is None else values[at], source, tuple(values))
            self.log.append((entry.user, element))
            self._engine.element(step, element.at, source, element.row)


def numbered(fleets: Path) -> dict[str, int]:
    """Of each device, stream and start, how many numbers its outbox has given."""
    found: dict[str, int] = {}
    for home in sorted(fleets.iterdir()):
        found |= (ask(home, {"ask": "numbered"}) or {}).get("numbered", {})
    return found


def held(fleets: Path, plan: Plan) -> dict[str, dict[str, list[tuple[Any, ...]]]]:
    """Of each delivered stream and user, the results that devices hold, in the order in which they came."""
    found: dict[str, dict[str, list[tuple[Any, ...]]]] = {}
    for home in sorted(fleets.iterdir()):
        answer = ask(home, {"ask": "results"}) or {}
        for results in answer.get("results", {}).values():
            for result in results:
                stream, row = result["stream"], result["row"]
                deliver = plan.sync(stream).deliver
                assert deliver is not None
                found.setdefault(stream, {}).setdefault(str(row[deliver.by]), []).append(tuple(row.values()))
    return found


def compared(
    ideal: Ideal,
    before: dict[str, dict[str, int]],
    real: dict[str, dict[str, list[tuple[Any, ...]]]],
    up: dict[str, int],
) -> Iterator[tuple[str, list[Element], list[Element]]]:
    """Each stream with what was due and what came. `before` says how much was due when the comparison began."""
    for start, count in up.items():
        due = [Element(number, None, Instant(number)) for number in range(count)]
        arrived = [number for number in ideal.arrived.get(start, []) if number < count]
        yield start, due, [Element(number, None, Instant(order)) for order, number in enumerate(arrived)]
    for stream, by_user in ideal.given.items():
        schema = ideal_schema(ideal, stream)
        for user in sorted({*by_user, *real.get(stream, {})}):
            rows = [as_held(row, schema) for row in by_user.get(user, [])]
            came = real.get(stream, {}).get(user, [])
            # What was logged since may be held already, or not yet: neither is a fault.
            due_rows = rows[: max(before.get(stream, {}).get(user, 0), min(len(came), len(rows)))]
            due = [Element(number, row, Instant(number)) for number, row in enumerate(due_rows)]
            yield (
                f"{stream} → {user}",
                due,
                [Element(number, row, Instant(number)) for number, row in enumerate(came)],
            )


def ideal_schema(ideal: Ideal, stream: str) -> Schema:
    """What a delivered stream carries."""
    plan = ideal.plan
    return plan.schemas[plan.sync(stream).schema]


def as_held(row: Row, schema: Schema) -> tuple[Any, ...]:
    """A row as a device's results are told."""
    return tuple(outgoing(value, field.type) for value, field in zip(row, schema.fields, strict=True))


def check_whole(starts: dict[int, int]) -> None:
    """Refuse a log of which something was let go already: what is left would lead to something else."""
    if any(starts.values()):
        raise ProgramError(
            "E174",
            "the log of this demo does not begin at its beginning",
            why="what every reader had confirmed was let go of, as after a restart",
            fix="start a demo anew, without --resume, and ask before it is restarted",
        )


def certificate(data: Path) -> tuple[Certificate, Ideal, int]:
    """Read the log, compute it, ask the devices, compare; and how many users the reference engine judged."""
    cloud = data / "cloud"
    plan = document.read(open_plans(cloud).plan("peir").body)
    log = open_log(cloud / "log")
    ideal = Ideal(plan)
    up = numbered(data / "fleets")
    reached = {partition: log.start(partition) for partition in range(log.partitions)}
    check_whole(reached)

    def read_on() -> None:
        for partition, start in reached.items():
            reached[partition] = end = log.end(partition)
            for _, entry in log.read(partition, start, end):
                ideal.take(entry)

    read_on()
    before = {stream: {user: len(rows) for user, rows in users.items()} for stream, users in ideal.given.items()}
    settled_s = time.monotonic() + SETTLE_S
    was_due = ideal.judge(len(ideal.log))
    time.sleep(max(0.0, settled_s - time.monotonic()))
    # What devices have numbered may be under way: what has not come after a while has not come.
    until_s = time.monotonic() + ARRIVE_S
    while any(len(ideal.arrived.get(start, ())) < count for start, count in up.items()):
        if time.monotonic() > until_s:
            break
        time.sleep(1.0)
        read_on()
    real = held(data / "fleets", plan)
    read_on()
    is_due = ideal.judge(len(ideal.log))
    by_reference = was_due.keys() & is_due.keys()
    for user in by_reference:
        for stream in ideal.given:
            ideal.given[stream][user] = is_due[user][stream]
            before[stream][user] = len(was_due[user][stream])
    streams = list(compared(ideal, before, real, up))
    report = verify({name: due for name, due, _ in streams}, {name: came for name, _, came in streams})
    users = {user for user, _ in ideal.log if user is not None}
    by_edge = len(users) - len(by_reference)
    subject = (
        f"the demo in {data.name}, program {plan.program}; of its {len(users)} users {len(by_reference)} were judged "
        f"by the reference engine, {by_edge} by that of devices; instants are places in the order, and say no delay"
    )
    return certify(LOSSLESS & IN_STREAM_ORDER, report, subject=subject), ideal, len(by_reference)


def main() -> int:
    """Write the certificate, and what a page shows of it."""
    os.nice(10)
    data, examples = Path(sys.argv[1]), Path(sys.argv[2])
    load_program(str(examples / "peir" / "demo.py"))  # the code that the plan names
    began_s = time.monotonic()
    found, ideal, by_reference = certificate(data)
    shown = {
        "kept": found.kept,
        "entries": ideal.entries,
        "elements": ideal.elements,
        "took_s": round(time.monotonic() - began_s, 1),
        "streams": len(found.report.streams),
        "users": len({user for user, _ in ideal.log if user is not None}),
        "by_reference": by_reference,
        "measured": msgspec.to_builtins(found.report.measured),
        "declared": str(found.declared),
        "text": found.text(),
    }
    fresh = data / "certificate.tmp"
    fresh.write_bytes(msgspec.json.encode(shown))
    (data / "certificate.full.json").write_bytes(found.to_json())
    fresh.replace(data / "certificate.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
