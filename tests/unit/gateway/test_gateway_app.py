"""The application over HTTP, in process: enrolment, plans, health, and what strangers get."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from catchment.errors import InternalError
from catchment.gateway import http
from catchment.gateway.app import Application
from catchment.gateway.http import Answer, Receive, Scope, Send
from catchment.gateway.limits import GatewayLimits
from catchment.gateway.log.files.partition import Limits
from catchment.gateway.log.files.reader import open_log
from catchment.gateway.service import Service
from catchment.gateway.stores import Options
from tests.unit.gateway.kit import upload

HOUR_US = 3_600_000_000
Story = Callable[[httpx.AsyncClient, Service], Awaitable[None]]


async def _echo(scope: Scope, receive: Receive) -> Answer:
    body = await http.read_body(scope, receive, bytes_max=1000, within_us=50_000)
    if body == b"break":
        raise RuntimeError("a secret detail")
    if body == b"ours":
        raise InternalError("G507", "the disk failed", why="a secret path", fix="a secret fix")
    return Answer(200, body, http.FRAMES)


async def _hang_up(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "websocket.close", "code": 1000})


@asynccontextmanager
async def _running(data: Path) -> AsyncIterator[tuple[httpx.AsyncClient, Service]]:
    options = Options(data, partitions=2, log=Limits(reserve_bytes=0), limits=GatewayLimits(body_us=50_000))
    service = Service(options)
    application = Application(service, exchange=_echo, talk=_hang_up)
    await service.start()
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        yield client, service
    await service.stop()


def _tell(data: Path, story: Story) -> None:
    async def whole() -> None:
        async with _running(data) as (client, service):
            await story(client, service)

    asyncio.run(whole())


def _token(service: Service) -> str:
    now_us = service.clock_us()
    return service.stores.enrolment.token(user="ada", program="peir", now_us=now_us, valid_us=HOUR_US)


def test_a_device_enrols_rotates_and_fetches_its_plan(tmp_path: Path) -> None:
    async def story(client: httpx.AsyncClient, service: Service) -> None:
        answer = await client.post("/v1/enrol", json={"token": _token(service), "device": "phone", "kind": "android"})
        assert answer.status_code == 201
        given = answer.json()
        assert (given["device"], given["user"], given["program"]) == ("phone", "ada", "peir")
        auth = ("phone", given["credential"])
        assert (await client.get("/v1/plan", auth=auth)).status_code == 404
        fingerprint = service.stores.plans.publish("peir", b'{"plan":1}')
        plan = await client.get("/v1/plan", auth=auth)
        assert (plan.status_code, plan.content, plan.headers["etag"]) == (200, b'{"plan":1}', f'"{fingerprint}"')
        unchanged = await client.get("/v1/plan", auth=auth, headers={"if-none-match": plan.headers["etag"]})
        assert (unchanged.status_code, unchanged.content) == (304, b"")
        new = (await client.post("/v1/rotate", auth=auth)).json()["credential"]
        assert (await client.get("/v1/plan", auth=("phone", new))).status_code == 200
        assert (await client.get("/v1/plan", auth=auth)).status_code == 401

    _tell(tmp_path, story)


@pytest.mark.parametrize(
    ("method", "path", "arguments", "status", "code"),
    [
        ("GET", "/wp-admin", {}, 404, "G550"),
        ("DELETE", "/health", {}, 405, "G551"),
        ("POST", "/v1/sync", {"content": bytes(1001)}, 413, "G552"),
        ("POST", "/v1/enrol", {"content": b"{"}, 400, "G558"),
        ("POST", "/v1/enrol", {"json": {"token": "guess", "device": "phone"}}, 403, "G520"),
        ("GET", "/v1/plan", {}, 400, "G559"),
        ("GET", "/v1/plan", {"headers": {"authorization": "Basic ???"}}, 400, "G559"),
        ("GET", "/v1/plan", {"auth": ("phone", "guess")}, 401, "G523"),
        ("POST", "/v1/rotate", {"auth": ("phone", "guess")}, 401, "G523"),
    ],
)
def test_refusals_say_what_was_wrong_and_are_counted(
    tmp_path: Path, method: str, path: str, arguments: dict[str, Any], status: int, code: str
) -> None:
    async def story(client: httpx.AsyncClient, service: Service) -> None:
        answer = await client.request(method, path, **arguments)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert {"what", "why", "fix"} < set(answer.json())
        assert service.metrics.refused.values[(code,)] == 1

    _tell(tmp_path, story)


def test_a_body_without_end_and_one_without_haste_are_cut_off(tmp_path: Path) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield bytes(100)

    async def story(client: httpx.AsyncClient, service: Service) -> None:
        answer = await client.post("/v1/sync", content=endless())
        assert (answer.status_code, answer.json()["code"]) == (413, "G552")

    _tell(tmp_path, story)

    async def slow() -> None:
        async def receive() -> dict[str, object]:
            await asyncio.Event().wait()
            return {}

        with pytest.raises(Exception, match="G553"):
            await http.read_body({"headers": []}, receive, bytes_max=10, within_us=1000)

        async def broken() -> dict[str, object]:
            return {"type": "http.disconnect"}

        with pytest.raises(Exception, match="G554"):
            await http.read_body({"headers": []}, broken, bytes_max=10, within_us=10**9)

    asyncio.run(slow())


def test_what_fails_inside_is_not_told_to_strangers(tmp_path: Path) -> None:
    async def story(client: httpx.AsyncClient, service: Service) -> None:
        for body, status in ((b"break", 500), (b"ours", 503)):
            answer = await client.post("/v1/sync", content=body)
            assert answer.status_code == status and "secret" not in answer.text
        assert (await client.post("/v1/sync", content=b"fine")).content == b"fine"

    _tell(tmp_path, story)


def test_health_readiness_and_metrics_tell_the_truth(tmp_path: Path) -> None:
    async def story(client: httpx.AsyncClient, service: Service) -> None:
        assert (await client.get("/health")).json()["partitions"] == {"0": "writing", "1": "writing"}
        assert (await client.get("/ready")).status_code == 200
        assert (await client.head("/ready")).content == b""
        metrics = (await client.get("/metrics")).text
        assert "catchment_gateway_ready 1" in metrics
        assert 'catchment_gateway_partition_state{partition="0",state="writing"} 1' in metrics
        await asyncio.to_thread(service.stores.log.close)
        assert (await client.get("/ready")).status_code == 503

    _tell(tmp_path, story)


def test_who_holds_the_log_back_is_named(tmp_path: Path) -> None:
    async def story(client: httpx.AsyncClient, service: Service) -> None:
        writer = service.stores.log.writers[0]
        await service.log(writer, [upload(1)])
        # Taken again, each partition begins another segment, and what it has is full.
        await asyncio.to_thread(service.stores.log.close)
        log = open_log(tmp_path / "log")
        log.confirm("gone", 0, 0)
        log.confirm("level", 0, log.end(0))
        log.confirm("level", 1, log.end(1))
        await service._tend()
        held = (await client.get("/health")).json()["held_bytes"]
        assert list(held) == ["gone", "level"]
        assert held["gone"] > held["level"] == 0
        metrics = (await client.get("/metrics")).text
        assert f'catchment_gateway_log_held_bytes{{reader="gone"}} {held["gone"]}' in metrics

    _tell(tmp_path, story)


def test_the_journal_is_json_and_names_what_happened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from catchment.gateway.journal import Lines

    async def story(client: httpx.AsyncClient, service: Service) -> None:
        token = _token(service)
        await client.post("/v1/enrol", json={"token": token, "device": "phone"})

    with caplog.at_level("INFO", logger="catchment.gateway"):
        _tell(tmp_path, story)
    lines = [json.loads(Lines().format(record)) for record in caplog.records if record.name == "catchment.gateway"]
    enrolled = next(line for line in lines if line["event"] == "device enrolled")
    assert (enrolled["device"], enrolled["user"], enrolled["level"]) == ("phone", "ada", "info")
    assert [line["event"] for line in lines][-1] == "stopped"


def test_the_reference_names_every_path_and_every_metric(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/reference/gateway.md").read_text()

    async def story(client: httpx.AsyncClient, service: Service) -> None:
        from catchment.gateway.exchange import Exchange

        Exchange(service)
        text = (await client.get("/metrics")).text
        names = {line.split()[2].removeprefix("catchment_gateway_") for line in text.splitlines() if "# TYPE" in line}
        assert {name for name in names if f"`{name}" not in page} == set()
        for path in ("/v1/sync", "/v1/enrol", "/v1/rotate", "/v1/plan", "/health", "/ready", "/metrics"):
            assert f"{path}`" in page

    _tell(tmp_path, story)
