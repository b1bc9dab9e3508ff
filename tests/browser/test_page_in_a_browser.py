"""The page as people meet it: in headless Chromium, on a demo that runs; with pictures kept in .build/screenshots."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PHONE, SPARK_S, Demo, go, opened, shoot

pytestmark = [pytest.mark.process, pytest.mark.spark]
SPARK_MS = SPARK_S * 1000
PAINTED = """() => {
  const canvas = document.querySelector("canvas");
  const dots = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let n = 0; n < dots.length; n += 4) if (dots[n + 3] > 200) colours.add(`${dots[n] >> 5} ${dots[n + 1] >> 5}`);
  return colours.size > 6;
}"""


def test_the_door_opens_for_the_right_password_only(chromium: Browser, demo: Demo) -> None:
    door = opened(chromium, demo, None)
    with door as page:
        shoot(page, "sign-in")
        expect(page.get_by_label("Name")).to_be_focused()
        page.keyboard.type("operator")
        page.keyboard.press("Tab")
        page.keyboard.type("not the password")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("do not belong together")
        assert page.get_by_role("navigation", name="Views").get_by_role("link").count() == 0
        # The refused attempt is the one thing that the browser may complain about.
        assert [line for line in door.trouble if "401" not in line] == []
        door.trouble.clear()
        page.get_by_label("Password").fill(demo.passwords["operator"])
        page.keyboard.press("Enter")
        page.get_by_role("heading", level=1, name="Live").wait_for()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Name")).to_be_visible()
        page.reload()
        expect(page.get_by_label("Name")).to_be_visible()


def test_a_link_with_what_the_form_needs_signs_in_and_is_forgotten(chromium: Browser, demo: Demo) -> None:
    with opened(chromium, demo, None) as page:
        # The form stands before the address changes: otherwise it might sign in already, and be cut off by the reload.
        expect(page.get_by_label("Name")).to_be_visible()
        page.goto(f"{demo.url}/#sign-in=operator:{demo.passwords['operator']}")
        page.reload()
        page.get_by_role("heading", level=1, name="Live").wait_for()
        assert "sign-in" not in page.url


def test_devices_move_on_the_map_and_rates_are_live(operator: Page) -> None:
    expect(operator.get_by_role("img", name=re.compile(r"Map of \d+ devices: .*\d+ \w+"))).to_be_visible(timeout=60_000)
    operator.wait_for_function(PAINTED)
    chart = operator.get_by_role("img", name=re.compile("Readings: now .* per second"))
    expect(chart).to_be_visible()
    before = chart.get_attribute("aria-label")
    operator.wait_for_function(
        "before => document.querySelector('figure svg').getAttribute('aria-label') !== before", arg=before
    )
    shoot(operator, "live-light")


def test_results_come_back_and_every_view_shows_them(operator: Page, demo: Demo) -> None:
    wait_for_results(demo)
    go(operator, "Report")
    operator.get_by_label("User").select_option("user-003")
    expect(operator.get_by_text("hourly, to").first).to_be_visible(timeout=60_000)
    expect(operator.locator("dt", has_text="Carbon")).to_be_visible()
    shoot(operator, "report")
    go(operator, "Streams")
    expect(operator.get_by_role("rowheader", name="peir/waypoints")).to_be_visible()
    expect(operator.get_by_role("img", name=re.compile(r"\d+.* % less"))).to_be_visible()
    shoot(operator, "streams")
    go(operator, "Plan")
    plan = operator.get_by_role("img", name=re.compile(r"waypoints, from devices, [1-9][\d,]* passed"))
    expect(plan).to_be_visible()
    expect(operator.get_by_role("img", name=re.compile(r"hourly, to devices, [1-9][\d,]* passed"))).to_be_visible()
    shoot(operator, "plan")
    go(operator, "Devices")
    expect(operator.get_by_text("12 of kind phone")).to_be_visible()
    operator.get_by_label("Find a device").fill("user-007")
    expect(operator.get_by_role("rowheader")).to_have_count(1)
    shoot(operator, "devices")
    go(operator, "Health")
    expect(operator.get_by_role("cell", name="running")).to_be_visible()
    expect(operator.get_by_role("rowheader", name="hourly")).to_be_visible()
    shoot(operator, "health")


def test_a_user_sees_their_own_report_and_nothing_of_the_fleet(chromium: Browser, demo: Demo) -> None:
    own = opened(chromium, demo, "user-003")
    with own as page:
        views = page.get_by_role("navigation", name="Views").get_by_role("link")
        assert views.all_inner_texts() == ["Report", "Map", "Devices"]
        expect(page.get_by_text("hourly, to").first).to_be_visible(timeout=SPARK_MS)
        assert page.get_by_label("User", exact=True).count() == 0
        page.evaluate("location.hash = '#health'")
        page.get_by_role("heading", level=1, name="Report").wait_for()
        others = page.evaluate("fetch('/page/v1/report?user=user-004').then(answer => answer.status)")
        assert others == 403
        page.get_by_role("navigation", name="Views").get_by_role("link", name="Devices").click()
        expect(page.get_by_role("rowheader", name="phone-003")).to_be_visible()
        assert "phone-004" not in page.content()
        shoot(page, "user")
        # What was refused above is the one thing that the browser may complain about.
        assert [line for line in own.trouble if "403" not in line] == []
        own.trouble.clear()


@pytest.mark.parametrize(("view", "name"), [("Live", "live"), ("Report", "report"), ("Break it", "trials")])
def test_it_fits_a_phone_in_dark(chromium: Browser, demo: Demo, view: str, name: str) -> None:
    with opened(chromium, demo, "operator", viewport=PHONE, color_scheme="dark", has_touch=True) as page:
        go(page, view)
        page.wait_for_timeout(1500)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= PHONE["width"], f"it is {wide} px wide"
        small = page.evaluate(
            "[...document.querySelectorAll('button, nav a, select')].filter(one => one.offsetParent)"
            ".filter(one => one.getBoundingClientRect().height < 32).map(one => one.textContent)"
        )
        assert small == [], "fingers need room"
        shoot(page, f"{name}-phone-dark")


def test_dark_and_light_follow_the_system_until_somebody_chooses(chromium: Browser, demo: Demo) -> None:
    with opened(chromium, demo, "operator", color_scheme="dark") as page:
        ground = "getComputedStyle(document.body).backgroundColor"
        dark = page.evaluate(ground)
        page.wait_for_timeout(1500)
        shoot(page, "live-dark")
        page.get_by_role("button", name="Use light colours").click()
        light = page.evaluate(ground)
        assert light != dark
        page.reload()
        page.get_by_role("heading", level=1, name="Live").wait_for()
        assert page.evaluate(ground) == light, "a choice outlives the page"


def test_it_is_used_by_keyboard_alone(operator: Page) -> None:
    operator.reload()
    operator.get_by_role("heading", level=1, name="Live").wait_for()
    operator.keyboard.press("Tab")
    skip = operator.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    operator.keyboard.press("Enter")
    assert operator.evaluate("document.activeElement.id") == "main"
    canvas = operator.get_by_role("img", name=re.compile(r"Map of \d+ devices"))
    canvas.focus()
    painted = "() => document.querySelector('canvas').toDataURL().length"
    before = operator.evaluate(painted)
    for key in ("+", "+", "ArrowLeft", "ArrowUp"):
        operator.keyboard.press(key)
    operator.wait_for_function(f"before => ({painted})() !== before", arg=before)
    plan = operator.get_by_role("navigation", name="Views").get_by_role("link", name="Plan")
    plan.focus()
    operator.keyboard.press("Enter")
    operator.get_by_role("heading", level=1, name="Plan").wait_for()
    expect(plan).to_have_attribute("aria-current", "page")


def test_nothing_comes_from_elsewhere_and_every_picture_has_a_name(operator: Page, demo: Demo) -> None:
    asked = operator.evaluate("performance.getEntriesByType('resource').map(one => one.name)")
    assert asked
    assert all(url.startswith(demo.url) for url in asked), asked
    for view in ("Live", "Plan", "Devices", "Health", "Break it"):
        go(operator, view)
        nameless = operator.evaluate(
            "[...document.querySelectorAll('main svg, main canvas, main button, main input, main select')]"
            ".filter(one => !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length))"
            ".map(one => one.outerHTML)"
        )
        assert nameless == [], view
        broken = operator.evaluate("[...document.querySelectorAll('[style]')].map(one => one.outerHTML.slice(0, 80))")
        assert all("width" in one for one in broken), "styles are in the sheet; only bars say how long they are"


def test_what_is_broken_for_real_recovers_and_is_certified(operator: Page, demo: Demo) -> None:
    wait_for_results(demo)
    go(operator, "Break it")
    happened = operator.locator(".story")
    for lever in ("Kill an executor", "Send a burst", "Disconnect a third"):
        operator.get_by_role("button", name=lever).click()
    for ends in ("results flow again", "level with the log", "outboxes have drained"):
        expect(happened).to_contain_text(ends, timeout=SPARK_MS)
    shoot(operator, "trials")
    operator.get_by_role("button", name="Issue the certificate").click()
    expect(operator.locator(".verdict strong")).to_have_text("KEPT", timeout=SPARK_MS)
    operator.get_by_text("The certificate in full").click()
    expect(operator.locator("pre")).to_contain_text("declared   LOSSLESS & IN_STREAM_ORDER")
    shoot(operator, "certificate")


def wait_for_results(demo: Demo) -> None:
    until = time.monotonic() + SPARK_S
    while not demo.given():
        assert time.monotonic() < until, "no result came"
        time.sleep(0.5)
