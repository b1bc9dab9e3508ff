"""What a hello and a gateway agree on, and the welcome that says so. Pure."""

from __future__ import annotations

from catchment.errors import PeerError
from catchment.gateway.limits import GatewayLimits
from catchment.gateway.uplink import Uplink
from catchment.sync.frame import VERSIONS, Hello, Welcome
from catchment.sync.parts import Pressure

COMPRESSIONS = ("zstd", "deflate")
"""What the cloud can unpack, the best first."""


def agree(hello: Hello) -> int:
    """The version that both speak; refused if there is none."""
    version = next((version for version in VERSIONS if version in hello.versions), None)
    if version is None:
        raise PeerError(
            "G577",
            "there is no version of the protocol that both sides speak",
            why=f"this gateway speaks {', '.join(map(str, VERSIONS))}; the hello offers "
            f"{', '.join(map(str, hello.versions)) or 'none'}",
            fix="upgrade the older side",
        )
    return version


def welcome(
    hello: Hello,
    *,
    token: bytes,
    uplink: Uplink,
    pressure: Pressure | None,
    plan: str,
    limits: GatewayLimits,
    gateway: str,
    generation: int,
) -> Welcome:
    """The answer to a hello that was let in.

    The gateway opens no payload, so it takes every codec that the device names: an author's own is decoded where the
    program runs. Compressions are those that are always there.
    """
    return Welcome(
        hello.nonce,
        token=token,
        version=agree(hello),
        codecs=hello.codecs,
        compressions=tuple([name for name in COMPRESSIONS if name in hello.compressions]) or ("deflate",),
        marks=uplink.marks(),
        offset=uplink.offset(),
        pressure=pressure,
        plan=plan,
        frame_bytes_max=limits.frame_bytes,
        gateway=gateway,
        generation=generation,
    )
