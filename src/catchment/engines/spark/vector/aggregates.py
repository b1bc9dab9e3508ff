"""Aggregates of many elements at once, as parts that add up or of which the least or greatest counts.

Only aggregates that are exact, so that how elements are grouped cannot change a bit: `count`; `sum` and `mean` of whole
numbers and of floats with a step; `min` and `max`. Sums are 64-bit integers while they fit and Python's beyond, and
values that are not finite are counted apart, as `operators.aggregates.exact` does, whose results these are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from catchment.engines.spark.rows import Array, Column
from catchment.engines.spark.vector_expressions import VectorExpressions
from catchment.operators.aggregates.choose import aggregate_of
from catchment.operators.aggregates.exact import ExactMean, ExactSum
from catchment.program.aggregate import NamedAggregate
from catchment.program.nodes import Node
from catchment.program.row_error import RowError
from catchment.program.types import DURATION, FLOAT, INSTANT, INT, Schema
from catchment.program.typing import infer

Part = Array | None
"""A part that is None is zero everywhere: nobody has met an odd value yet."""

_SAFE = 2.0**62
_WHOLE = (INT, INSTANT, DURATION)
_ODD = 4


def vectorised(named: Sequence[NamedAggregate], schema: Schema) -> bool:
    """Whether these aggregates have a vectorised form."""
    return all(_of(one, schema) is not None for one in named)


class _Vector(ABC):
    """One aggregate: its parts and what they combine by."""

    operations: tuple[np.ufunc, ...] = ()

    @abstractmethod
    def parts(self, column: Column | None, count: int) -> list[Part]:
        """The parts of each element."""

    @abstractmethod
    def empty(self, count: int) -> list[Part]:
        """The parts of so many summaries of nothing."""

    @abstractmethod
    def result(self, parts: list[Part]) -> tuple[Column, dict[int, str]]:
        """The value of each summary, and why some fail."""


class _Count(_Vector):
    operations = (np.add,)

    def parts(self, column: Column | None, count: int) -> list[Part]:
        return [np.ones(count, np.int64)]

    def empty(self, count: int) -> list[Part]:
        return [np.zeros(count, np.int64)]

    def result(self, parts: list[Part]) -> tuple[Column, dict[int, str]]:
        return Column(_present(parts[0])), {}


class _Exact(_Vector):
    """How many, their sum in steps, and how many were NaN, infinite, infinite downward, or too large."""

    operations = (np.add,) * (2 + _ODD)

    def __init__(self, exact: ExactSum | ExactMean) -> None:
        self._exact = exact
        self._mean = isinstance(exact, ExactMean)

    def parts(self, column: Column | None, count: int) -> list[Part]:
        assert column is not None
        valid = column.valid
        n = np.ones(count, np.int64) if valid is None else valid.astype(np.int64)
        values = column.values if valid is None else np.where(valid, column.values, 0)
        step = self._exact.step
        if step is None:
            return [n, values, *[None] * _ODD]
        inverse = self._exact._inverse
        with np.errstate(all="ignore"):
            scaled = values * inverse if inverse is not None else values / step
        if (np.abs(scaled) < _SAFE).all():
            return [n, np.rint(scaled).astype(np.int64), *[None] * _ODD]
        return [n, *self._oddly(values.tolist())]

    def _oddly(self, values: list[float]) -> list[Part]:
        steps: list[int] = []
        odd: list[list[int]] = []
        for value in values:
            summary = self._exact.empty()
            self._exact.add(summary, value, 0, None)
            steps.append(summary[1])
            odd.append(summary[2] or [0] * _ODD)
        counted = np.array(odd, np.int64).reshape(len(values), _ODD)
        return [_whole(steps), *(counted[:, which] for which in range(_ODD))]

    def empty(self, count: int) -> list[Part]:
        return [np.zeros(count, np.int64), np.zeros(count, np.int64), *[None] * _ODD]

    def result(self, parts: list[Part]) -> tuple[Column, dict[int, str]]:
        n, steps = _present(parts[0]), _present(parts[1])
        some = n > 0
        valid = None if some.all() else some
        odd = any(part is not None and part.any() for part in parts[2:])
        exact = steps.dtype != object and (not self._mean or bool((np.abs(steps.astype(np.float64)) < 2.0**53).all()))
        if odd or not exact:
            return self._one_by_one(n, steps, parts[2:])
        step, inverse = self._exact.step, self._exact._inverse
        if step is None:
            return Column(steps / np.maximum(n, 1) if self._mean else steps, valid), {}
        total = steps / inverse if inverse is not None else steps * step
        return Column(total / np.maximum(n, 1) if self._mean else total, valid), {}

    def _one_by_one(self, n: Array, steps: Array, odd: list[Part]) -> tuple[Column, dict[int, str]]:
        zeros = np.zeros(len(n), np.int64)
        columns = [(zeros if part is None else part).tolist() for part in odd]
        values: list[Any] = []
        reasons: dict[int, str] = {}
        for number, (count, whole) in enumerate(zip(n.tolist(), steps.tolist(), strict=True)):
            strange = [column[number] for column in columns]
            try:
                values.append(self._exact.result([count, whole, strange if any(strange) else None]))
            except RowError as error:
                values.append(None)
                reasons[number] = error.reason
        valid = None
        if None in values:
            valid = np.array([value is not None for value in values], np.bool_)
        dtype = np.int64 if not self._mean and self._exact.step is None else np.float64
        return Column(np.array([0 if value is None else value for value in values], dtype), valid), reasons


class _Extreme(_Vector):
    """How many, and the least or the greatest."""

    def __init__(self, largest: bool, of_floats: bool) -> None:
        # NaN is the largest: fmin passes over it unless there is nothing else, maximum does not.
        self.operations = (np.add, np.maximum if largest else np.fmin if of_floats else np.minimum)
        self._dtype = np.float64 if of_floats else np.int64
        if of_floats:
            self._none: Any = -np.inf if largest else np.nan
        else:
            self._none = -(2**63) if largest else 2**63 - 1

    def parts(self, column: Column | None, count: int) -> list[Part]:
        assert column is not None
        valid = column.valid
        # -0.0 is 0.0, whichever of the two comes first.
        values = column.values + 0.0 if self._dtype == np.float64 else column.values
        if valid is None:
            return [np.ones(count, np.int64), values]
        return [valid.astype(np.int64), np.where(valid, values, np.array(self._none, self._dtype))]

    def empty(self, count: int) -> list[Part]:
        return [np.zeros(count, np.int64), np.full(count, self._none, self._dtype)]

    def result(self, parts: list[Part]) -> tuple[Column, dict[int, str]]:
        some = _present(parts[0]) > 0
        return Column(_present(parts[1]), None if some.all() else some), {}


class VectorAggregates:
    """Aggregates of elements of a schema."""

    def __init__(self, named: Sequence[NamedAggregate], schema: Schema) -> None:
        found = [_of(one, schema) for one in named]
        self._aggregates = [one for one in found if one is not None]
        nodes: list[Node] = []
        self._which: list[int | None] = []
        for one in named:
            self._which.append(len(nodes) if one.call.args else None)
            nodes += one.call.args
        self.expressions = VectorExpressions(schema, nodes)
        self.operations = [operation for one in self._aggregates for operation in one.operations]

    def parts(self, columns: Sequence[Column], count: int) -> list[Part]:
        """The parts of each element, given the values of its expressions."""
        found: list[Part] = []
        for one, which in zip(self._aggregates, self._which, strict=True):
            found += one.parts(None if which is None else columns[which], count)
        return found

    def empty(self, count: int) -> list[Part]:
        """The parts of so many summaries of nothing."""
        return [part for one in self._aggregates for part in one.empty(count)]

    def results(self, parts: list[Part]) -> tuple[list[Column], dict[int, str]]:
        """The value of each aggregate, and why rows fail: the first one's reason."""
        columns: list[Column] = []
        failed: dict[int, str] = {}
        start = 0
        for one in self._aggregates:
            end = start + len(one.operations)
            column, reasons = one.result(parts[start:end])
            columns.append(column)
            failed = {**reasons, **failed}
            start = end
        return columns, failed


def _of(one: NamedAggregate, schema: Schema) -> _Vector | None:
    if one.call.function == "count":
        return _Count()
    kind = infer(one.call.args[0], (schema,)).type if one.call.args else None
    if one.call.function in ("sum", "mean"):
        exact = aggregate_of(one, schema, None)
        return _Exact(exact) if isinstance(exact, ExactSum | ExactMean) else None
    if one.call.function in ("min", "max") and kind in (*_WHOLE, FLOAT):
        return _Extreme(one.call.function == "max", kind == FLOAT)
    return None


def _present(part: Part) -> Array:
    assert part is not None, "only odd values are counted lazily"
    return part


def _whole(values: Sequence[int]) -> Array:
    """Whole numbers, as 64 bits where all fit with room to add."""
    fits = all(-(1 << 62) < value < 1 << 62 for value in values)
    return np.array(values, np.int64 if fits else object)


def roomy(part: Part) -> Part:
    """A part whose elements can all be added up: as Python's integers where 64 bits might not do."""
    if part is None or part.dtype != np.int64 or not len(part):
        return part
    return part if np.abs(part.astype(np.float64)).sum() < _SAFE else part.astype(object)


def slim(part: Part) -> Part:
    """A part as 64 bits again, where all of it fits."""
    return _whole(part.tolist()) if part is not None and part.dtype == object else part


def chained(parts: Sequence[Part], lengths: Sequence[int]) -> Part:
    """Parts of one kind, one after the other."""
    if all(part is None for part in parts):
        return None
    pairs = zip(parts, lengths, strict=True)
    return np.concatenate([np.zeros(length, np.int64) if part is None else part for part, length in pairs])


def save(part: Part) -> Any:
    """A part as plain data."""
    if part is None:
        return None
    if part.dtype == object:
        return [str(value) for value in part.tolist()]
    return [part.dtype.str, part.tobytes()]


def load(saved: Any) -> Part:
    """What was saved as this."""
    if saved is None:
        return None
    if len(saved) == 2 and isinstance(saved[1], bytes):
        return np.frombuffer(saved[1], saved[0]).copy()
    return np.array([int(value) for value in saved], object)


__all__ = ["Part", "VectorAggregates", "chained", "load", "roomy", "save", "slim", "vectorised"]
