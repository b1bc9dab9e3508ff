"""Where the tests of the page get a browser: never silently from nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import browser


def test_a_browser_that_is_named_and_does_not_run_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATCHMENT_CHROMIUM", "/bin/false")
    with pytest.raises(browser.NoBrowserError, match="CATCHMENT_CHROMIUM=/bin/false does not run"):
        browser.browser()


def test_without_a_browser_and_without_apt_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CATCHMENT_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "HOME", tmp_path / "chromium")
    with pytest.raises(browser.NoBrowserError, match="install Chromium, or name one"):
        browser.browser()
