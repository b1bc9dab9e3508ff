"""What Spark's Python workers spare themselves: looking for garbage, after each task, in all that they have loaded.

A worker lives for many tasks and calls `gc.collect()` after each. Modules, plans and engines are several hundred
thousand objects that never become garbage: walking over them took more time than the tasks of a small batch.
"""

from __future__ import annotations

import gc

_TASKS = 3
"""A worker has loaded all that it needs after so many tasks; a later one that loads more pays for that alone."""
_done = 0


def settle() -> None:
    """Say at the end of a task that what is loaded now stays."""
    global _done
    if _done < _TASKS:
        _done += 1
        gc.collect()
        gc.freeze()
