"""Layers import one way: program → plan → operators → engines → (device, gateway, region, fleet, views)."""

from __future__ import annotations

import pytest

from tests.tidy.source import PACKAGE, Module, assert_none, module, product

_AUTHOR = {"errors", "program"}
_CONTRACT = _AUTHOR | {"plan", "operators"}
_RUNS = _CONTRACT | {"sync", "reliability", "engines"}
_PLACES = {"device", "gateway", "region", "fleet", "views"}

# What each layer may import, besides itself. The five places meet on the wire and never in an import.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "program": {"errors"},
    "plan": _AUTHOR,
    "operators": _AUTHOR | {"plan"},
    "sync": _AUTHOR,
    "reliability": _AUTHOR,
    "engines": _CONTRACT | {"sync", "reliability"},
    **dict.fromkeys(_PLACES, _RUNS),
    "cloud": _RUNS | {"gateway"},  # from the gateway's log through Spark to the gateway's downlink
    "demo": _RUNS | _PLACES | {"", "cloud", "program_file"},
    "program_file": _AUTHOR,
    "sim": _RUNS | _PLACES,
    "testing": _RUNS | _PLACES | {"sim"},
    "cli": _RUNS | _PLACES | {"sim", "testing", "cloud", "demo", "program_file"},
    "__main__": {"cli"},
    "": _RUNS | _PLACES | {"sim", "testing"},  # the façade, catchment/__init__.py
}


def broken(modules: tuple[Module, ...]) -> list[str]:
    """Every import that goes against the direction, one line each."""
    found = []
    for each in modules:
        if each.layer not in MAY_IMPORT:
            found.append(f"{each.path}: {each.layer} is no layer; give it its place in {__name__}.MAY_IMPORT")
            continue
        for name, line in each.imports():
            if not (layer := _layer(name)):
                continue
            if layer == "façade":
                # The façade imports the layers: from inside, it is a cycle that happens to work.
                if each.layer not in {"cli", "testing", "demo", "__main__"}:
                    found.append(f"{each.path}:{line}: imports {name} from the façade, not from where it is defined")
            elif layer != each.layer and layer not in MAY_IMPORT[each.layer]:
                found.append(f"{each.path}:{line}: {each.layer or 'the façade'} imports {name}")
            elif _reaches_past_the_oracle(each.name, name):
                found.append(f"{each.path}:{line}: the reference engine is the oracle, and imports {name}")
    return found


def _layer(imported: str) -> str | None:
    """The layer that an imported name is of; `façade` for a name of the package itself, None for another package."""
    parts = imported.split(".")
    if parts[0] != PACKAGE:
        return None
    return parts[1] if len(parts) > 1 and parts[1] in MAY_IMPORT else "façade"


def _reaches_past_the_oracle(importer: str, imported: str) -> bool:
    """The reference engine evaluates definitions: nothing that it judges may decide its answer."""
    if not f"{importer}.".startswith(f"{PACKAGE}.engines.reference."):
        return False
    of_an_engine = f"{imported}.".startswith(f"{PACKAGE}.engines.")
    of_another = of_an_engine and not imported.startswith(f"{PACKAGE}.engines.reference")
    return of_another or f"{imported}.".startswith(f"{PACKAGE}.operators.")


def test_every_import_goes_one_way() -> None:
    assert_none(broken(product()))


def test_the_order_has_no_cycle() -> None:
    done: set[str] = set()
    while ready := {layer for layer, below in MAY_IMPORT.items() if below <= done} - done:
        done |= ready
    assert done == set(MAY_IMPORT)


@pytest.mark.parametrize(
    ("importer", "text"),
    [
        ("catchment.program.x", "from catchment.plan.graph import Graph"),
        ("catchment.program.x", "def f():\n    import catchment.operators.where"),
        ("catchment.program.x", "from ..plan import graph"),
        ("catchment.plan.x", "from catchment.operators import where"),
        ("catchment.operators.x", "from catchment.engines.edge import run"),
        ("catchment.sync.x", "from catchment.plan.graph import Graph"),
        ("catchment.engines.edge.x", "from catchment.gateway.log import Log"),
        ("catchment.engines.reference.x", "from catchment.operators.where import Where"),
        ("catchment.engines.reference.x", "import catchment.operators"),
        ("catchment.engines.reference.x", "from catchment.engines.edge import run"),
        ("catchment.device.x", "from catchment.gateway import service"),
        ("catchment.plan.x", "from catchment import Stream"),
        ("catchment.plan.x", "import catchment"),
        ("catchment.device.x", "from catchment.cli import main"),
        ("catchment.odds_and_ends.x", "import json"),
    ],
)
def test_an_import_against_the_direction_is_found(importer: str, text: str) -> None:
    assert len(broken((module(importer, text),))) == 1


@pytest.mark.parametrize(
    ("importer", "text"),
    [
        ("catchment.plan.x", "from catchment.program.types import Instant"),
        ("catchment.plan.x", "from .graph import Graph"),
        ("catchment.engines.reference.x", "from catchment.engines.reference.windows import close"),
        ("catchment.gateway.x", "import json, asyncio\nfrom catchment.sync.frame import Frame"),
        ("catchment.cli.x", "import catchment"),
    ],
)
def test_an_import_along_the_direction_is_not(importer: str, text: str) -> None:
    assert broken((module(importer, text),)) == []
