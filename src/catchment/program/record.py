"""Records: typed rows, whose class gives expressions and whose instances give values.

>>> class Fix(Record):
...     user: Field[str] = key()
...     at: Field[Instant] = event_time()
...     speed_mps: Field[float | None] = field(step=0.1, default=None)
>>> fix = Fix(user="ada", at=Instant(5))
>>> fix.user, fix.speed_mps, tuple(fix)
('ada', None, ('ada', 5, None))
>>> (Fix.speed_mps > 3).node.function
'gt'
>>> Fix.schema.column("speed_mps").step
0.1

An instance is a tuple in field order, which is what every engine moves about: making one for a declared function
costs a tuple, and giving one back costs nothing.
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from operator import itemgetter
from typing import Any, ClassVar, Generic, Self, TypeVar, dataclass_transform, overload

from catchment.errors import ProgramError, author_line
from catchment.program.expression import Expr, field_of
from catchment.program.returned import conform
from catchment.program.row_error import RowError
from catchment.program.types import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT,
    INSTANT,
    INT,
    STR,
    Column,
    DataType,
    Duration,
    Instant,
    ListType,
    RecordType,
    Row,
    Schema,
)

T = TypeVar("T")
_MISSING: Any = object()

_SCALARS: dict[Any, DataType] = {
    bool: BOOL,
    int: INT,
    float: FLOAT,
    str: STR,
    bytes: BYTES,
    Instant: INSTANT,
    Duration: DURATION,
}


class Field(Generic[T]):
    """The annotation of a field: `Expr[T]` on the class, `T` on an instance."""

    @overload
    def __get__(self, instance: None, owner: type) -> Expr[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Any: ...

    def __set__(self, instance: object, value: T) -> None: ...


class _Declared:
    """What `key()`, `event_time()` and `field()` say of a field until the class is made."""

    def __init__(self, default: Any = _MISSING, **said: Any) -> None:
        self.default = default
        self.said = said


def key(*, stamp: typing.Literal["device", "user"] | None = None, default: Any = _MISSING) -> Any:
    """A field of the record's key. With `stamp`, the gateway writes who sent it, from the enrolment."""
    return _Declared(default, key=True, stamp=stamp)


def event_time() -> Any:
    """The field that says when the element happened."""
    return _Declared(event_time=True)


def field(
    *,
    step: float | None = None,
    unit: str | None = None,
    stamp: typing.Literal["device", "user"] | None = None,
    default: Any = _MISSING,
) -> Any:
    """A field: its resolution (`step`), its unit, and a default, which lets it be added to a record in use."""
    if step is not None and not (step > 0 and step != float("inf")):
        raise ProgramError(
            "C103",
            f"step={step} is not a resolution",
            why="a codec rounds to whole multiples of step, and sums count them",
            fix="give a positive number such as step=0.1, or leave step out",
            at=author_line(),
        )
    return _Declared(default, step=float(step) if step is not None else None, unit=unit, stamp=stamp)


class NoSuchFieldError(ProgramError, AttributeError):
    """A field that a record does not have: an error of the author's, and what `hasattr` expects."""


class _Getter(property):
    """A field of an instance, read in C; on the class it stands for the expression."""

    expression: Expr[Any]


class _RecordMeta(type):
    schema: Schema

    def __new__(mcls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        if not any(isinstance(base, _RecordMeta) for base in bases):
            return super().__new__(mcls, name, bases, {**body, "__slots__": (), "schema": Schema(name, ())})
        declared = {k: body.pop(k) for k, v in list(body.items()) if isinstance(v, _Declared)}
        body["__slots__"] = ()
        cls = super().__new__(mcls, name, bases, body)
        inherited = next(base.schema.fields for base in bases if isinstance(base, _RecordMeta))
        cls.schema = Schema(name, (*inherited, *_columns(cls, declared, sys._getframe(1))))
        _check(cls.schema)
        for position, column in enumerate(cls.schema.fields):
            getter = _Getter(itemgetter(position))
            getter.expression = field_of(name, column.name, column.type)
            setattr(cls, column.name, getter)
        return cls

    if not typing.TYPE_CHECKING:  # a type checker knows the fields, and finds a wrong name by itself

        def __getattribute__(cls, name: str) -> Any:
            value = type.__getattribute__(cls, name)
            return value.expression if type(value) is _Getter else value

        def __getattr__(cls, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            known = cls.schema.names
            raise NoSuchFieldError(
                "C117",
                f"{cls.__name__} has no field {name!r}",
                why=f"its fields are: {', '.join(known) or 'none'}",
                fix=f"use one of them, or declare {name} on {cls.__name__}",
                at=author_line(),
            )


def _columns(cls: type, declared: dict[str, _Declared], frame: types.FrameType) -> list[Column]:
    own = inspect.get_annotations(cls)
    columns = []
    for name in own:
        if name.startswith("_"):
            continue
        kind, nullable = _annotation(cls, name, own[name], frame)
        say = declared.pop(name, None) or _Declared()
        has_default = say.default is not _MISSING
        columns.append(
            Column(
                name,
                kind,
                nullable=nullable,
                has_default=has_default,
                default=_fitting(f"{cls.__name__}.{name}", say.default, kind, nullable) if has_default else None,
                **say.said,
            )
        )
    if declared:
        stray = next(iter(declared))
        raise ProgramError(
            "C104",
            f"{cls.__name__}.{stray} has no type",
            why="a field is declared by its annotation",
            fix=f"write {stray}: cm.Field[float] = ...",
            at=author_line(),
        )
    return columns


def _annotation(cls: type, name: str, written: Any, frame: types.FrameType) -> tuple[DataType, bool]:
    if isinstance(written, str):
        module = sys.modules.get(cls.__module__)
        scope = {**(vars(module) if module else {}), **frame.f_globals, **frame.f_locals}
        try:
            written = eval(written, scope)
        except NameError as error:
            raise ProgramError(
                "C105",
                f"{cls.__name__}.{name}: {error}",
                why="the annotation names something that is not defined here",
                fix="define or import it before the record",
                at=author_line(),
            ) from error
    if typing.get_origin(written) is not Field:
        raise ProgramError(
            "C106",
            f"{cls.__name__}.{name} is annotated {getattr(written, '__name__', repr(written))}",
            why="a field is an expression on the class and a value on an instance, which only Field[...] says",
            fix=f"write {name}: cm.Field[...]",
            at=author_line(),
        )
    return data_type(typing.get_args(written)[0], f"{cls.__name__}.{name}")


def data_type(annotation: Any, what: str) -> tuple[DataType, bool]:
    """The type that a Python annotation stands for, and whether it may be None."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(annotation) if part is not type(None)]
        if len(parts) == 1:
            return data_type(parts[0], what)[0], True
    elif typing.get_origin(annotation) is tuple:
        args = typing.get_args(annotation)
        if len(args) == 2 and args[1] is Ellipsis:
            return ListType(data_type(args[0], what)[0]), False
    elif isinstance(annotation, _RecordMeta):
        return RecordType(annotation.schema), False
    elif annotation in _SCALARS:
        return _SCALARS[annotation], False
    raise ProgramError(
        "C107",
        f"{what} has type {getattr(annotation, '__name__', repr(annotation))}, which no engine can hold",
        why="values are bool, int, float, str, bytes, Instant, Duration, a record, or tuple[X, ...] of these",
        fix="use one of them; for a list write tuple[float, ...]",
        at=author_line(),
    )


def _fitting(what: str, default: Any, kind: DataType, nullable: bool) -> Any:
    """The default as a value of the field's type: it stands in rows that were written before the field was there."""
    try:
        return conform(default, kind, nullable)
    except RowError:
        written = f"{kind} | None" if nullable else str(kind)
        raise ProgramError(
            "C118",
            f"{what} is {written} and has the default {default!r}",
            why="it stands in rows that were written before the field was there, and every step reads it as that type",
            fix="give a default of that type"
            + (", or say that the field may be null: cm.Field[... | None]" if default is None else ""),
            at=author_line(),
        ) from None


def _check(schema: Schema) -> None:
    names = schema.names
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ProgramError(
            "C148",
            f"{schema.name}.{twice} is declared already, on a record that {schema.name} extends",
            why="a record has the fields of those that it extends, and one name is one field",
            fix=f"leave {twice} out of {schema.name}, or give one of them another name",
            at=author_line(),
        )
    times = [column.name for column in schema.fields if column.event_time]
    if len(times) > 1:
        raise ProgramError(
            "C108",
            f"{schema.name} has {len(times)} event times: {', '.join(times)}",
            why="one field says when an element happened",
            fix="keep event_time() on one and declare the others with field()",
            at=author_line(),
        )
    for column in schema.fields:
        if column.event_time and (column.type != INSTANT or column.nullable):
            raise ProgramError(
                "C109",
                f"{schema.name}.{column.name} is an event time of type {column.type}",
                why="every element must have a moment",
                fix=f"declare {column.name}: cm.Field[cm.Instant] = cm.event_time()",
                at=author_line(),
            )
        if column.step is not None and column.type not in (FLOAT, INT, INSTANT, DURATION):
            raise ProgramError(
                "C112",
                f"{schema.name}.{column.name} has a step and is a {column.type}",
                why="only numbers, instants and durations are rounded",
                fix="leave step out",
                at=author_line(),
            )
        if column.stamp is not None and (column.stamp not in _STAMPS or column.type != STR):
            raise ProgramError(
                "C119",
                f"{schema.name}.{column.name} is a {column.type} with stamp={column.stamp!r}",
                why="the gateway writes the name of the device or of the user there, as a text",
                fix=f'declare {column.name}: cm.Field[str], with stamp="device" or stamp="user"',
                at=author_line(),
            )
        if column.name in _RESERVED:
            raise ProgramError(
                "C113",
                f"{schema.name}.{column.name}: that name is taken",
                why="it would hide a method of records",
                fix=f"call it {column.name}_ or something that says more",
                at=author_line(),
            )


if typing.TYPE_CHECKING:
    _Values = object  # or a field could not be called count or index, which tuples have as methods
else:
    _Values = tuple


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(key, event_time, field))
class Record(_Values, metaclass=_RecordMeta):
    """The base of every record class."""

    schema: ClassVar[Schema]

    def __new__(cls, *args: Any, **values: Any) -> Self:
        schema = cls.schema
        if args:
            raise ProgramError(
                "C114",
                f"{schema.name}(...) was given values without names",
                why="positions shift when a field is added",
                fix=f"name them: {schema.name}({', '.join(f'{n}=...' for n in schema.names)})",
                at=author_line(),
            )
        row = tuple([values.pop(c.name) if c.name in values else _default(schema, c) for c in schema.fields])
        if values:
            raise ProgramError(
                "C116",
                f"{schema.name}(...) was given {next(iter(values))}, which it does not have",
                why=f"its fields are: {', '.join(schema.names)}",
                fix=f"leave it out, or declare {next(iter(values))} on {schema.name}",
                at=author_line(),
            )
        return cls.of(row)

    @classmethod
    def of(cls, row: Row) -> Self:
        """An instance of a row, which is not checked."""
        made: Self = tuple.__new__(cls, row)  # type: ignore[type-var]
        return made

    def row(self) -> Row:
        """The values in field order, as engines hold them."""
        return typing.cast(Row, self)

    def replace(self, **values: Any) -> Self:
        """A copy with some fields changed."""
        return type(self)(**{**dict(zip(self.schema.names, self.row(), strict=True)), **values})

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in zip(self.schema.names, self.row(), strict=True))
        return f"{self.schema.name}({inside})"


def _default(schema: Schema, column: Column) -> Any:
    if column.has_default:
        return column.default
    raise ProgramError(
        "C115",
        f"{schema.name}(...) lacks {column.name}",
        why=f"{column.name} has no default",
        fix=f"give {column.name}=..., or declare a default",
        at=author_line(),
    )


_STAMPS = ("device", "user")
_RESERVED = frozenset(name for name in vars(Record) if not name.startswith("__"))
