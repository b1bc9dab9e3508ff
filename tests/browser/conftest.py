"""One demo and one browser for all tests of the page.

The demo is the real one, smaller: a gateway, Spark on two executors, twelve devices. The browser is the machine's or
Debian's (`tools/browser.py`); where there is none and none can be had, the tests fail and say what to do.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tools.browser import NoBrowserError, browser

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / ".build" / "screenshots"
SPARK_S = 300.0  # a session starts in 10 s; on a machine that does three other things, in many times that
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1360, "height": 900}


@dataclass
class Demo:
    """A demo that runs."""

    url: str
    data: Path
    process: subprocess.Popen[str]
    passwords: dict[str, str]

    def given(self) -> int:
        """How many results there were."""
        try:
            said = json.loads((self.data / "cloud" / "programs" / "peir" / "status.json").read_bytes())
        except (OSError, ValueError):
            return 0
        return sum(said.get("given", {}).values())


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Started once; at its end Ctrl-C has to end everything that it started."""
    data = tmp_path_factory.mktemp("demo")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["demo", "--port", str(port), "--data", str(data), "--no-browser", "--devices", "12", "--speed", "60"]
    said = (data.parent / "demo.log").open("w+")
    process = subprocess.Popen([sys.executable, "-m", "catchment", *words], stdout=said, stderr=said, text=True)
    try:
        url = f"http://127.0.0.1:{port}"
        until = time.monotonic() + SPARK_S
        while not _answers(f"{url}/health"):
            assert process.poll() is None, Path(said.name).read_text()
            assert time.monotonic() < until, "the gateway did not start"
            time.sleep(0.2)
        yield Demo(url, data, process, json.loads((data / "passwords.json").read_bytes()))
    finally:
        started = _started_by(process.pid)
        process.send_signal(signal.SIGINT)
        code = process.wait(120)
        said.close()
    assert code == 0, Path(said.name).read_text()
    # A supervisor, a gateway, two of devices, and Spark with all that it starts.
    assert len(started) >= 5
    until = time.monotonic() + 20
    while left := [words for pid, words in started.items() if _words(pid) == words]:
        assert time.monotonic() < until, f"Ctrl-C ends everything that was started, but not {left}"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A headless browser."""
    try:
        path = browser()
    except NoBrowserError as error:
        pytest.fail(str(error))
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        # In a container there is no namespace of one's own to be had; the page is ours, and on this machine.
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def operator(chromium: Browser, demo: Demo) -> Iterator[Page]:
    """The operator's page."""
    with opened(chromium, demo, "operator") as page:
        yield page


class opened:  # noqa: N801  it is used as a function
    """A page where somebody has signed in. What the browser complains about fails the test."""

    def __init__(self, chromium: Browser, demo: Demo, who: str | None, **options: object) -> None:
        self._context: BrowserContext = chromium.new_context(**{"viewport": DESK, **options})  # type: ignore[arg-type]
        self._demo, self._who = demo, who
        self.trouble: list[str] = []

    def __enter__(self) -> Page:
        page = self._context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda one: self.trouble.append(one.text) if one.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.trouble.append(str(error)))
        page.goto(self._demo.url)
        if self._who is not None:
            page.get_by_label("Name").fill(self._who)
            page.get_by_label("Password").fill(self._demo.passwords[self._who])
            page.get_by_role("button", name="Sign in").click()
            page.get_by_role("navigation").get_by_role("link", name="Report").wait_for()
        return page

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._context.close()
        if kind is None:
            assert self.trouble == []


def shoot(page: Page, name: str) -> None:
    """Keep a picture of the page."""
    page.screenshot(path=SCREENSHOTS / f"{name}.png")


def go(page: Page, view: str) -> None:
    """To a view, by its link."""
    page.get_by_role("navigation", name="Views").get_by_role("link", name=view, exact=True).click()
    page.get_by_role("heading", level=1, name=view).wait_for()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _started_by(process: int) -> dict[int, str]:
    """The processes that it started, those that these started, and so on; with what each is called."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found: dict[int, str] = {}
    wanted = {process}
    while wanted:
        wanted = {child for child, parent in parents.items() if parent in wanted}
        found |= {child: words for child in wanted if (words := _words(child))}
    return found


def _words(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
