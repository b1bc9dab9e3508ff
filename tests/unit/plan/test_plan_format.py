"""The documented format is the one that is written: its schema, its page and its examples.

`python -m tests.unit.plan.test_plan_format` writes docs/reference/plan.schema.json anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from catchment.plan.build import build
from catchment.plan.document import encoded, json_schema
from catchment.program import steps
from tests.unit.plan.programs import everything, peir

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
PAGE = (REFERENCE / "plan-format.md").read_text()


def as_file() -> str:
    return json.dumps(json_schema(), indent=2, sort_keys=True) + "\n"


def problems(value: Any, schema: dict[str, Any], definitions: dict[str, Any], where: str = "plan") -> list[str]:
    """Where a value is not what a schema says, by the words of JSON Schema that ours uses."""
    if "$ref" in schema:
        return problems(value, definitions[schema["$ref"].rpartition("/")[2]], definitions, where)
    if "anyOf" in schema:
        tried = [problems(value, each, definitions, where) for each in schema["anyOf"]]
        return [] if [] in tried else min(tried, key=len)
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "null": type(None),
    }
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{where} is {value!r}"]
    if "type" not in schema:
        return []
    if not isinstance(value, kinds[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean"):
        return [f"{where} is {value!r}, no {schema['type']}"]
    found = []
    if isinstance(value, dict):
        found += [f"{where} lacks {name}" for name in schema.get("required", ()) if name not in value]
        for name, inner in value.items():
            below = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            found += problems(inner, below, definitions, f"{where}.{name}") if isinstance(below, dict) else []
        unknown = value.keys() - schema.get("properties", {}).keys() if "properties" in schema else ()
        found += [f"{where} has an unknown {name}" for name in unknown]
    if isinstance(value, list):
        exact = schema.get("prefixItems", [])
        for number_, inner in enumerate(value):
            below = exact[number_] if number_ < len(exact) else schema.get("items", {})
            found += problems(inner, below, definitions, f"{where}[{number_}]") if isinstance(below, dict) else []
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{where} is {value!r}")
    return found


def test_the_schema_in_the_documents_is_that_of_the_types() -> None:
    assert (REFERENCE / "plan.schema.json").read_text() == as_file()


@pytest.mark.parametrize("program", [peir, everything])
def test_a_plan_is_what_the_schema_says(program: Any) -> None:
    schema = json_schema()
    document = json.loads(encoded(build(program())))
    assert problems(document, schema, schema["$defs"]) == []


def test_what_is_no_plan_is_told_by_the_schema() -> None:
    schema = json_schema()
    document = json.loads(encoded(build(peir())))
    document["parts"][0]["vertices"][1]["step"]["predicate"]["node"] = "guess"
    document["parts"][0]["site"] = "moon"
    del document["syncs"][0]["policy"]
    assert len(problems(document, schema, schema["$defs"])) >= 3


def test_the_examples_of_the_page_are_parts_of_its_plan() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    scope: dict[str, Any] = {"__name__": "tests.plan_format_page"}
    exec(compile(code, "plan_format.py", "exec"), scope)
    document = json.loads(encoded(scope["plan"]))
    examples = re.findall(r"<!-- (.*?) -->\n```json\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(examples) >= 3
    for path, text in examples:
        found = document
        for part in re.findall(r'\["(\w+)"\]|\[(\d+)\]|(\w+)', path):
            name, number, field = part
            found = found[int(number)] if number else found[name or field]
        assert json.loads(text) == found, path


def test_the_page_names_every_step() -> None:
    tags = {kind.__struct_config__.tag for kind in steps.Step.__args__}
    assert {tag for tag in tags if f"`{tag}`" not in PAGE} == set()


if __name__ == "__main__":
    (REFERENCE / "plan.schema.json").write_text(as_file())
