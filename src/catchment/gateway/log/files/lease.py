"""The lease of a partition: who writes it now, under which generation.

A generation is given once. Whoever takes the lease gets a higher one, and a writer looks at the lease after each
sync and before it acknowledges: if the generation there is not its own, it was replaced and acknowledges nothing. So
two writers may overlap in time, and still only one of them ever says "durable". Expiry is a matter of liveness alone.
"""

from __future__ import annotations

import msgspec

from catchment.errors import InternalError, PeerError
from catchment.gateway.log.files.disk import Disk

LEASE_US = 5_000_000
"""How long a gateway that fell silent keeps a partition."""


class Lease(msgspec.Struct, frozen=True):
    """What the lease file says. `holder` is empty after a clean release."""

    generation: int
    holder: str
    address: str
    expires_us: int


def read(disk: Disk, directory: str) -> Lease:
    """The lease as it stands; generation 0 where nobody has held it yet."""
    path = f"{directory}/lease"
    try:
        data = disk.read(path, 0, 1 << 16)
    except FileNotFoundError:
        return Lease(0, "", "", 0)
    try:
        return msgspec.json.decode(data, type=Lease)
    except msgspec.DecodeError as error:
        raise InternalError(
            "G503",
            f"the lease {path} cannot be read",
            why=str(error),
            fix="delete the file while no gateway runs: generations continue from those of the segments",
        ) from error


def take(
    disk: Disk, directory: str, *, holder: str, address: str, now_us: int, least: int = 0, after: Lease | None = None
) -> Lease:
    """Become the writer, under a new generation above `least`; refused while another holder's lease runs.

    With `after`, only if nobody took the lease since that one: what its holder remembers of the log is still true then.
    """
    with disk.locked(f"{directory}/lease.lock"):
        held = read(disk, directory)
        if after is not None:
            check(disk, directory, after)
        if held.holder not in ("", holder) and held.expires_us > now_us:
            raise PeerError(
                "G504",
                f"{directory} is written by gateway {held.holder} at {held.address}",
                why=f"its lease of generation {held.generation} runs for {(held.expires_us - now_us) / 1e6:.1f} s more",
                fix="ask that gateway, or wait until its lease has run out",
            )
        taken = Lease(max(held.generation, least) + 1, holder, address, now_us + LEASE_US)
        disk.replace(f"{directory}/lease", msgspec.json.encode(taken))
    return taken


def renew(disk: Disk, directory: str, lease: Lease, *, now_us: int) -> Lease:
    """Stay the writer; `PeerError` if another has taken over."""
    with disk.locked(f"{directory}/lease.lock"):
        check(disk, directory, lease)
        renewed = msgspec.structs.replace(lease, expires_us=now_us + LEASE_US)
        disk.replace(f"{directory}/lease", msgspec.json.encode(renewed))
    return renewed


def release(disk: Disk, directory: str, lease: Lease) -> None:
    """Let the next writer in at once; nothing happens if there already is one."""
    with disk.locked(f"{directory}/lease.lock"):
        if read(disk, directory).generation == lease.generation:
            freed = msgspec.structs.replace(lease, holder="", expires_us=0)
            disk.replace(f"{directory}/lease", msgspec.json.encode(freed))


def check(disk: Disk, directory: str, lease: Lease) -> None:
    """`PeerError` unless the lease is still of that generation."""
    now = read(disk, directory)
    if now.generation != lease.generation:
        raise PeerError(
            "G505",
            f"{directory} is no longer ours: generation {now.generation} of {now.holder or 'nobody'} "
            f"replaced generation {lease.generation}",
            why="another gateway took the partition over, as it does when this one falls silent",
            fix=f"ask the gateway at {now.address or 'the address in the lease'}",
        )
