"""A gateway with a page, a program of its own, uploads and results in it, and somebody's browser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

import catchment as cm
from catchment.gateway.app import Application
from catchment.gateway.downlink import Keep, Mark, Result, to_user
from catchment.gateway.log import Entry, Kind
from catchment.gateway.log.files.partition import Limits
from catchment.gateway.page.site import Site
from catchment.gateway.page.watch import Watch
from catchment.gateway.service import Service
from catchment.gateway.stores import Options, open_accounts
from catchment.plan import document
from catchment.plan.build import build
from catchment.plan.physical import Plan
from catchment.sync.codecs import codec
from tests.unit.gateway.test_gateway_app import _echo, _hang_up

PASSWORD = "correct horse"
Story = Callable[["Page"], Awaitable[None]]


class Step(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)
    mode: cm.Field[str]


class Sum(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)
    mode: cm.Field[str]
    carbon_g: cm.Field[float] = cm.field(step=0.1)


def program() -> Plan:
    walks = cm.Program("walks")

    @walks.stream(at=cm.DEVICE)
    def steps(device: cm.DeviceSite) -> cm.Stream[Step]:
        return device.sensor(Step, "gps", every=cm.seconds(1))

    @walks.stream(at=cm.CLOUD)
    def sums(steps: cm.Stream[Step]) -> cm.Stream[Sum]:
        return steps.select(Sum, carbon_g=1.5)

    walks.deliver(sums, by=Sum.user, keep="all")
    return build(walks)


class Page:
    """A gateway with a page, ada and the operator, and somebody's browser."""

    def __init__(self, service: Service, site: Site, client: httpx.AsyncClient) -> None:
        self.service, self.site, self.client = service, site, client
        self.watch: Watch = site.watch

    async def sign_in(self, name: str, password: str = PASSWORD) -> httpx.Response:
        return await self.client.post("/page/v1/session", json={"name": name, "password": password})

    async def get(self, path: str) -> Any:
        return (await self.client.get(f"/page/v1/{path}")).json()

    async def events(self, kinds: set[str]) -> dict[str, Any]:
        """The first event of each of these kinds."""
        found: dict[str, Any] = {}
        answer = Streamed(self.client)
        async for kind, value in answer.events(self.site):
            found.setdefault(kind, value)
            if kinds <= set(found):
                break
        return found


class Streamed:
    """Server-sent events, read off the application: the test transport waits for an answer's end."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        headers = [(b"cookie", cookie.encode())]
        self._scope: dict[str, Any] = {"type": "http", "scheme": "http", "query_string": b"", "headers": headers}

    async def events(self, site: Site) -> AsyncIterator[tuple[str, Any]]:
        async def receive() -> dict[str, Any]:
            await asyncio.sleep(60)
            return {"type": "http.disconnect"}

        streamed = await site.pages()["/page/v1/events"]["GET"](self._scope, receive)
        async for part in streamed.parts:  # type: ignore[union-attr]
            head, data, *_ = part.decode().split("\n")
            yield head.removeprefix("event: "), json.loads(data.removeprefix("data: "))


@asynccontextmanager
async def running(data: Path) -> AsyncIterator[Page]:
    service = Service(Options(data, partitions=1, log=Limits(reserve_bytes=0)))
    site = Site(service)
    application = Application(service, exchange=_echo, talk=_hang_up, site=site)
    await service.start()
    site.begin()
    accounts = open_accounts(data)
    accounts.give("ada", password=PASSWORD)
    accounts.give("boss", operator=True, password=PASSWORD)
    accounts.close()
    service.stores.plans.publish("walks", document.write(program()))
    (data / "programs" / "walks").mkdir(parents=True)
    said = {"program": "walks", "state": "running", "queries": {"sums@cloud": "disk full"}, "given": {"sums": 2}}
    (data / "programs" / "walks" / "status.json").write_text(json.dumps(said))
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        yield Page(service, site, client)
    await site.end()
    await service.stop()


def tell(data: Path, story: Story) -> None:
    async def whole() -> None:
        async with asyncio.timeout(120), running(data) as page:
            await story(page)

    asyncio.run(whole())


def enrol(page: Page, device: str, user: str, kind: str = "phone") -> None:
    enrolment = page.service.stores.enrolment
    token = enrolment.token(user=user, program="walks", device=device, kind=kind, now_us=0, valid_us=1)
    enrolment.enrol(token, device=device, now_us=0)


async def walk(page: Page, device: str, user: str, lat_deg: float, count: int = 3) -> None:
    """An upload of some steps, in the log."""
    plan = program()
    schema = plan.schemas[plan.sync("steps").schema]
    rows = [("", 1_000_000 * n, lat_deg + n / 1000, 14.5, "walk") for n in range(count)]
    entry = Entry(
        kind=Kind.DATA,
        device=device,
        user=user,
        stream="walks/steps",
        schema=schema.fingerprint,
        codec="delta/deflate",
        count=count,
        upto=count + 2,
        received_us=5_000_000,
        payload=codec("delta/deflate").encode(schema, rows),
    )
    await page.service.log(page.service.stores.log.writers[0], [entry])


def results(page: Page, user: str, carbon_g: float) -> None:
    plan = program()
    sync = plan.sync("sums")
    schema = plan.schemas[sync.schema]
    payload = codec("msgpack").encode(schema, [(user, 7, 46.0, 14.5, "walk", carbon_g)])
    result = Result(to_user(user), "walks/sums", bytes.fromhex(sync.schema), "msgpack", payload)
    mark = Mark("walks", f"sums/{user}", 1, 0, "0-1")
    page.service.stores.downlink.append(mark, [result], keep=Keep.ALL, now_us=9)
