"""Steps and expressions in words, for people: one line each, as near to what the author wrote as data allows.

>>> from catchment.program.nodes import Call, FieldRef, Literal
>>> from catchment.program.types import INT
>>> near = Call("le", (FieldRef("accuracy_m"), Literal(20, INT)))
>>> expression(Call("and", (near, Call("is_null", (FieldRef("n"),)))))
'accuracy_m <= 20 & is_null(n)'
"""

from __future__ import annotations

from typing import Any

from catchment.program import steps
from catchment.program.aggregate import NamedAggregate
from catchment.program.nodes import Call, Cast, FieldRef, GetField, Literal, Node, UserCall
from catchment.program.sampling import Sampling
from catchment.program.sync import Batch, DeadReckoning, SampleDown, SignificantChange, Sync
from catchment.program.types import DURATION
from catchment.program.window import Closing, CountWindow, Offline, SessionWindow, TimeWindow, Window

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "eq": "=",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and": "&",
    "or": "|",
}
_BINDING = {"or": 1, "and": 2, "eq": 3, "ne": 3, "lt": 3, "le": 3, "gt": 3, "ge": 3, "add": 4, "sub": 4}
_TIGHT = 5


def expression(node: Node) -> str:
    """An expression as text, with parentheses only where they are needed."""
    match node:
        case Literal(value, kind):
            return "null" if value is None else duration(int(value)) if kind == DURATION else repr(value)
        case FieldRef(name, _, side):
            return f"right.{name}" if side == 1 else name
        case GetField(of, name):
            return f"{expression(of)}.{name}"
        case Cast(of, to):
            return f"{to}({expression(of)})"
        case UserCall(function, args):
            return f"{code(function)}({', '.join(map(expression, args))})"
        case Call(name, (left, right)) if name in _INFIX:
            mine = _BINDING.get(name, _TIGHT)
            first, second = _within(left, mine), _within(right, mine + 1)
            return f"{first} {_INFIX[name]} {second}"
        case Call(name, args):
            return f"{name.rstrip('_')}({', '.join(map(expression, args))})"


def duration(us: int) -> str:
    """A duration in the largest unit of which it is a whole number.

    >>> duration(3_600_000_000), duration(90_000_000), duration(1_500), duration(0)
    ('1 h', '90 s', '1500 us', '0 s')
    """
    for unit, size in (("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000)):
        if us % size == 0 and us:
            return f"{us // size} {unit}"
    return f"{us} us" if us else "0 s"


def _within(node: Node, least: int) -> str:
    text = expression(node)
    binds = _BINDING.get(node.function, _TIGHT) if isinstance(node, Call) and node.function in _INFIX else _TIGHT + 1
    return text if binds >= least else f"({text})"


def code(reference: str) -> str:
    """The name of a declared function or class."""
    return reference.partition("@")[0].rpartition(":")[2].rpartition(".")[2]


def step(given: steps.Step) -> str:
    """What a step does."""
    match given:
        case steps.Sensor():
            often = f" {_sampling(given.sampling)}" if given.sampling is not None else ""
            return f"sensor {given.sensor}{often}"
        case steps.Timer():
            return f"timer each {duration(given.every)}"
        case steps.Append():
            return f"source of {given.record.name}"
        case steps.External():
            return f"read {given.connector} of {given.record.name}"
        case steps.Feedback():
            return f"what comes round by {given.loop}"
        case steps.Where():
            return f"where {expression(given.predicate)}"
        case steps.Select():
            return f"select {given.record.name}({', '.join(map(_named, given.columns))})"
        case steps.Map():
            return f"{'flat_map' if given.many else 'map'} {code(given.function)}"
        case steps.Union():
            return "union"
        case steps.KeyBy():
            return f"key_by {', '.join(given.keys)}"
        case steps.Changes():
            return f"changes of {', '.join(map(expression, given.values))}{_per(given.keys)}"
        case steps.Moved():
            return f"moved by {given.by_m:g} m{_per(given.keys)}"
        case steps.Subscribe():
            return f"subscribe {code(given.function)}"
        case steps.Deliver():
            whom = f"the devices of {given.by}" if given.to == "user" else f"the device {given.by}"
            return f"deliver to {whom}, keep {given.keep}"
        case steps.Sink():
            return f"sink {given.connector}"
        case _:
            return _waiting(given)


def _waiting(given: Any) -> str:
    match given:
        case steps.Aggregated():
            panes = ", by panes" if given.panes else ""
            return f"{window(given.window)}{_per(given.keys)}: {_aggregates(given.aggregates)}{panes}"
        case steps.TopK():
            return f"{window(given.window)}{_per(given.keys)}: top {given.k} by {expression(given.by)}"
        case steps.Join(how="window"):
            return f"join within {window(given.window) if given.window is not None else ''}{_per(given.keys)}"
        case steps.Join(how="interval"):
            within = f"{duration(given.before)} before to {duration(given.after)} after"
            return f"join within {within}{_per(given.keys)}{_closing(given.closing)}"
        case steps.Join():
            return f"join with the latest{_per(given.keys)}{_closing(given.closing)}"
        case steps.Zip() | steps.Combine():
            return f"{type(given).__name__.lower()}{_per(given.keys)}{_closing(given.closing)}"
        case steps.Running():
            ends = _order(given.order) + _closing(given.closing)
            return f"state{_per(given.keys)}: {_aggregates(given.aggregates)}{ends}"
        case steps.Fold():
            return f"fold {code(given.function)}{_per(given.keys)}{_order(given.order)}{_closing(given.closing)}"
        case steps.Processed():
            return f"process {code(given.process)}{_per(given.keys)}{_order(given.order)}{_closing(given.closing)}"
        case _:
            return type(given).__name__.lower()


def window(given: Window) -> str:
    """A window and when it closes."""
    match given:
        case TimeWindow(size, every) if size == every:
            said = f"tumble {duration(size)}"
        case TimeWindow(size, every):
            said = f"hop {duration(size)} every {duration(every)}"
        case SessionWindow(gap):
            said = f"session with gaps under {duration(gap)}"
        case CountWindow(size, every):
            said = f"last {size} each {every}"
    return said + _closing(given.closing)


def _closing(closing: Closing) -> str:
    said = []
    if closing.grace:
        said.append(f"grace {duration(closing.grace)}")
    if closing.keep:
        said.append(f"keep {duration(closing.keep)}")
    if closing.offline is not None:
        said.append(_offline(closing.offline))
    return f" ({', '.join(said)})" if said else ""


def _offline(offline: Offline) -> str:
    if offline.at_most is None:
        return "waits for who is away"
    return f"waits {duration(offline.at_most)} for who is away" if offline.at_most else "does not wait for who is away"


def _named(column: steps.Named) -> str:
    match column.value:
        case FieldRef(name, _, 0) if name == column.name:
            return name
        case _:
            return f"{column.name}={expression(column.value)}"


def _aggregates(given: tuple[NamedAggregate, ...]) -> str:
    return ", ".join(f"{a.name}={_aggregate(a)}" for a in given)


def _aggregate(given: NamedAggregate) -> str:
    call = given.call
    name = code(call.reference) if call.reference is not None else call.function
    args = [str(call.k)] if call.function == "top" else []
    args += [expression(arg) for arg in call.args]
    args += [f"bins={call.k}"] if call.function == "dft" else []
    return f"{name}({', '.join(args)})"


def _per(keys: tuple[str, ...]) -> str:
    return f" per {', '.join(keys)}" if keys else ""


def _order(order: str) -> str:
    return ", as they arrive" if order == "arrival" else ""


def _sampling(sampling: Sampling) -> str:
    rules = [
        f"not while {expression(rule.when)}"
        if rule.slow_down == 0
        else f"{rule.slow_down}x slower while {expression(rule.when)}"
        for rule in sampling.rules
    ]
    return ", ".join([f"each {duration(sampling.every)}", *rules])


def policy(sync: Sync) -> str:
    """How a sync stream travels."""
    said = [_batch(sync.batch)]
    if sync.reliability is not None:
        said.append(str(sync.reliability))
    match sync.filter:
        case DeadReckoning(fields, within, geographic):
            said.append(f"dead reckoning of {', '.join(fields)} within {within:g}{' m' if geographic else ''}")
        case SignificantChange(fields, by):
            said.append(f"changes of {', '.join(fields)} by {by:g}")
        case None:
            pass
    said.append(sync.codec if sync.compression is None else f"{sync.codec}/{sync.compression}")
    if isinstance(sync.on_disconnect, SampleDown):
        said.append(f"one in {sync.on_disconnect.keep_one_in} while away")
    elif sync.on_disconnect == "notify":
        said.append("tells of disconnections")
    if sync.outbox.when_full != "refuse":
        said.append(f"when full {str(sync.outbox.when_full).replace('_', ' ')}")
    if sync.metered.wait:
        said.append("waits for a link that is not metered")
    if sync.priority:
        said.append(f"priority {sync.priority}")
    return ", ".join(said)


def _batch(batch: Batch) -> str:
    said = []
    if batch.records is not None:
        said.append(f"{batch.records} records")
    if batch.bytes is not None:
        said.append(f"{batch.bytes} bytes")
    if batch.within is not None:
        said.append(f"{duration(batch.within)}")
    return f"batches of {' or '.join(said)}"
