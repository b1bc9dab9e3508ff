"""Deliberate bugs: what the simulator has to find, or it would not find what nobody put there on purpose.

Each is a change of a few words in one function of the product, made in the running process and taken back after. The
words have to be there, once: when the function changes, the mutant has to follow.
"""

from __future__ import annotations

import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Mutant(NamedTuple):
    """A bug."""

    where: str
    """module:Class.function, or module:function."""
    words: str
    instead: str
    seed: int
    """One that is known to find it."""


MUTANTS = {
    "acknowledged before it is on the disk": Mutant(
        "catchment.gateway.log.files.partition:Partition._append_block", "self._file.sync()", "pass", 0
    ),
    "a start reuses the epoch of the one before": Mutant(
        "catchment.sync.outbox.opened:Opened.begin",
        "register.new_epoch(nonce)",
        "max(register.epochs, default=0) or register.new_epoch(nonce)",
        2,
    ),
    "high-water marks do not survive a restart": Mutant(
        "catchment.gateway.log.files.partition:Partition._fold", "self.marks.apply(entry)", "pass", 13
    ),
    "resumes one too far": Mutant(
        "catchment.sync.outbox.queue:Queue.acknowledge", "epoch = ? AND number < ?", "epoch = ? AND number <= ?", 0
    ),
    "sends from one too far": Mutant(
        "catchment.sync.sender:Sender.filled", "max(number, ", "max(number and number + 1, ", 4
    ),
    "takes what it has already": Mutant(
        "catchment.sync.receiver:Receiver.consider",
        "Duplicate(expected))",
        "Accept(expected, 0, opens_epoch=False))",
        17,
    ),
    "takes a frame although one before it is missing": Mutant(
        "catchment.sync.receiver:Receiver.consider", "frame.first != expected", "frame.first < expected", 103
    ),
    "takes numbers of an epoch that is over": Mutant(
        "catchment.sync.receiver:Receiver.consider", "frame.epoch != next(reversed(epochs))", "False", 190
    ),
    "sent before it is durable": Mutant(
        "catchment.sync.outbox.database:Database.transaction", "synchronous=FULL", "synchronous=NORMAL", 55
    ),
    "the newest epoch drains first": Mutant(
        "catchment.sync.outbox.queue:Queue.start", "ORDER BY epoch LIMIT 1", "ORDER BY epoch DESC LIMIT 1", 6
    ),
    "what is sent is forgotten": Mutant(
        "catchment.sync.uplink:Uplink._next_frame",
        "self._positions[stream] = run.after",
        "self._positions[stream] = run.after; self._outbox.acknowledge([Mark(stream, run.epoch, run.upto)])",
        6,
    ),
    "a replaced writer does not look before it acknowledges": Mutant(
        "catchment.gateway.log.files.partition:Partition._append_block",
        "lease.check(self._disk, self.directory, self.lease)\n    offsets",
        "offsets",
        1428,
    ),
    "a result is acknowledged and not kept": Mutant(
        "catchment.sync.outbox.inbox:Inbox.store", "if schema is None:", "if schema is not None:", 2
    ),
    "retention asks only the fastest reader": Mutant(
        "catchment.gateway.log.files.retention:trim", "min(confirmed, default=0)", "1 << 40", 13
    ),
    "losses are not counted": Mutant(
        "catchment.sync.outbox.bounds:_give_up", "{reason} = {reason} + ?", "{reason} = {reason} + 0 * ?", 4
    ),
    "a promise runs ahead of what waits": Mutant(
        "catchment.sync.outbox.queue:Queue._promise_after", "if rest is not None:", "if False:", 10
    ),
}


RARE = {
    "a start trusts the page cache after a failed sync": Mutant(
        "catchment.gateway.log.files.partition:Partition._repair", "if position > behind:", "if False:", 0
    ),
}
"""Bugs for which two misfortunes have to meet within a second: they are looked for with a script, not with seeds."""


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The bug is in the product, until this ends."""
    undo = plant(name)
    try:
        yield
    finally:
        undo()


def plant(name: str) -> Callable[[], None]:
    """Put the bug into the product. Returns what takes it out."""
    mutant = (MUTANTS | RARE)[name]
    module_name, _, path = mutant.where.partition(":")
    module = importlib.import_module(module_name)
    *owners, last = path.split(".")
    owner: Any = module
    for one in owners:
        owner = getattr(owner, one)
    raw = vars(owner)[last]
    source = textwrap.dedent(inspect.getsource(raw.__func__ if isinstance(raw, classmethod) else raw))
    assert source.count(mutant.words) == 1, f"{mutant.where} has these words {source.count(mutant.words)} times: {name}"
    found: dict[str, Any] = {}
    flags = __import__("__future__").annotations.compiler_flag
    exec(compile(source.replace(mutant.words, mutant.instead), mutant.where, "exec", flags), vars(module), found)
    setattr(owner, last, found[last])
    return lambda: setattr(owner, last, raw)
