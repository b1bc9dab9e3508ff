"""Keyed processing by an author's own class: state declared as data, timers in event time and processing time.

>>> class Seen(State):
...     count: int = 0
>>> class Every(Process[Any, Any, Seen]):
...     n: int
...     def on_element(self, element, state, context):
...         state.count += 1
...         return [element] if state.count % self.n == 0 else []
>>> Every(n=2).parameters, Every.state_type is Seen
({'n': 2}, True)

An instance holds its parameters and nothing else: assigning to it is refused, because a checkpoint would not hold it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import CodeType, FunctionType
from typing import Any, ClassVar, Generic, TypeVar, dataclass_transform

import msgspec

from catchment.errors import ProgramError, author_line
from catchment.program.elements import Elements
from catchment.program.function import EVERYWHERE, declare, reference_to, sites
from catchment.program.plain import plain
from catchment.program.site import Site
from catchment.program.types import Duration, Instant

E = TypeVar("E")
O = TypeVar("O")  # noqa: E741  the papers' name for output
S = TypeVar("S", bound="State")


class State(msgspec.Struct):
    """What a step remembers for a key, declared as typed fields with defaults; it is what checkpoints hold."""


class Context:
    """What a call knows beside its element: the key, the moment, and the timers it may set.

    Engines make one for each call and read `wakes` and `forgotten` afterwards.
    """

    __slots__ = ("at", "forgotten", "key", "now", "wakes")

    def __init__(self, key: tuple[Any, ...], at: Instant, now: Instant | None) -> None:
        self.key = key
        self.at = at
        """The event time of the element, or the moment that the timer was set for."""
        self.now = now
        """The latest tick of the clock, if there was one. For event time use `at`."""
        self.wakes: list[tuple[str, str, int | None]] = []
        self.forgotten = False

    def wake(self, timer: str, at: Instant | int) -> None:
        """Set the event-time timer of that name; it replaces one set before."""
        self.wakes.append((timer, "event", int(at)))

    def wake_after(self, timer: str, delay: Duration | int) -> None:
        """Set the timer of that name on the clock of ticks, so long from now; it replaces one set before."""
        self.wakes.append((timer, "clock", int(delay)))

    def cancel(self, timer: str) -> None:
        """Forget the timer of that name."""
        self.wakes.append((timer, "", None))

    def forget(self) -> None:
        """Drop this key's state and timers once the call is over."""
        self.forgotten = True


@dataclass_transform(kw_only_default=True)
class Process(Generic[E, O, S]):
    """The base of an author's keyed step: from elements `E` to elements `O`, remembering an `S` per key."""

    runs_on: ClassVar[tuple[Site, ...]] = EVERYWHERE
    """The sites where this class, and what it imports, is there."""
    state_type: ClassVar[type[State]]
    element_type: ClassVar[Any]
    output_type: ClassVar[Any]
    parameter_names: ClassVar[tuple[str, ...]] = ()
    parameters: dict[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in getattr(cls, "__orig_bases__", ()):
            args: tuple[Any, ...] = getattr(base, "__args__", ())
            if len(args) == 3:
                cls.element_type, cls.output_type, cls.state_type = args
        own = [name for name, said in inspect.get_annotations(cls).items() if not _is_class_variable(name, said)]
        cls.parameter_names = (*cls.parameter_names, *own)
        cls.runs_on = sites(cls.runs_on, cls.__name__)

    def __init__(self, **parameters: Any) -> None:
        cls = type(self)
        if not (isinstance(getattr(cls, "state_type", None), type) and issubclass(cls.state_type, State)):
            raise ProgramError(
                "C170",
                f"{cls.__name__} does not declare its element, output and state",
                why="a plan needs their types, and a checkpoint holds exactly the state that is declared",
                fix=f"write class {cls.__name__}(cm.Process[Element, Output, MyState]) with class MyState(cm.State)",
                at=author_line(),
            )
        values = {name: getattr(cls, name) for name in cls.parameter_names if hasattr(cls, name)}
        unknown = sorted(set(parameters) - set(cls.parameter_names))
        missing = [name for name in cls.parameter_names if name not in values and name not in parameters]
        if unknown or missing:
            raise ProgramError(
                "C171",
                f"{cls.__name__}(...) {'does not know ' + unknown[0] if unknown else 'lacks ' + missing[0]}",
                why=f"its parameters are: {', '.join(cls.parameter_names) or 'none'}",
                fix="name each parameter that has no default, and no other",
                at=author_line(),
            )
        if cls.on_element is Process.on_element:
            raise ProgramError(
                "C173",
                f"{cls.__name__} has no on_element",
                why="it is what runs for each element",
                fix="define on_element(self, element, state, context)",
                at=author_line(),
            )
        if cls.on_elements is not Process.on_elements and names(cls, "wake_after"):
            raise ProgramError(
                "C178",
                f"{cls.__name__} has on_elements, and sets timers on the clock",
                why="on_elements takes each key through many elements at once, and the clock would tick between them",
                fix="use context.wake with a moment of event time, or leave on_elements out",
                at=author_line(),
            )
        _check_state(cls.state_type)
        given = {**values, **parameters}
        object.__setattr__(
            self, "parameters", {name: plain(given[name], f"{cls.__name__}({name}=)") for name in cls.parameter_names}
        )
        for name, value in self.parameters.items():
            object.__setattr__(self, name, value)
        reference = reference_to(cls)
        object.__setattr__(self, "reference", reference)
        declare(cls, reference)

    def __setattr__(self, name: str, value: Any) -> None:
        raise ProgramError(
            "C172",
            f"{type(self).__name__}.{name} was assigned",
            why="an attribute is in no checkpoint, and one instance serves many keys: the value would be lost or mixed",
            fix=f"declare {name} on {self.state_type.__name__} and write state.{name} = ...",
            at=author_line(),
        )

    def on_element(self, element: E, state: S, context: Context) -> Iterable[O] | None:
        """One element of the key, in order of event time (or of arrival, where the step says so)."""
        return None  # a class that does not define it is refused before an element comes

    def on_timer(self, timer: str, state: S, context: Context) -> Iterable[O] | None:
        """A timer that was set is due."""
        return None

    def on_elements(self, elements: Elements) -> None:
        """What `on_element` does, for many elements of many keys at once: optional, for where elements come in batches.

        From a key's state before its elements to its state after them, this stands for all calls of `on_element`, and
        of `on_timer` where a timer would be due before one of the elements; those still set afterwards are called as
        ever. If it raises, the elements are taken one by one. A class that defines it uses no timers on the clock.
        """


def names(kind: type[Process[Any, Any, Any]], name: str) -> bool:
    """Whether the methods of a class name this."""
    methods = [thing for base in kind.__mro__ for thing in vars(base).values() if isinstance(thing, FunctionType)]
    return any(_names(method.__code__, name) for method in methods)


def _names(code: CodeType, name: str) -> bool:
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return name in code.co_names or any(_names(each, name) for each in inner)


def _is_class_variable(name: str, said: Any) -> bool:
    return name.startswith("_") or "ClassVar" in str(said)


def _check_state(kind: type[State]) -> None:
    """Refuses a state that cannot begin, or that a checkpoint cannot hold."""
    try:
        kind()
    except TypeError as error:
        raise ProgramError(
            "C176",
            f"{kind.__name__} cannot begin: {error}",
            why="the state of a key begins with its defaults, before its first element",
            fix=f"give every field of {kind.__name__} a default, such as since: int | None = None",
            at=author_line(),
        ) from error
    for field in msgspec.structs.fields(kind):
        try:
            msgspec.json.schema(field.type)
        except TypeError as error:
            raise ProgramError(
                "C177",
                f"{kind.__name__}.{field.name} cannot be kept",
                why=f"a checkpoint holds plain data, and {getattr(field.type, '__name__', field.type)} is none",
                fix="declare it as a number, text, bytes, bool, list, dict or another cm.State class",
                at=author_line(),
            ) from error
