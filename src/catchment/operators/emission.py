"""Expressions as Python source: one Python expression per node tree, to be placed in a function or a fused loop.

The source tests for null only where typing says that a value may be null, and for overflow, zero and the like only
where the facts say that it can happen. Equal sub-expressions are computed once. It raises `RowError` and nothing else.

Evaluation is that of the reference engine: every argument is evaluated, left to right, then null in is null out;
`and`, `or`, `if_` and `coalesce` are lazy. So what is emitted first must also run first, since a sub-expression may be
bound to a name there and read later; and what runs on one branch only is forgotten at its end.

>>> from catchment.program.nodes import Call, FieldRef, Literal
>>> from catchment.program.types import FLOAT, Column, Schema
>>> fix = Schema("Fix", (Column("speed", FLOAT, nullable=True),))
>>> Emitter((fix,)).value(Call("mul", (FieldRef("speed"), Literal(3.6, FLOAT))))
'(None if (t1 := row[0]) is None else (t1 * 3.6))'
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from catchment.operators import inline
from catchment.operators.builtins import CALLS
from catchment.operators.conversions import CONVERSIONS
from catchment.operators.inline import Arguments
from catchment.program.facts import Analysis, Facts
from catchment.program.functions import common
from catchment.program.nodes import Call, Cast, FieldRef, GetField, Literal, Node, UserCall, children, walk
from catchment.program.returned import Functions, guarded
from catchment.program.types import BOOL, FLOAT, INT, NULL, DataType, RecordType, Schema

_DEPTH_MAX = 16
"""Python refuses source that nests some 200 deep, and a node may take four levels."""

_SIDES = {1: ("row",), 2: ("left", "right")}


class Emitter:
    """Writes expressions over elements of these schemas, and collects what their source needs in `bindings`.

    `field` gives the source of a field (`row[3]` when not given; a name is best where a loop has unpacked the row).
    `prefix` starts the names that the source assigns. Several expressions of one emitter must run in the order in
    which they were written.
    """

    def __init__(
        self,
        schemas: tuple[Schema, ...],
        functions: Functions | None = None,
        field: Callable[[FieldRef], str] | None = None,
        prefix: str = "t",
    ) -> None:
        self.analysis = Analysis(schemas)
        self.bindings: dict[str, Any] = {}
        self._functions: Mapping[str, Callable[..., Any]] = functions or {}
        self._field = field or self._item
        self._prefix = prefix
        self._assigned = 0
        self._depth = 0
        self._uses: Counter[Node] = Counter()
        self._names: dict[Node, str] = {}

    def share(self, *nodes: Node) -> None:
        """Announce expressions that will be written, so that what they have in common is computed once."""
        for node in nodes:
            self._uses[node] += 1
            if self._uses[node] == 1:
                self.share(*children(node))

    def value(self, node: Node) -> str:
        """Source of the value."""
        if node in self._names:
            return self._names[node]
        self._depth += 1
        text = self._spilled(node) if self._depth > _DEPTH_MAX and children(node) else self._written(node)
        self._depth -= 1
        if self._uses[node] > 1 and not isinstance(node, Literal) and not text.isidentifier():
            name = self._names[node] = self.assign()
            return f"({name} := {text})"
        return text

    def truth(self, node: Node) -> str:
        """Source of something that Python takes for true exactly where the boolean is true: null counts as false."""
        match node:
            case Call("and", (left, right)) if not (self.analysis[left].nullable and self.analysis[right].may_fail):
                return self._lazy(self.truth(left), "and", right)
            case Call("or", (left, right)):
                return self._lazy(self.truth(left), "or", right)
            case Call("not", (inner,)) if self.analysis[inner].nullable:
                return f"({self.value(inner)} is False)"
            case _:
                return self.value(node)

    def _lazy(self, left: str, operator: str, right: Node) -> str:
        with self.branch():
            return f"({left} {operator} {self.truth(right)})"

    def promoted(self, node: Node, to: DataType) -> str:
        """Source of the value as that type: an int may have to become a float."""
        facts = self.analysis[node]
        if to != FLOAT or facts.type != INT:
            return self.value(node)
        if isinstance(node, Literal):
            return inline.constant(None if node.value is None else float(node.value))
        text = self.value(node)
        if not facts.nullable:
            return inline.as_float(text)
        first, again = self.twice(text)
        return f"(None if {first} is None else {inline.as_float(again)})"

    def assign(self) -> str:
        """A new name."""
        self._assigned += 1
        return f"{self._prefix}{self._assigned}"

    def twice(self, text: str) -> tuple[str, str]:
        """Source for the first use of a value and for each later one."""
        if inline.is_atom(text):
            return text, text
        name = self.assign()
        return f"({name} := {text})", name

    def bind(self, name: str, thing: Any) -> str:
        """A name by which the source can use this object."""
        unique, tries = f"x_{name}", 1
        while self.bindings.setdefault(unique, thing) is not thing:
            tries += 1
            unique = f"x_{name}_{tries}"
        return unique

    @contextmanager
    def branch(self) -> Iterator[None]:
        """What is written inside may not run, so its names are unknown after it."""
        before = dict(self._names)
        yield
        self._names = before

    def _item(self, ref: FieldRef) -> str:
        schemas = self.analysis.schemas
        return f"{_SIDES[max(len(schemas), 1)][ref.side]}[{schemas[ref.side].position(ref.name)}]"

    def _written(self, node: Node) -> str:
        match node:
            case Literal(value):
                return inline.constant(value)
            case FieldRef():
                self.analysis[node]  # refuses a field that is not there
                return self._field(node)
            case GetField(of, name):
                kind = self.analysis[of].type
                self.analysis[node]
                assert isinstance(kind, RecordType), "typing has refused anything else"
                position = kind.schema.position(name)
                return self._strict(node, (of,), lambda given: f"{given.next()}[{position}]")
            case Cast(of, to):
                return self._cast(node, of, self.analysis[of], to)
            case UserCall(name, args):
                called = guarded(node, self._functions)
                function = self.bind(re.sub(r"\W", "_", name.partition("@")[0].rpartition(":")[2]), called)
                # A declared function sees null as None and says itself what to make of it.
                return f"{function}({', '.join(self.value(arg) for arg in args)})"
            case Call():
                return self._call(node)

    def _cast(self, node: Node, of: Node, given: Facts, to: DataType) -> str:
        pair = (str(given.type), str(to))
        if given.type in (to, NULL):
            return self.value(of)
        if pair in CONVERSIONS:
            function = self.bind("_to_".join(pair), CONVERSIONS[pair])
            return self._strict(node, (of,), lambda args: f"{function}({args.next()})")
        if pair == ("bool", "str"):
            return self._strict(node, (of,), lambda args: f"('true' if {args.next()} else 'false')")
        if pair == ("bool", "int"):
            return self._strict(node, (of,), lambda args: f"(+{args.next()})")
        return self.promoted(of, to) if to == FLOAT else self.value(of)

    def _call(self, node: Call) -> str:
        kind = self.analysis[node].type  # refuses what is not well typed
        name, args = node.function, node.args
        match name, args:
            case "and" | "or", (left, right):
                return self._three_valued(name, left, right)
            case "if_", (condition, then, otherwise):
                test = self.truth(condition)
                with self.branch():
                    yes = self.promoted(then, kind)
                with self.branch():
                    return f"({yes} if {test} else {self.promoted(otherwise, kind)})"
            case "coalesce", _:
                return self._coalesce(args, kind)
            case "is_null", (inner,):
                facts = self.analysis[inner]
                if isinstance(inner, Literal) or not (facts.nullable or facts.may_fail):
                    return str(facts.nullable)
                return f"({self.value(inner)} is None)"
            case "same", _:
                return self._same(*args)
            case "null_if", (left, right):
                return self._null_if(left, right)
            case "in_", (value, *candidates):
                return self._among(value, candidates)
            case "least" | "greatest", _ if any(self.analysis[arg].nullable for arg in args):
                function = self.bind(f"known_{name}", inline.KNOWN[name])
                return f"{function}({', '.join(self.promoted(arg, kind) for arg in args)})"
            case "round_to", (value, Literal(step)) if step is not None and not self.analysis[node].fails_here:
                function = self.bind("round_to_step", inline.stepper(float(step)))
                return self._strict(node, (value,), lambda given: f"{function}({given.next()})")
            case _ if name in inline.WRITTEN:
                return self._strict(node, args, lambda given: inline.WRITTEN[name](self, node, given))
            case _:
                function = self.bind(name, CALLS[name])
                return self._strict(node, args, lambda given: f"{function}({', '.join(given.rest())})")

    def _strict(self, node: Node, args: tuple[Node, ...], body: Callable[[Arguments], str]) -> str:
        """Null in, null out. Nulls are tested for before the body, with all that must run before the body's checks."""
        facts = [self.analysis[arg] for arg in args]
        early = isinstance(node, Call) and node.function in inline.LAST_FIRST and facts[0].may_fail
        any_null = any(known.nullable for known in facts)
        tested = [known.nullable or (known.may_fail and (any_null or early)) for known in facts]
        # With `or`, a null would keep the next argument from failing.
        all_run = any(known.may_fail for known, test in list(zip(facts, tested, strict=True))[1:] if test)
        names: dict[int, str] = {}
        terms: list[str] = []
        outer = self._names
        for index, arg in enumerate(args):
            if not tested[index]:
                continue
            if len(terms) == 1 and not all_run:
                outer = dict(self._names)
            if isinstance(arg, Literal):
                names[index], term = "None", "True"
            else:
                # A name even for a constant, of which Python would rather not be asked whether it is None.
                first = names[index] = self.value(arg)
                if not first.isidentifier():
                    names[index] = self.assign()
                    first = f"({names[index]} := {first})"
                term = f"{first} is None"
            terms.append(term)
        if not terms:
            return body(Arguments(self, node, args, names))
        if len(terms) == 1 or all_run:
            outer = dict(self._names)
        test = " | ".join(f"({term})" for term in terms) if all_run else " or ".join(terms)
        text = f"(None if {test} else {body(Arguments(self, node, args, names))})"
        self._names = outer
        return text

    def _three_valued(self, name: str, left: Node, right: Node) -> str:
        first, second = self.analysis[left], self.analysis[right]
        if not first.nullable:
            text = self.value(left)
            with self.branch():
                return f"({text} {name} {self.value(right)})"
        decisive = name == "or"
        text, again = self.twice(self.value(left))
        with self.branch():
            if not second.nullable:
                test = self.value(right) if decisive else f"not {self.value(right)}"
                return f"({decisive} if {text} is {decisive} or {test} else {again})"
            other, other_again = self.twice(self.value(right))
            test = f"{text} is {decisive} or {other} is {decisive}"
            return f"({decisive} if {test} else None if {again} is None else {other_again})"

    def _coalesce(self, choices: tuple[Node, ...], kind: DataType) -> str:
        first, *rest = choices
        facts = self.analysis[first]
        if not rest or not facts.nullable:
            return self.promoted(first, kind)
        if isinstance(first, Literal):
            return self._coalesce(tuple(rest), kind)
        text, again = self.twice(self.value(first))
        if facts.type == INT and kind == FLOAT:
            again = inline.as_float(again)
        with self.branch():
            return f"({again} if {text} is not None else {self._coalesce(tuple(rest), kind)})"

    def _same(self, left: Node, right: Node) -> str:
        kind = self._common((left, right))
        one, two = self.promoted(left, kind), self.promoted(right, kind)
        if self.analysis[left].never_nan or self.analysis[right].never_nan:
            return f"({one} == {two})"
        first, again = self.twice(one)
        second, second_again = self.twice(two)
        return f"({first} == {second} or ({again} != {again} and {second_again} != {second_again}))"

    def _null_if(self, left: Node, right: Node) -> str:
        kind = self._common((left, right))
        first, again = self.twice(self.value(left))
        compared = first
        if kind == FLOAT and self.analysis[left].type == INT:
            nullable = self.analysis[left].nullable
            compared = (
                f"(None if {first} is None else {inline.as_float(again)})" if nullable else inline.as_float(first)
            )
        return f"(None if {compared} == {self.promoted(right, kind)} else {again})"

    def _among(self, value: Node, candidates: list[Node]) -> str:
        kind = self._common((value, *candidates))
        constants = [node.value for node in candidates if isinstance(node, Literal) and node.value is not None]
        if len(constants) == len(candidates):
            known = self.bind("candidates", frozenset(map(float, constants) if kind == FLOAT else constants))
            text = self.promoted(value, kind)
            if not self.analysis[value].nullable:
                return f"({text} in {known})"
            first, again = self.twice(text)
            return f"(None if {first} is None else {again} in {known})"
        function = self.bind("among", inline.among)
        texts = [self.promoted(node, kind) for node in (value, *candidates)]
        return f"{function}({texts[0]}, ({', '.join(texts[1:])},))"

    def _common(self, nodes: tuple[Node, ...]) -> DataType:
        return common(tuple(self.analysis[node].type for node in nodes)) or BOOL

    def _spilled(self, node: Node) -> str:
        """A call of a function of its own, of the fields that the expression reads."""
        refs = list(dict.fromkeys(n for n in walk(node) if isinstance(n, FieldRef)))
        names = {ref: f"f{index}" for index, ref in enumerate(refs)}
        inner = Emitter(self.analysis.schemas, self._functions, names.__getitem__)
        inner.analysis = self.analysis
        inner.share(node)
        function = define(", ".join(names.values()), inner.value(node), inner.bindings)
        return f"{self.bind('deep', function)}({', '.join(self.value(ref) for ref in refs)})"


def define(parameters: str, source: str, bindings: Mapping[str, Any]) -> Callable[..., Any]:
    """The function of these parameters that returns the source's value, where its free names are the bindings."""
    function: Callable[..., Any] = eval(compile(f"lambda {parameters}: {source}", "<expression>", "eval"), {**bindings})
    return function
