"""The demo as a whole: a supervisor with gateway and Spark, processes full of devices, and who may look at them.

    DIR/lock                 the process that runs a demo here, and its address
    DIR/cloud/               as `catchment run --data` has it
    DIR/devices/, recordings/  each device's directory, and what its sensors play
    DIR/fleets/              a directory for each process of devices
    DIR/journals/            what each process says

What runs is what `catchment run` and `catchment device run` run. `close` ends it all in an order that loses nothing:
devices first, then the queries, then the gateway.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from catchment.cloud.cluster import children
from catchment.demo.fleet import Fleet, Playing
from catchment.demo.processes import Child
from catchment.device.control import ask
from catchment.errors import PeerError, ProgramError
from catchment.gateway.page.accounts import OPERATOR
from catchment.gateway.stores import open_accounts, open_enrolment

DAY_US = 86_400_000_000
PASSWORDS = "passwords.json"
EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What demo is wanted."""

    data: Path
    examples: Path
    host: str = "127.0.0.1"
    port: int = 8080
    devices: int = 60
    processes: int = 2
    speed: float = 30.0
    """So many times faster than life the devices live."""
    seed: int = 7
    days: int = 16
    rests: float = 0.12
    """Of how long people stay where they are in life: a demo is to show movement."""
    resume: bool = False
    """Go on where the last demo of this directory stopped."""
    master: str = "local-cluster[2,1,1024]"
    """Two executors in processes of their own, so that one can be killed."""

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{self.host}:{self.port}"


class Stage:
    """Started by `open`, ended by `close`."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.cloud_data = wanted.data / "cloud"
        self.home = self.cloud_data / "programs" / "peir"
        self.passwords: dict[str, str] = {}
        self.cloud: Child | None = None
        self.fleets: list[Child] = []
        self._lock: int | None = None
        self._work: set[Path] = set()
        """Where Spark had executors work: within its own installation, which is no place to leave things."""

    # -- beginning -------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Make sure that this is the only one, and start everything."""
        if not (self.wanted.examples / "peir" / "demo.py").is_file():
            raise ProgramError(
                "E170",
                "the demo's program is not here",
                why=f"{self.wanted.examples} has no peir/demo.py: examples are in the repository, not in the package",
                fix="run it from a checkout, with `make demo`, or name the folder with --examples",
            )
        self._take_lock()
        self._check_port()
        if not self.wanted.resume:
            self._clear()
        tokens = self._introduce()
        program = str(self.wanted.examples / "peir" / "demo.py")
        words = ["catchment", "run", program, "--data", str(self.cloud_data), "--host", self.wanted.host]
        words += ["--port", str(self.wanted.port), "--master", self.wanted.master, "--quick"]
        self.cloud = Child("cloud", words, self._journal("cloud"))
        for number in range(self.wanted.processes):
            self.fleets.append(self._fleet(number, program, tokens))

    def close(self) -> list[str]:
        """End everything; the names of what did not end by itself."""
        stubborn = []
        for fleet in self.fleets:
            fleet.ask_to_stop()
        stubborn += [fleet.name for fleet in self.fleets if not fleet.wait()]
        if self.cloud is not None:
            executors = self.executors()
            self.cloud.ask_to_stop()
            stubborn += [] if self.cloud.wait(60.0) else [self.cloud.name]
            _wait_for_the_end_of(executors)
        for folder in self._work:
            shutil.rmtree(folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        return stubborn

    def _take_lock(self) -> None:
        data = self.wanted.data
        data.mkdir(parents=True, exist_ok=True)
        data.chmod(0o700)
        lock = os.open(data / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 200, 0).decode("ascii", "replace").split()
            os.close(lock)
            where = f"process {holder[0]}, at {holder[1]}" if len(holder) > 1 else "another process"
            raise ProgramError(
                "E171",
                "a demo is running already",
                why=f"{where} runs it in {data}",
                fix="look at that one, or end it with Ctrl-C first; two need a --data and a --port each",
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()} {self.wanted.address}\n".encode(), 0)
        self._lock = lock

    def _check_port(self) -> None:
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((self.wanted.host, self.wanted.port))
            except OSError as error:
                raise PeerError(
                    "E172",
                    f"port {self.wanted.port} is taken",
                    why=f"something else listens on {self.wanted.host}:{self.wanted.port} ({error.strerror})",
                    fix="choose another: make demo PORT=8081, or catchment demo --port 8081",
                ) from None

    def _clear(self) -> None:
        """Begin anew. Only what a demo made is removed."""
        for name in ("cloud", "devices", "recordings", "fleets", "journals"):
            shutil.rmtree(self.wanted.data / name, ignore_errors=True)

    def _introduce(self) -> dict[int, tuple[str, str]]:
        """A token for each device, an account for each user and one for the operator."""
        self.cloud_data.mkdir(parents=True, exist_ok=True)
        kept = self.wanted.data / PASSWORDS
        names = {number: (f"phone-{number:03}", f"user-{number:03}") for number in range(self.wanted.devices)}
        enrolment = open_enrolment(self.cloud_data)
        now_us = time.time_ns() // 1000
        tokens = {
            number: enrolment.token(
                user=user, program="peir", device=device, kind="phone", now_us=now_us, valid_us=DAY_US
            )
            for number, (device, user) in names.items()
        }
        enrolment.close()
        if self.wanted.resume and kept.is_file():
            self.passwords = json.loads(kept.read_bytes())
        else:
            # One of the users is enough to show what users see; the others get an account when somebody asks.
            accounts = open_accounts(self.cloud_data)
            self.passwords = {OPERATOR: accounts.give(OPERATOR, operator=True)}
            self.passwords |= {user: accounts.give(user) for user in ("user-003", "user-004")}
            accounts.close()
            descriptor = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.write(descriptor, json.dumps(self.passwords).encode())
            os.close(descriptor)
        return {number: (device, tokens[number]) for number, (device, _) in names.items()}

    def _fleet(self, number: int, program: str, tokens: dict[int, tuple[str, str]]) -> Child:
        home = self.wanted.data / "fleets" / f"fleet-{number}"
        home.mkdir(parents=True, exist_ok=True)
        wanted = self.wanted
        told = Fleet(
            name=home.name,
            home=str(home),
            data=str(wanted.data / "devices"),
            gateway=wanted.address,
            program=program,
            mobility=Playing(
                module="mobility",
                seed=wanted.seed,
                speed=str(wanted.speed),
                tracks=str(wanted.examples / "data" / "gpx"),
                days=wanted.days,
                rests=wanted.rests,
            ),
            devices={n: who for n, who in tokens.items() if n % wanted.processes == number},
        )
        (home / "fleet.json").write_bytes(msgspec.json.encode(told))
        (home / "fleet.json").chmod(0o600)
        return Child(home.name, ["catchment.demo.fleet", str(home / "fleet.json")], self._journal(home.name))

    def _journal(self, name: str) -> Path:
        return self.wanted.data / "journals" / f"{name}.log"

    # -- what there is to see --------------------------------------------------------------------------------------

    def health(self) -> dict[str, Any] | None:
        """What the gateway says of its health; None while it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.wanted.address}/ready", timeout=2) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except (OSError, ValueError):
            return None

    def status(self) -> dict[str, Any]:
        """What the supervisor says of itself; empty while it has said nothing."""
        try:
            found: dict[str, Any] = json.loads((self.home / "status.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return found

    def ask_fleets(self, question: dict[str, Any]) -> list[dict[str, Any]]:
        """What each process of devices answers; those that do not answer are left out."""
        homes = [self.wanted.data / "fleets" / fleet.name for fleet in self.fleets]
        return [answer for home in homes if home.is_dir() and (answer := ask(home, question)) is not None]

    def spark(self) -> int | None:
        """Spark's own process."""
        if self.cloud is None:
            return None
        found = children(self.cloud.pid, "java")
        return found[0] if found else None

    def executors(self) -> list[int]:
        """The processes of Spark's executors."""
        spark = self.spark()
        found = [] if spark is None else children(spark, EXECUTOR)
        for executor in found:
            with contextlib.suppress(OSError):
                place = Path(f"/proc/{executor}/cwd").resolve().parent
                if place.name.startswith("app-"):
                    self._work.add(place)
        return found


def _wait_for_the_end_of(processes: list[int], within_s: float = 10.0) -> None:
    """Executors end by themselves once their driver has gone; until then the demo has not ended."""
    until = time.monotonic() + within_s
    while time.monotonic() < until and any(Path(f"/proc/{process}").exists() for process in processes):
        time.sleep(0.05)
