"""The page's paths: who sees what, and what strangers get."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catchment.cloud.forgetting import forget, whom
from catchment.device.control import Control
from catchment.errors import PeerError
from catchment.gateway.page.follower import places
from catchment.gateway.stores import open_accounts
from catchment.program.types import FLOAT, Column, Schema
from tests.unit.gateway.page_kit import Page, Streamed, enrol, program, results, tell, walk

# -- who sees what -----------------------------------------------------------------------------------------------------

PRIVATE = ("report", "devices", "plan", "events")


@pytest.mark.parametrize("path", PRIVATE)
def test_nobody_sees_anything_without_signing_in(tmp_path: Path, path: str) -> None:
    async def story(page: Page) -> None:
        answer = await page.client.get(f"/page/v1/{path}")
        assert (answer.status_code, answer.json()["code"]) == (401, "G602")
        page.client.cookies.set("catchment", "made up")
        assert (await page.client.get(f"/page/v1/{path}")).status_code == 401

    tell(tmp_path, story)


def test_a_user_sees_their_own_report_devices_and_places_and_nobody_elses(tmp_path: Path) -> None:
    async def story(page: Page) -> None:
        enrol(page, "ada-phone", "ada")
        enrol(page, "bob-phone", "bob")
        await walk(page, "ada-phone", "ada", 46.0)
        await walk(page, "bob-phone", "bob", 47.0)
        results(page, "ada", 1.5)
        results(page, "bob", 99.9)
        page.watch.asked()
        await asyncio.to_thread(page.watch._look_aside, True)
        await page.sign_in("ada")
        report = await page.get("report")
        (sums,) = report["streams"]
        assert (report["user"], report["users"]) == ("ada", ["ada"])
        assert [field["unit"] for field in sums["fields"]] == ["", "", "°", "°", "", "g"]
        assert sums["rows"] == [["ada", 7, 46.0, 14.5, "walk", 1.5]]
        assert [one["device"] for one in (await page.get("devices"))["devices"]] == ["ada-phone"]
        other = await page.client.get("/page/v1/report?user=bob")
        assert (other.status_code, other.json()["code"]) == (403, "G603")
        assert (await page.client.get("/page/v1/plan")).status_code == 403
        answer = await page.client.post("/page/v1/levers", json={"pull": "kill"})
        assert answer.status_code == 403
        told = await page.events({"hello", "map", "report"})
        assert set(told) == {"hello", "map", "report"}, "what is about the fleet is not told"
        assert told["hello"]["charts"] == []
        assert list(told["map"]) == ["ada-phone"]
        assert "bob" not in json.dumps(told)

    tell(tmp_path, story)


def test_an_operator_sees_the_fleet(tmp_path: Path) -> None:
    async def story(page: Page) -> None:
        enrol(page, "ada-phone", "ada")
        enrol(page, "bus-7", "transit", kind="vehicle")
        await walk(page, "ada-phone", "ada", 46.0)
        results(page, "ada", 1.5)
        page.watch.asked()
        await asyncio.to_thread(page.watch._look_aside, True)
        await page.sign_in("boss")
        told = await page.events({"hello", "now", "map"})
        assert told["map"]["ada-phone"]["points"][-1] == [46.002, 14.5, "walk", 2000]
        (stream,) = told["now"]["streams"]
        assert (stream["stream"], stream["elements"], stream["filtered"]) == ("walks/steps", 3, 2)
        assert stream["plain_bytes"] > stream["sent_bytes"] > 0
        assert told["now"]["devices"]["enrolled"] == 2
        assert told["now"]["errors"][-1]["event"] == "query failed"
        assert {one["kind"] for one in (await page.get("devices"))["devices"]} == {"phone", "vehicle"}
        assert (await page.get("report?user=ada"))["streams"][0]["rows"] == [["ada", 7, 46.0, 14.5, "walk", 1.5]]
        assert (await page.get("report?user=ada"))["users"] == ["ada", "transit"]
        (plan,) = (await page.get("plan"))["plans"]
        assert [(edge["name"], edge["direction"]) for edge in plan["edges"]] == [("steps", "up"), ("sums", "down")]

    tell(tmp_path, story)


def test_who_is_forgotten_is_shown_to_nobody_and_may_not_look(tmp_path: Path) -> None:
    async def story(page: Page) -> None:
        for name in ("ada", "bob"):
            enrol(page, f"{name}-phone", name)
            await walk(page, f"{name}-phone", name, 46.0)
            results(page, name, 1.5)
        page.watch.asked()
        page.watch.number = 1
        await asyncio.to_thread(page.watch._look_aside, True)
        assert set(page.watch.follower.devices) == {"ada-phone", "bob-phone"}
        page.service.stores.enrolment.forget("ada-phone")
        page.watch.number = 0
        await asyncio.to_thread(page.watch._look_aside, True)
        assert set(page.watch.follower.devices) == {"bob-phone"}
        assert page.watch.reports.users() == ["bob"]

    tell(tmp_path, story)
    (tmp_path / "log" / "log.json").unlink()  # the log's part has tests of its own
    forget(tmp_path, whom(tmp_path, device=None, user="ada"), wait_s=0.0)
    store = open_accounts(tmp_path)
    assert [account.name for account in store.names()] == ["boss"]
    store.close()


def test_a_session_that_ends_ends_what_is_listened_to(tmp_path: Path) -> None:
    async def story(page: Page) -> None:
        await page.sign_in("ada")
        heard = []
        with pytest.raises(PeerError, match="G602"):
            async for kind, _ in Streamed(page.client).events(page.site):
                heard.append(kind)
                store = open_accounts(page.service.options.data)
                store.remove("ada")
                store.close()
        assert heard[0] == "hello"

    tell(tmp_path, story)


def test_which_fields_are_places(tmp_path: Path) -> None:
    plan = program()
    assert places(plan.schemas[plan.sync("steps").schema]) == (2, 3, 4, 1)
    assert places(Schema("Depth", (Column("lat_deg", FLOAT), Column("depth_m", FLOAT)))) is None


# -- files and levers --------------------------------------------------------------------------------------------------


def test_the_page_comes_from_the_package_and_runs_nothing_else(tmp_path: Path) -> None:
    async def story(page: Page) -> None:
        answer = await page.client.get("/")
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert "<script>" not in answer.text
        assert " style=" not in answer.text
        assert (await page.client.get("/", headers={"if-none-match": answer.headers["etag"]})).status_code == 304
        for name in ("main.js", "page.css", "mark.svg"):
            found = await page.client.get(f"/page/assets/{name}")
            assert found.status_code == 200
            assert "//cdn" not in found.text
        assert (await page.client.get("/page/assets/../accounts.db")).status_code == 404

    tell(tmp_path, story)


def test_a_demo_is_asked_to_break_things_and_nobody_else(tmp_path: Path) -> None:
    pulled: list[dict[str, Any]] = []
    (tmp_path / "levers").mkdir()

    async def story(page: Page) -> None:
        await page.sign_in("boss")
        answer = await page.client.post("/page/v1/levers", json={"pull": "kill"})
        assert (answer.status_code, answer.json()["code"]) == (404, "G608"), "no demo, nothing to break"

        def asked(question: dict[str, Any], answers: Any) -> None:
            pulled.append(question)
            answer: dict[str, Any] = {"error": "no executor"} if question == {"pull": "kill"} else {"levers": []}
            answers.put(answer)

        control = Control(tmp_path / "levers", asked)
        assert (await page.client.post("/page/v1/levers", json={"pull": "cut"})).json() == {"levers": []}
        refused = await page.client.post("/page/v1/levers", json={"pull": "kill"})
        assert (refused.status_code, refused.json()["code"]) == (409, "G609")
        assert "no executor" in refused.json()["why"]
        control.stop()

    tell(tmp_path, story)
    assert {"pull": "cut"} in pulled
    assert threading.active_count() < 50


def test_a_gateway_that_ends_does_not_wait_for_who_watches(tmp_path: Path) -> None:
    async def story(page: Page) -> None:
        ending = False
        page.site.stopping = lambda: ending
        await page.sign_in("boss")
        async for kind, _ in Streamed(page.client).events(page.site):
            ending = ending or kind == "now"
        assert ending

    tell(tmp_path, story)


def test_what_a_supervisor_writes_badly_is_not_shown(tmp_path: Path) -> None:
    async def story(page: Page) -> None:
        path = tmp_path / "programs" / "walks" / "status.json"
        path.write_text("{")
        page.watch._states.clear()
        await asyncio.to_thread(page.watch._look_aside, True)
        await page.sign_in("boss")
        assert (await page.events({"now"}))["now"]["programs"] == {}
        assert msgspec.json.encode(page.watch.now())

    tell(tmp_path, story)
