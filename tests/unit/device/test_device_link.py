"""The link to a gateway: when a device writes, whom it asks, how it enrols, and what it makes of HTTP."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

import catchment as cm
from catchment.device.identity import Identified, enrol, keep_identity, read_identity
from catchment.device.transport import Http, Reply, Request, basic, check_gateway
from catchment.errors import PeerError, ProgramError
from catchment.gateway.log.entry import Kind
from catchment.program.sync import wait_when_metered
from catchment.sync.frame import Hello, Moved, Welcome, decode_all, encode
from tests.thread.device_program import carried
from tests.thread.program import Reading, thread
from tests.unit.device.device_world import MINUTE_US, SECOND_US, World

batched = cm.Program("batched")


@batched.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(records=1000, within=cm.minutes(1))))
def readings(device: cm.DeviceSite) -> cm.Stream[Reading]:
    """Once a minute is often enough."""
    return device.sensor(Reading, "meter", every=cm.seconds(1))


@batched.stream(at=cm.CLOUD)
def kept(readings: cm.Stream[Reading]) -> cm.Stream[Reading]:
    """Somebody reads them."""
    return readings.where(Reading.amount >= 0)


def test_a_batch_of_a_minute_means_one_message_a_minute() -> None:
    world = World(batched, "meter=generate")
    world.start()
    world.run(30 * MINUTE_US)
    # The first contact takes two messages, and sends what there is.
    assert 29 <= world.gateway.messages <= 33
    amounts = [row[2] for row in world.gateway.rows(world.plan, "readings")]
    assert amounts == list(range(len(amounts)))
    assert len(amounts) > 29 * 60


def test_while_nobody_answers_a_hello_goes_alone_and_then_everything() -> None:
    world = World(thread, "meter=generate:seed=3,every=1s")
    agent = world.start()
    world.run(10 * SECOND_US)
    assert agent.correspondent is not None
    world.gateway.away = True
    # What is under way when the gateway goes may hold elements; every attempt after that one is for nothing.
    world.run(10 * SECOND_US)
    before, attempts = agent.correspondent.bytes_sent, agent.correspondent.requests
    world.run(60 * MINUTE_US)
    attempts = agent.correspondent.requests - attempts
    assert attempts > 10
    assert agent.backlog() > 3_500
    assert (agent.correspondent.bytes_sent - before) / attempts < 1_000
    world.gateway.away = False
    world.run(10 * MINUTE_US)
    amounts = [row[2] for row in world.gateway.rows(world.plan, "readings")]
    assert amounts == list(range(len(amounts)))
    assert len(amounts) > 4_100


def test_a_metered_link_is_waited_out_where_the_policy_says_so() -> None:
    waiting = cm.Program("waiting")

    def phone(device: cm.DeviceSite) -> cm.Stream[Reading]:
        return device.sensor(Reading, "meter", every=cm.seconds(1))

    def cloud(phone: cm.Stream[Reading]) -> cm.Stream[Reading]:
        return phone.where(Reading.amount >= 0)

    policy = cm.Sync(batch=cm.Batch(within=cm.seconds(5)), metered=wait_when_metered())
    waiting.stream(at=cm.DEVICE, sync=policy)(phone)
    waiting.stream(at=cm.CLOUD)(cloud)
    world = World(waiting, "meter=generate")
    world.around = replace(world.around, metered=True)
    world.start()
    world.run(5 * MINUTE_US)
    assert world.gateway.rows(world.plan, "phone") == []
    world.around = replace(world.around, metered=False)
    world.run(MINUTE_US)
    assert len(world.gateway.rows(world.plan, "phone")) > 5 * 60


def test_results_are_asked_for_as_often_as_told_and_only_where_there_are_any() -> None:
    asking, silent = World(carried, "meter=generate:count=0", poll_s=10), World(batched, "meter=generate:count=0")
    for world in (asking, silent):
        world.start()
        world.run(10 * MINUTE_US)
    assert 58 <= asking.gateway.messages <= 64
    assert silent.gateway.messages <= 7, "a sign of life every two minutes"


def test_a_gateway_that_cannot_be_reached_is_tried_ever_less_often() -> None:
    world = World(thread, "meter=generate:every=1s")
    world.gateway.away = True
    world.start()
    world.run(60 * MINUTE_US)
    tried = len(world.said("trouble")) + sum(int(str(line.get("not_said", 0))) for line in world.said("trouble"))
    assert 12 <= tried <= 60


def test_a_gateway_that_has_moved_is_followed_and_left_again_when_it_is_gone() -> None:
    world = World(thread, "meter=generate:every=1s")
    agent = world.start()
    world.run(5 * SECOND_US)
    correspondent = agent.correspondent
    assert correspondent is not None
    asked: list[str] = []
    ask = world.gateway.ask

    def elsewhere(request: Request, now_us: int) -> Reply:
        asked.append(request.gateway)
        if request.gateway == "http://gateway" and len(asked) < 3:
            return Reply(200, encode(Moved("http://other")))
        if request.gateway == "http://other" and len(asked) > 20:
            return Reply(0, b"connection refused")
        return ask(request, now_us)

    world.gateway.ask = elsewhere  # type: ignore[method-assign]
    world.run(2 * MINUTE_US)
    assert asked[:3] == ["http://gateway", "http://other", "http://other"]
    assert asked[-1] == "http://gateway"
    amounts = [row[2] for row in world.gateway.rows(world.plan, "readings")]
    assert amounts == list(range(len(amounts)))
    assert len(amounts) > 100


def test_an_answer_that_says_nothing_to_a_challenge_ends_the_exchange_and_not_the_device() -> None:
    world = World(thread, "meter=generate:every=1s")
    ask, asked = world.gateway.ask, [0]

    def mute(request: Request, now_us: int) -> Reply:
        asked[0] += 1
        (hello, *_) = decode_all(request.body)
        assert isinstance(hello, Hello)
        if asked[0] == 1:
            return Reply(200, encode(Welcome(hello.nonce, challenge=b"are you there")))
        return Reply(200, b"") if asked[0] == 2 else ask(request, now_us)

    world.gateway.ask = mute  # type: ignore[method-assign]
    world.start()
    world.run(MINUTE_US)
    amounts = [row[2] for row in world.gateway.rows(world.plan, "readings")]
    assert amounts == list(range(len(amounts)))
    assert len(amounts) > 20


def test_a_gateway_that_is_busy_is_asked_again_when_it_says() -> None:
    world = World(thread, "meter=generate:every=1s")
    world.start()
    world.run(5 * SECOND_US)
    ask, refused = world.gateway.ask, [0]

    def busy(request: Request, now_us: int) -> Reply:
        refused[0] += 1
        return Reply(503, b'{"code":"G556","what":"busy","why":"","fix":"later"}', {"retry-after": "30"})

    world.gateway.ask = busy  # type: ignore[method-assign]
    world.run(2 * MINUTE_US)
    assert 3 <= refused[0] <= 5
    assert world.said("trouble")[0]["code"] == "G556"
    world.gateway.ask = ask  # type: ignore[method-assign]
    world.run(MINUTE_US)
    amounts = [row[2] for row in world.gateway.rows(world.plan, "readings")]
    assert amounts == list(range(len(amounts)))


def test_every_message_begins_with_who_speaks_and_nothing_else_does() -> None:
    world = World(thread, "meter=generate:every=1s")
    bodies: list[bytes] = []
    ask = world.gateway.ask

    def listen(request: Request, now_us: int) -> Reply:
        bodies.append(request.body)
        return ask(request, now_us)

    world.gateway.ask = listen  # type: ignore[method-assign]
    world.start()
    world.run(MINUTE_US)
    kinds = [[type(frame).__name__ for frame in decode_all(body)] for body in bodies]
    assert kinds[0] == ["Hello"]
    assert all(names[0] == "Hello" and "Hello" not in names[1:] for names in kinds)
    assert ["Hello", "Beat", "Data"] in kinds
    assert {entry.kind for entry in world.gateway.entries} >= {Kind.JOINED, Kind.CLOCK, Kind.DATA}


# -- enrolment ---------------------------------------------------------------------------------------------------------


def test_an_identity_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "device" / "identity.json"
    assert read_identity(path) is None
    keep_identity(path, Identified("phone", "ada", "peir", "secret"))
    assert read_identity(path) == Identified("phone", "ada", "peir", "secret")
    assert path.stat().st_mode & 0o077 == 0
    assert [file.name for file in path.parent.iterdir()] == ["identity.json"]
    path.write_text("{")
    with pytest.raises(ProgramError, match="D631"):
        read_identity(path)


def test_a_token_becomes_an_identity_or_waits_or_is_refused_for_good() -> None:
    def asked(reply: Reply) -> Identified | None:
        return enrol(lambda request: reply, gateway="http://g", token="t", device="phone")

    given = b'{"device":"phone","user":"ada","program":"peir","credential":"c"}'
    assert asked(Reply(201, given)) == Identified("phone", "ada", "peir", "c")
    assert asked(Reply(0, b"no route")) is None
    assert asked(Reply(503, b"")) is None
    with pytest.raises(PeerError, match="D641") as refused:
        asked(
            Reply(403, b'{"code":"G520","what":"this enrolment token is not valid","why":"it has expired","fix":"ask"}')
        )
    assert refused.value.why == "G520 this enrolment token is not valid it has expired"
    with pytest.raises(PeerError, match="D641"):
        asked(Reply(404, b"<html>"))


@pytest.mark.parametrize("url", ["", "gateway.example.org", "ftp://x", "http://"])
def test_what_is_no_gateway_is_refused(url: str) -> None:
    with pytest.raises(ProgramError, match="D630"):
        check_gateway(url)


def test_a_gateways_url_loses_only_its_last_slash() -> None:
    assert check_gateway("https://g.example.org/edge/") == "https://g.example.org/edge"


# -- HTTP --------------------------------------------------------------------------------------------------------------


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was sent, and hangs up when told to."""

    protocol_version = "HTTP/1.1"
    connections: ClassVar[set[int]] = set()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.connections.add(self.client_address[1])
        self.send_response(200 if body != b"teapot" else 418)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"tag"')
        self.end_headers()
        self.wfile.write(body)
        if body == b"hang up":
            self.close_connection = True

    def do_GET(self) -> None:
        self.rfile.read(0)
        self.close_connection = True  # without an answer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as it is called
        pass


@pytest.fixture
def server() -> Iterator[str]:
    listening = HTTPServer(("127.0.0.1", 0), Echo)
    thread_of_it = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread_of_it.start()
    Echo.connections.clear()
    yield f"http://127.0.0.1:{listening.server_port}/base"
    listening.shutdown()
    thread_of_it.join()
    listening.server_close()


def test_a_connection_is_kept_and_one_that_is_dead_is_made_anew(server: str) -> None:
    http = Http(timeout_s=5)
    for body in (b"one", b"two", b"hang up", b"three", b"teapot"):
        reply = http.ask(Request(server, "POST", "/v1/sync", body, basic("phone", "secret")))
        assert (reply.status, reply.body) == (418 if body == b"teapot" else 200, body)
        assert reply.headers["etag"] == '"tag"'
    assert len(Echo.connections) == 2
    http.close()


def test_an_answer_that_does_not_come_is_one_too(server: str) -> None:
    http = Http(timeout_s=5)
    assert http.ask(Request(server, "GET", "/")).status == 0
    assert http.ask(Request("http://127.0.0.1:9", "POST", "/", b"x")).problem != ""
    http.close()
