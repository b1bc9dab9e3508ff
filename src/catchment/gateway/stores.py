"""The stores of a gateway: its directory, opened.

    log/            the log, shared with other gateways
    enrolment.db    devices and their users
    accounts.db     who may look at the page
    downlink.db     results on their way to devices
    plans/          what devices should run
    quarantine/     input that was refused

Gateways that share a log share this directory. `Options` is everything that a gateway is told when it starts.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from catchment.gateway.downlink import Downlink
from catchment.gateway.enrolment import Enrolment
from catchment.gateway.limits import GatewayLimits
from catchment.gateway.log.files import layout
from catchment.gateway.log.files.commit import TICKS, Deliver, Ticks
from catchment.gateway.log.files.disk import Disk, LocalDisk
from catchment.gateway.log.files.log import FileLog
from catchment.gateway.log.files.partition import Limits
from catchment.gateway.page.accounts import Accounts
from catchment.gateway.plans import Plans
from catchment.gateway.pressure import CALM_US
from catchment.gateway.quarantine import Quarantine


@dataclass(frozen=True, slots=True)
class Options:
    """What a gateway is told."""

    data: Path
    name: str = "gateway"
    address: str = "http://127.0.0.1:8080"
    """Where devices reach it: what the others answer with when a device asks the wrong one."""
    partitions: int = layout.PARTITIONS
    limits: GatewayLimits = field(default_factory=GatewayLimits)
    log: Limits = field(default_factory=Limits)
    ticks: Ticks = TICKS
    calm_us: int = CALM_US
    """Devices are told to slow down once the cloud is further behind than this."""
    result_days: int = 30
    """How long results of keep=ALL wait for a device that never comes."""
    quarantine_days: int = 30


def clock_us() -> int:
    """The gateway's clock. Its steps do no harm to order: marks and offsets do not depend on it."""
    return time.time_ns() // 1000


def _salt() -> int:
    return secrets.randbits(32)


def _secret() -> str:
    # Hexadecimal: one that began with a dash would be taken for an option by the command that it is given to.
    return secrets.token_hex(32)


def _password() -> str:
    return secrets.token_urlsafe(18)


class Stores:
    """Everything a gateway keeps."""

    def __init__(
        self,
        options: Options,
        *,
        clock_us: Callable[[], int] = clock_us,
        deliver: Deliver | None = None,
        log_disk: Disk | None = None,
    ) -> None:
        data = options.data
        data.mkdir(parents=True, exist_ok=True)
        # Credentials' hashes, positions of people: for the gateway's user alone.
        data.chmod(0o700)
        self.options = options
        self.log = FileLog(
            log_disk or LocalDisk(data / "log"),
            name=options.name,
            address=options.address,
            clock_us=clock_us,
            salt=_salt,
            deliver=deliver,
            partitions=options.partitions,
            limits=options.log,
            ticks=options.ticks,
        )
        self.enrolment = open_enrolment(data)
        self.downlink = open_downlink(data, durable=False)
        self.plans = open_plans(data)
        self.quarantine = Quarantine(data / "quarantine", gateway=options.name)

    def free_bytes(self) -> int:
        """What can still be written to the log's disk."""
        return shutil.disk_usage(self.options.data).free

    def close(self) -> None:
        """Finish what was submitted and close everything."""
        self.log.close()
        self.enrolment.close()
        self.downlink.close()


def open_enrolment(data: Path) -> Enrolment:
    """The devices of the gateway in that directory, for the command line too."""
    return Enrolment(data / "enrolment.db", secret=_secret)


def open_accounts(data: Path) -> Accounts:
    """Who may look at the page of the gateway in that directory, for the command line too."""
    return Accounts(data / "accounts.db", secret=_password, salt=lambda: secrets.token_bytes(16))


def open_downlink(data: Path, *, durable: bool = True) -> Downlink:
    """The results of the gateway in that directory: a sink opens it as it is, the gateway without `durable`."""
    return Downlink(data / "downlink.db", nonce=secrets.token_bytes(16), durable=durable)


def open_plans(data: Path) -> Plans:
    """The plans of the gateway in that directory, for whoever publishes one."""
    return Plans(LocalDisk(data))
