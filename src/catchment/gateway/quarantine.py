"""Quarantine: input that was refused, kept with its reason so that somebody can look.

One JSON line each, in a file per day. It is bounded in all and per device: whoever sends rubbish for a week gets no
more than a share of the space, and what no longer fits is still counted. Knows files; must not know why.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import msgspec

SAMPLE_BYTES_MAX = 64 << 10
"""Of one input, the first so many bytes are kept."""


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line."""

    at: str
    code: str
    why: str
    device: str
    peer: str
    size_bytes: int
    sha256: str
    sample: bytes
    """The input's first bytes, in base64."""


class Quarantine:
    """The directory. One process writes a file: the name carries the gateway's."""

    def __init__(self, directory: Path, *, gateway: str, bytes_max: int = 256 << 20) -> None:
        self._directory = directory
        self._gateway = gateway
        self._bytes_max = bytes_max
        directory.mkdir(parents=True, exist_ok=True)
        self._used = sum([file.stat().st_size for file in directory.glob("*.jsonl")])
        self._by_device: dict[str, int] = {}
        self._encode = msgspec.json.Encoder().encode

    def keep(self, body: bytes | memoryview, *, code: str, why: str, device: str, peer: str, now_us: int) -> bool:
        """Keep an input; whether there was room for it."""
        sample = bytes(body[:SAMPLE_BYTES_MAX])
        now = datetime.fromtimestamp(now_us / 1e6, UTC)
        line = self._encode(
            Kept(now.isoformat(), code, why, device, peer, len(body), hashlib.sha256(body).hexdigest(), sample)
        )
        line += b"\n"
        share = self._bytes_max // 8
        if self._used + len(line) > self._bytes_max or self._by_device.get(device, 0) + len(line) > share:
            return False
        try:
            with (self._directory / f"{now:%Y-%m-%d}.{self._gateway}.jsonl").open("ab") as file:
                file.write(line)
        except OSError:
            # A full disk must not turn a refusal into a failure; the caller counts that nothing was kept.
            return False
        self._used += len(line)
        self._by_device[device] = self._by_device.get(device, 0) + len(line)
        return True

    def trim(self, *, before_us: int) -> None:
        """Delete the days before that instant, and let devices begin anew."""
        first = f"{datetime.fromtimestamp(before_us / 1e6, UTC):%Y-%m-%d}"
        for file in self._directory.glob("*.jsonl"):
            if file.name[:10] < first:
                file.unlink(missing_ok=True)
        self._used = sum([file.stat().st_size for file in self._directory.glob("*.jsonl")])
        self._by_device.clear()
