"""Inside or outside, of what a phone hears of its GSM cell: walls take 10 to 20 dB.

The strongest signal that a cell ever had here stands for being outdoors in it. A phone that hears the cell much more
weakly, twice in a row, is taken to be indoors, until it hears it almost as well again.
"""

from __future__ import annotations

from collections.abc import Iterable

import catchment as cm
from readings import Cell, Indoors

WALL_DB = 12.0
OPEN_DB = 8.0
CELLS_KEPT = 16


class Heard(cm.State):
    """The strongest signal of each cell, and what was concluded."""

    best_dbm: dict[str, float] = {}  # noqa: RUF012  a state's default is copied for each key
    weak: int = 0
    indoors: bool | None = None


class InferIndoors(cm.Process[Cell, Indoors, Heard]):
    """Says it when it changes."""

    def on_element(self, element: Cell, state: Heard, context: cm.Context) -> Iterable[Indoors]:
        """Compare with the best of this cell."""
        best_dbm = max(element.signal_dbm, state.best_dbm.pop(element.cell, element.signal_dbm))
        if len(state.best_dbm) >= CELLS_KEPT:
            state.best_dbm.pop(next(iter(state.best_dbm)))  # the one that was heard longest ago
        state.best_dbm[element.cell] = best_dbm
        below_db = best_dbm - element.signal_dbm
        state.weak = state.weak + 1 if below_db >= WALL_DB else 0
        before = state.indoors
        if state.weak >= 2:
            state.indoors = True
        elif before is None or below_db <= OPEN_DB:
            state.indoors = False
        if state.indoors is None or state.indoors == before:
            return ()
        return (Indoors(user=element.user, at=element.at, indoors=state.indoors),)
