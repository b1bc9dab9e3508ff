"""Plans: what each program's devices should run, by fingerprint.

A published plan is a file named by its fingerprint, and one small file says which of them is the current one. So a
device that asks while a plan is being published gets the old or the new one, whole; older plans stay, for devices
that run them. Plans are bytes here: what they mean is the planner's and the device's business.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec

from catchment.errors import InternalError, PeerError
from catchment.gateway.log.files.disk import Disk

_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")
PLAN_BYTES_MAX = 64 << 20


class Plan(NamedTuple):
    """A plan as devices get it."""

    fingerprint: str
    body: bytes


class Plans:
    """The plans in a directory."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._bodies: dict[tuple[str, str], bytes] = {}
        self._current: dict[str, tuple[int, str]] = {}
        self._schemas: dict[str, tuple[int, Mapping[str, frozenset[str]]]] = {}

    def publish(self, program: str, body: bytes, *, schemas: Mapping[str, Collection[str]] | None = None) -> str:
        """Make this the program's current plan; its fingerprint. Durable when this returns.

        `schemas` are the fingerprints of the streams that its devices send. With those of earlier plans, whose devices
        still hold data, they are all that a gateway takes; while no plan has said, it takes anything.
        """
        if not _NAME.match(program):
            raise PeerError(
                "G540",
                f"{program!r} cannot be a program's name here",
                why="it names a directory: letters, digits, '.', '_' and '-', at most 100",
                fix="choose such a name: cm.Program(name)",
            )
        fingerprint = hashlib.sha256(body).hexdigest()[:32]
        self._disk.make_directory(f"plans/{program}")
        if schemas is not None:
            known = {stream: set(prints) for stream, prints in self.schemas(program).items()}
            for stream, prints in schemas.items():
                known.setdefault(stream, set()).update(prints)
            listed = {stream: sorted(prints) for stream, prints in sorted(known.items())}
            # Before the plan: a device that has it may send at once.
            self._disk.replace(f"plans/{program}/schemas.json", msgspec.json.encode(listed))
        self._disk.replace(f"plans/{program}/{fingerprint}.plan", body)
        self._disk.replace(f"plans/{program}/current", fingerprint.encode())
        self._current.pop(program, None)
        return fingerprint

    def current(self, program: str) -> str | None:
        """The fingerprint of the current plan, if one was published."""
        if not _NAME.match(program):
            return None
        changed = self._disk.changed(f"plans/{program}")
        known = self._current.get(program)
        if known is not None and known[0] == changed:
            return known[1]
        try:
            fingerprint = self._disk.read(f"plans/{program}/current", 0, 100).decode("ascii", "replace")
        except FileNotFoundError:
            return None
        self._current[program] = (changed, fingerprint)
        return fingerprint

    def schemas(self, program: str, *, look: bool = True) -> Mapping[str, frozenset[str]]:
        """Per stream, the fingerprints that the program's plans have had; empty while none has said.

        Without `look`, as they were when somebody last looked: enough to accept by, not to refuse.
        """
        if not _NAME.match(program):
            return {}
        known = self._schemas.get(program)
        if known is not None and known[1] and not look:
            return known[1]
        changed = self._disk.changed(f"plans/{program}")
        if known is not None and known[0] == changed:
            return known[1]
        try:
            listed = msgspec.json.decode(
                self._disk.read(f"plans/{program}/schemas.json", 0, PLAN_BYTES_MAX), type=dict[str, list[str]]
            )
        except FileNotFoundError:
            listed = {}
        schemas = {stream: frozenset(prints) for stream, prints in listed.items()}
        self._schemas[program] = (changed, schemas)
        return schemas

    def plan(self, program: str) -> Plan:
        """The current plan; `PeerError` if there is none, `InternalError` if its bytes are not the ones published."""
        fingerprint = self.current(program)
        if fingerprint is None:
            raise PeerError(
                "G541",
                f"there is no plan for the program {program!r}",
                why="none was published to this gateway",
                fix="run the program: catchment run PROGRAM.py publishes its plan",
            )
        body = self._bodies.get((program, fingerprint))
        if body is None:
            body = self._disk.read(f"plans/{program}/{fingerprint}.plan", 0, PLAN_BYTES_MAX)
            if hashlib.sha256(body).hexdigest()[:32] != fingerprint:
                raise InternalError(
                    "G542",
                    f"the plan {fingerprint} of {program} is damaged",
                    why="its bytes do not hash to its name",
                    fix="publish the program again: catchment run PROGRAM.py",
                )
            # One program's devices ask for one plan; a handful are kept for those that are asked for together.
            while len(self._bodies) >= 8:
                del self._bodies[next(iter(self._bodies))]
            self._bodies[(program, fingerprint)] = body
        return Plan(fingerprint, body)
