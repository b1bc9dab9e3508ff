"""A database that is open: its queue, inbox and register, and the epoch that is under way.

Promises: the new epoch is durable before anything can be appended to it; a database on which it cannot be begun is
closed again.
"""

from __future__ import annotations

from dataclasses import dataclass

from catchment.sync.frame import Epoch
from catchment.sync.outbox.database import Database
from catchment.sync.outbox.inbox import Inbox
from catchment.sync.outbox.queue import Queue
from catchment.sync.outbox.register import Register


@dataclass(frozen=True, slots=True)
class Opened:
    """What an outbox works on, from one opening of its database to the next."""

    database: Database
    register: Register
    queue: Queue
    inbox: Inbox

    @property
    def epoch(self) -> Epoch:
        """What is appended now is numbered in this one."""
        return self.register.epochs[self.queue.epoch]

    @classmethod
    def begin(cls, database: Database, nonce: bytes) -> Opened:
        """Open a new epoch."""
        try:
            register = Register(database)
            with database.transaction():
                epoch = register.new_epoch(nonce)
                register.sweep(epoch)
            queue = Queue(database, register, epoch)
        except BaseException:
            database.close()
            raise
        return cls(database, register, queue, Inbox(database, register))
