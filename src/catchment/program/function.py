"""Python functions that a program declares: typed by their annotations, pure, and known by `module:name@hash`.

A plan carries the name; code reaches a device as a package. The hash is of the source, so that a device never runs
another version than the one the plan was made with.

>>> @function
... def doubled(x: float) -> float:
...     return 2 * x
>>> doubled(2.0), doubled.parameters, doubled.result
(4.0, (ScalarType(name='float'),), ScalarType(name='float'))
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
import textwrap
import typing
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any, Generic, ParamSpec, TypeVar, overload

from catchment.errors import ProgramError, author_line
from catchment.program.expression import Expr, literal
from catchment.program.nodes import UserCall
from catchment.program.record import data_type
from catchment.program.site import CLOUD, DEVICE, FLEET, REGION, Site
from catchment.program.types import NULL, DataType, Schema

P = ParamSpec("P")
R = TypeVar("R")

EVERYWHERE = (DEVICE, REGION, FLEET, CLOUD)

_declared: dict[str, Any] = {}


class Function(Generic[P, R]):
    """A declared function. Called with values it computes; called with expressions it makes one."""

    def __init__(self, body: Callable[P, R], runs_on: tuple[Site, ...]) -> None:
        self.body = body
        self.at = author_line()
        self.runs_on = sites(runs_on, body.__name__)
        hints = _hints(body)
        names = list(inspect.signature(body).parameters)
        missing = [name for name in [*names, "return"] if name not in hints]
        if missing:
            raise ProgramError(
                "C140",
                f"{body.__name__}: {', '.join(missing)} has no type",
                why="a declared function says what it takes and gives, so that a plan can be checked before it runs",
                fix=f"annotate {missing[0]}",
                at=self.at,
            )
        self.parameters: tuple[DataType, ...] = tuple(data_type(hints[n], f"{body.__name__}({n})")[0] for n in names)
        self.annotations = tuple(hints[name] for name in names)
        self.many = typing.get_origin(hints["return"]) in (Iterable, typing.get_origin(Iterable[int]), list)
        given = typing.get_args(hints["return"])[0] if self.many else hints["return"]
        self.returns = given
        # None is what a subscriber gives: it is called for its effect.
        none = given is type(None)
        self.result, self.nullable = (NULL, True) if none else data_type(given, f"{body.__name__} -> ")
        self.reference = reference_to(body)
        _declared[self.reference] = self

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Expr[Any]) -> Expr[R]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(arg, Expr) for arg in args):
            return self.body(*args, **kwargs)
        if len(args) != len(self.parameters):
            raise ProgramError(
                "C141",
                f"{self.body.__name__} takes {len(self.parameters)} values and was given {len(args)}",
                why="an expression passes each by position",
                fix="give one expression or constant for each parameter",
                at=author_line(),
            )
        nodes = tuple(arg.node if isinstance(arg, Expr) else literal(arg) for arg in args)
        return Expr(UserCall(self.reference, nodes, self.result, self.nullable), self.result)

    def __repr__(self) -> str:
        return f"<function {self.reference}>"


@overload
def function(body: Callable[P, R], /) -> Function[P, R]: ...
@overload
def function(*, runs_on: tuple[Site, ...] = EVERYWHERE) -> Callable[[Callable[P, R]], Function[P, R]]: ...
def function(body: Callable[..., Any] | None = None, /, *, runs_on: tuple[Site, ...] = EVERYWHERE) -> Any:
    """Declare a pure function and where it may run: `@function` or `@function(runs_on=(CLOUD,))`."""
    if body is not None:
        return Function(body, runs_on)
    return lambda given: Function(given, runs_on)


def sites(given: Any, name: str) -> tuple[Site, ...]:
    """The sites that code says it runs on, if that is what they are."""
    if isinstance(given, tuple) and given and all(isinstance(site, Site) for site in given):
        return given
    raise ProgramError(
        "C147",
        f"{name} is declared with runs_on={_said(given)}",
        why="runs_on lists the sites where the code, and what it imports, is there",
        fix="write runs_on=(cm.CLOUD,), with the comma, or leave it out for everywhere",
        at=author_line(),
    )


def _said(value: Any) -> str:
    return f"cm.{value.name}" if isinstance(value, Site) else repr(value)


def declared(reference: str) -> Any:
    """The declared function, process or aggregate of that reference, imported if need be and checked by hash."""
    found = _declared.get(reference)
    if found is not None:
        return found
    name, _, wanted = reference.partition("@")
    module, _, path = name.partition(":")
    try:
        thing: Any = importlib.import_module(module)
        for part in path.split("."):
            thing = getattr(thing, part)
    except (ImportError, AttributeError) as error:
        raise ProgramError(
            "C142",
            f"{name} cannot be found here",
            why=str(error),
            fix=f"install the package that holds {module} in the version that the plan was built with",
        ) from error
    body = thing.body if isinstance(thing, Function) else thing
    actual = reference_to(body).partition("@")[2]
    if actual != wanted:
        raise ProgramError(
            "C143",
            f"{name} differs from the one that the plan was built with",
            why=f"its source has hash {actual}, the plan says {wanted}",
            fix="build the plan again, or install the version that it was built with",
        )
    _declared[reference] = thing
    return thing


def declare(thing: Any, reference: str) -> None:
    """Remember a process or aggregate class under its reference."""
    _declared[reference] = thing


def reference_to(thing: Any) -> str:
    """`module:name@hash` of a function or class."""
    try:
        text = textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):  # typed at a prompt: the compiled code stands for the source
        text = repr(getattr(getattr(thing, "__code__", None), "co_code", thing.__qualname__))
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{_module(thing.__module__)}:{thing.__qualname__}@{digest}"


def _module(name: str) -> str:
    """A script is `__main__` only where it was started; elsewhere it is the module of its file."""
    file = getattr(sys.modules.get(name), "__file__", None)
    return PurePath(file).stem if name == "__main__" and file else name


def record_schema(annotation: Any, what: str) -> Schema:
    """The schema of a record class that an annotation must name."""
    schema = getattr(annotation, "schema", None)
    if isinstance(schema, Schema):
        return schema
    raise ProgramError(
        "C144",
        f"{what} is {getattr(annotation, '__name__', repr(annotation))}, not a record",
        why="elements of a stream are records",
        fix="annotate it with a record class",
        at=author_line(),
    )


def require(thing: Any, role: str) -> Function[Any, Any]:
    """The declared function itself, or an error that says how to declare it."""
    if isinstance(thing, Function):
        return thing
    name = getattr(thing, "__name__", repr(thing))
    raise ProgramError(
        "C145",
        f"{role} was given {name}, which is not declared",
        why="a plan names its functions, and runs them elsewhere: it needs their types and where they may run",
        fix="put @cm.function above a def with annotated parameters, and pass that",
        at=author_line(),
    )


def _hints(body: Any) -> dict[str, Any]:
    frame = sys._getframe(1)
    scope: dict[str, Any] = {}
    while frame is not None:  # records may be defined inside the author's own function
        scope = {**frame.f_locals, **scope} if not frame.f_code.co_filename.startswith("<frozen") else scope
        if frame.f_back is None:
            break
        frame = frame.f_back
    try:
        return typing.get_type_hints(body, localns=scope)
    except NameError as error:
        raise ProgramError(
            "C146",
            f"{body.__name__}: {error}",
            why="an annotation names something that is not defined here",
            fix="define or import it before the function",
            at=author_line(),
        ) from error
