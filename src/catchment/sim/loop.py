"""An asyncio event loop on the simulator's clock, so that code written for asyncio runs in it unchanged.

Promises: callbacks run in the order that asyncio gives them; a timer never fires early; a function for a thread runs
as an event of its own, on a strand of its own, so that it can be held by a slow disk while the loop goes on. Nothing
runs any more once the process is dead. Only what a service needs is there: no sockets, no signals, no subprocesses.

`grain_us` is how late a timer may fire: a loop with a coarse grain wakes a chore of every 25 ms once a second. That is
allowed to any loop, and it is what makes an idle minute cheap.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
from collections.abc import Callable, Coroutine
from typing import Any, cast

from catchment.sim.clock import Clock, Killed, Timer
from catchment.sim.process import Process


class _Handle(asyncio.TimerHandle):
    """A handle that asyncio can cancel."""

    timer: Timer | None = None

    def cancel(self) -> None:
        super().cancel()
        if self.timer is not None:
            self.timer.cancel()


class VirtualLoop:
    """The loop of one life of a process."""

    def __init__(self, clock: Clock, process: Process, *, grain_us: int = 1) -> None:
        self._clock = clock
        self._process = process
        self._strand = process.strand
        self.grain_us = grain_us
        self._tasks: dict[asyncio.Task[Any], None] = {}
        # Asyncio asks for the methods below and no more; the rest of its interface is for sockets and signals.
        self._as_loop = cast(asyncio.AbstractEventLoop, self)
        self.failures: list[dict[str, Any]] = []
        """What asyncio would have written about: exceptions that nobody took."""

    # -- running ---------------------------------------------------------------------------------------------------

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Begin a coroutine as a task of this loop, from outside of it."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self._as_loop)
        try:
            return self.create_task(coroutine)
        finally:
            asyncio._set_running_loop(before)

    def close(self) -> None:
        """The process is dead: what its tasks were doing is forgotten, without another step."""
        tasks, self._tasks = self._tasks, {}
        for task in tasks:
            if not task.done():
                # It will not be done, and asyncio need not say so.
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                with contextlib.suppress(BaseException):
                    # Here and now, not whenever memory is tidied. One that is running ends by what was raised in it.
                    task.get_coro().close()

    def _run_handle(self, handle: asyncio.Handle) -> None:
        if not handle.cancelled():
            before = asyncio._get_running_loop()
            asyncio._set_running_loop(self._as_loop)
            try:
                handle._run()
            finally:
                asyncio._set_running_loop(before)

    # -- what asyncio asks of a loop -------------------------------------------------------------------------------

    def time(self) -> float:
        return self._clock.now_us / 1e6

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self._as_loop, context)
        self._clock.after(0, functools.partial(self._run_handle, handle), self._strand)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        handle = _Handle(when, callback, args, self._as_loop, context)
        grain = self.grain_us
        when_us = -(-round(when * 1e6) // grain) * grain
        handle.timer = self._clock.at(when_us, functools.partial(self._run_handle, handle), self._strand)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self._as_loop)

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None, **more: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self._as_loop, name=name, context=context, **more)
        self._tasks[task] = None
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """A thread: its function runs as an event of its own, which may be held while the loop goes on."""
        future = self.create_future()

        def settle(result: Any, error: BaseException | None) -> None:
            if not future.done():
                if error is not None:
                    future.set_exception(error)
                else:
                    future.set_result(result)

        def work() -> None:
            try:
                result, error = func(*args), None
            except Killed:
                raise
            except BaseException as raised:
                result, error = None, raised
            self.call_soon(settle, result, error)

        self._clock.after(0, work, self._process.new_strand())
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._process.alive:
            self.failures.append(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return not self._process.alive

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Asyncio tells its own loops; here, the timer knows."""
