"""The pages of the reference that are made from the code are what the code says now. To repair: `make docs`."""

from __future__ import annotations

import re

import pytest

from catchment.cli import COMMANDS
from tests.tidy.source import product
from tests.tidy.test_tidy_errors import sites
from tools.reference import PAGES, REFERENCE, errors, metrics


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    assert (REFERENCE / name).read_text() == PAGES[name](), "it is stale; to repair it: make docs"


def test_every_code_that_the_product_raises_is_there() -> None:
    found, _ = sites(product())
    assert {error.code for error in errors()} == {site.code for site in found}
    assert all(error.what and error.why and error.fix for error in errors())


def test_every_metric_that_a_gateway_declares_is_there() -> None:
    from catchment.gateway.metrics import GatewayMetrics

    shown = re.findall(r"^# TYPE (\S+)", GatewayMetrics().text(), re.MULTILINE)
    assert shown
    assert set(shown) <= {metric.name for metric in metrics()}


def test_every_command_and_every_action_is_there() -> None:
    page = PAGES["commands.md"]()
    assert [name for name in COMMANDS if f"## catchment {name}\n" not in page] == []
    for name in ("device run", "device results", "gateway token", "gateway revoke"):
        assert f"### catchment {name}\n" in page, name
