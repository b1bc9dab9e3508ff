"""What a world raises when something that was promised did not hold."""

from __future__ import annotations


class Broken(AssertionError):  # noqa: N818  what it is, not what kind of thing
    """A promise, by name, and how it was broken."""

    def __init__(self, promise: str, how: str) -> None:
        self.promise = promise
        self.how = how
        super().__init__(f"{promise}: {how}")
