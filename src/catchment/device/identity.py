"""Who the device is: its name, whose it is, and the secret that proves it. Got once, for a one-time token.

Promises: the secret is in one file that only this user may read, replaced as a whole and on the disk before it is used;
when the answer to an enrolment is lost, the same token may be shown again. Knows the gateway's enrolment by its paths.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from catchment.device.transport import Reply, Request
from catchment.errors import PeerError, ProgramError

FILE = "identity.json"


class Identified(msgspec.Struct, frozen=True):
    """As the gateway answered."""

    device: str
    user: str
    program: str = ""
    credential: str = ""


def read_identity(path: Path) -> Identified | None:
    """The identity in that file; None if there is no file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Identified)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise ProgramError(
            "D631",
            f"{path.name} does not say who this device is",
            why=str(error),
            fix="restore the file, or remove it and enrol the device again: --token",
        ) from None


def keep_identity(path: Path, identified: Identified) -> None:
    """Write it down, durably, for this user's eyes only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(handle, msgspec.json.encode(identified) + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)
    fresh.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def enrol(ask: Callable[[Request], Reply], *, gateway: str, token: str, device: str) -> Identified | None:
    """Turn a token into an identity; None while the gateway cannot be reached or is not ready."""
    body = msgspec.json.encode({"token": token, "device": device, "kind": "catchment"})
    reply = ask(Request(gateway, "POST", "/v1/enrol", body, {"Content-Type": "application/json"}))
    if reply.status == 201:
        return msgspec.json.decode(reply.body, type=Identified)
    if reply.status in (0, 429) or reply.status >= 500:
        return None
    try:
        said = msgspec.json.decode(reply.body, type=dict[str, str])
    except msgspec.DecodeError:
        said = {"what": f"HTTP {reply.status}: {reply.problem}"}
    raise PeerError(
        "D641",
        f"the gateway did not enrol {device or 'this device'}",
        why=" ".join([said.get(word, "") for word in ("code", "what", "why")]).strip(),
        fix=said.get("fix") or "ask for a new token: catchment gateway token --user NAME",
    )
