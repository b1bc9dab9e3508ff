"""The page's own files, out of the package: nothing comes from elsewhere, and nothing may run that is not one of them.

Each has a tag by its content, so that a browser asks whether it changed and is told so in a line.
"""

from __future__ import annotations

import hashlib
from importlib import resources

from catchment.gateway import http
from catchment.gateway.http import Answer, Receive, Scope

KINDS = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
SAFE = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"geolocation=(), camera=(), microphone=()"),
)
"""No script, style or frame of anybody else, and none within the document."""


class Asset:
    """One file, read once."""

    def __init__(self, name: str, body: bytes) -> None:
        self._body = body
        self._kind = KINDS[name[name.rindex(".") :]]
        self._tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'

    async def __call__(self, scope: Scope, receive: Receive) -> Answer:
        """The file, or that the browser has it already."""
        headers = (*SAFE, (b"etag", self._tag.encode()), (b"cache-control", b"no-cache"))
        if self._tag in http.header(scope, b"if-none-match"):
            return Answer(304, b"", self._kind, headers)
        return Answer(200, self._body, self._kind, headers)


def assets() -> dict[str, Asset]:
    """Every file by the path at which it is served."""
    folder = resources.files("catchment.gateway.page") / "assets"
    found = {
        f"/page/assets/{file.name}": Asset(file.name, file.read_bytes())
        for file in folder.iterdir()
        if file.name[file.name.rindex(".") :] in KINDS
    }
    return {"/": found["/page/assets/index.html"], **found}
