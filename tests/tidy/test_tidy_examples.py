"""Every example in a docstring of the product runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib

import pytest

from tests.tidy.source import product

WITH_EXAMPLES = [each.name for each in product() if "\n>>> " in each.text or "    >>> " in each.text]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of(name: str) -> None:
    results = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert results.attempted > 0
    assert results.failed == 0


def test_there_are_examples() -> None:
    assert WITH_EXAMPLES
