"""Asking a device: through its socket while it runs, in its directory while it does not."""

import json
import queue
import socket
from dataclasses import replace
from pathlib import Path

import pytest

import catchment as cm
from catchment.cli import main
from catchment.device.agent import Agent
from catchment.device.control import SOCKET, Answer, Control, Question, ask
from catchment.device.process import OUTBOX, refuse_for_good
from catchment.device.status import AtRest, answer, results
from catchment.device.surroundings import BATTERY_LOW, MachineEnvironment, Surroundings, battery_of
from catchment.device.transport import Reply
from catchment.errors import PeerError, ProgramError
from catchment.sync.outbox import Outbox
from tests.thread.device_program import carried
from tests.thread.program import Reading
from tests.unit.device.device_world import BEGIN_US, SECOND_US, Disk, World

GENERATED = "meter=generate:seed=3,every=1s"


class OnDisk(Disk):
    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._path = directory / OUTBOX

    def open(self) -> Outbox:
        return Outbox.open(self._path, fresh_nonce=self.nonce)


def started(directory: Path) -> tuple[World, Agent]:
    world = World(carried, GENERATED, poll_s=5)
    world.disk = OnDisk(directory)
    return world, world.start()


def control(directory: Path, agent: Agent) -> Control:
    """Answers from the socket's own thread: nothing else runs meanwhile."""

    def put(question: Question, answers: queue.SimpleQueue[Answer]) -> None:
        answers.put(answer(agent, question))

    return Control(directory, put)


def test_a_running_device_says_how_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world, agent = started(tmp_path)
    world.run(20 * SECOND_US)
    world.gateway.away = True
    world.run(10 * SECOND_US)
    status = answer(agent, {"ask": "status"})
    assert status["running"]
    assert not status["connected"]
    assert status["program"] == "carried"
    assert 8 <= status["streams"][0]["backlog"] <= 12
    assert 9 < status["last_answer_s_ago"] < 16
    assert not status["clock"]["bridged"]
    assert status["energy_model"]["watts"] > 0.17
    assert status["traffic"]["sent_bytes"] > 1000


def test_the_socket_answers_lines_with_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Deeper than the kernel takes the name of a socket.
    directory = tmp_path / ("deep" * 20) / "data"
    directory.mkdir(parents=True)
    world, agent = started(directory)
    world.run(5 * SECOND_US)
    assert ask(directory, {"ask": "status"}) is None
    listening = control(directory, agent)
    try:
        said = ask(directory, {"ask": "status"})
        assert said is not None
        assert said["epoch"] == str(agent.outbox.epoch)
        assert ask(directory, {"ask": "the time"}) == {"error": "'the time' is none of: status, results"}
        assert main(["device", "status", "--data", str(directory)]) == 0
        assert "program: carried" in capsys.readouterr().out
    finally:
        listening.stop()
    assert not (directory / SOCKET).exists()


def test_what_is_no_question_is_answered_so(tmp_path: Path) -> None:
    _, agent = started(tmp_path)
    listening = control(tmp_path, agent)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(tmp_path / SOCKET))
            connection.sendall(b"hello?\n")
            assert b"no question" in connection.recv(1000)
    finally:
        listening.stop()


def test_a_socket_left_behind_by_a_kill_is_taken_over(tmp_path: Path) -> None:
    _, agent = started(tmp_path)
    left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    left.bind(str(tmp_path / SOCKET))
    left.close()
    assert ask(tmp_path, {"ask": "status"}) is None
    listening = control(tmp_path, agent)
    assert ask(tmp_path, {"ask": "status"}) is not None
    listening.stop()


def test_a_device_at_rest_is_read_without_beginning_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world, agent = started(tmp_path)
    world.gateway.give(world.plan, "totals", [("ada", BEGIN_US, n, n * n) for n in range(3)])
    world.run(20 * SECOND_US)
    world.gateway.away = True
    world.run(10 * SECOND_US)
    backlog = agent.backlog()
    epoch = agent.outbox.epoch
    agent.outbox.close()
    assert main(["device", "status", "--data", str(tmp_path), "--json"]) == 1
    status = json.loads(capsys.readouterr().out)
    assert not status["running"]
    assert status["plan"] == "first"
    assert status["streams"][0]["backlog"] == backlog > 5
    assert main(["device", "results", "--data", str(tmp_path)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["row"]["total"] for line in lines] == [0, 1, 4]
    assert {line["stream"] for line in lines} == {"totals"}
    assert main(["device", "results", "--data", str(tmp_path), "--after", str(lines[1]["id"])]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    again = world.disk.open()
    assert epoch is not None
    assert again.epoch is not None
    assert again.epoch.counter == epoch.counter + 1
    again.close()


def test_results_of_a_stream_that_does_not_come_here_are_refused(tmp_path: Path) -> None:
    world, agent = started(tmp_path)
    with pytest.raises(ProgramError, match="D650") as refused:
        results(world.plan, agent.outbox_results, 0, "weather")
    assert "totals" in refused.value.why


def test_a_directory_without_a_device_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ProgramError, match="D651"):
        AtRest(tmp_path / OUTBOX)
    assert main(["device", "status", "--data", str(tmp_path)]) == 2
    assert "D651" in capsys.readouterr().err


def test_a_device_that_answers_with_an_error_passes_it_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listening = Control(tmp_path, lambda question, answers: answers.put({"error": "the device is busy"}))
    try:
        assert main(["device", "results", "--data", str(tmp_path)]) == 2
        assert "D652" in capsys.readouterr().err
    finally:
        listening.stop()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--gateway", "nowhere"], "D630"),
        (["--gateway", "http://127.0.0.1:9"], "D633"),
        (["--plan", "missing.json"], "D634"),
        ([], "D635"),
        (["--sensor", "x"], "D625"),
        (["--poll", "never"], "D628"),
    ],
)
def test_what_a_first_start_lacks_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: str
) -> None:
    assert main(["device", "run", "--data", str(tmp_path / "device"), *words]) == 2
    assert code in capsys.readouterr().err


def test_a_program_that_has_nothing_to_do_on_a_device_is_refused(tmp_path: Path) -> None:
    cloudy = cm.Program("cloudy")

    def readings(cloud: cm.CloudSite) -> cm.Stream[Reading]:
        return cloud.source(Reading)

    cloudy.stream(at=cm.CLOUD)(readings)
    with pytest.raises(ProgramError, match="D632"):
        World(cloudy).start()


def test_a_gateway_that_gives_no_plan_is_final(tmp_path: Path) -> None:
    refuse_for_good(Reply(503, b""))
    with pytest.raises(PeerError, match="D642"):
        refuse_for_good(Reply(401, b"no"))


# -- surroundings ------------------------------------------------------------------------------------------------------


def supply(directory: Path, name: str, **files: str) -> None:
    (directory / name).mkdir(parents=True)
    for file, text in files.items():
        (directory / name / file).write_text(text + "\n")


def test_the_battery_is_the_machines_and_not_a_mouses(tmp_path: Path) -> None:
    assert battery_of(tmp_path / "nothing") is None
    supply(tmp_path, "AC", online="1")
    supply(tmp_path, "hid-mouse", capacity="3", scope="Device", status="Discharging")
    assert battery_of(tmp_path) is None
    supply(tmp_path, "BAT0", capacity="15", status="Discharging")
    assert battery_of(tmp_path) == (0.15, False)
    around = MachineEnvironment(None, tmp_path).look()
    assert (around.battery_level, around.battery_low) == (0.15, True)
    (tmp_path / "BAT0" / "status").write_text("Charging\n")
    assert not MachineEnvironment(None, tmp_path).look().battery_low
    assert BATTERY_LOW > 0.15


def test_what_the_platform_says_is_read_when_it_changes(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    environment = MachineEnvironment(told, tmp_path / "nothing")
    assert environment.look() == Surroundings()
    told.write_text('{"indoors": true, "battery_level": 0.5}')
    assert environment.look() == replace(Surroundings(), indoors=True, battery_level=0.5)
    told.write_text('{"metered": true}')
    assert environment.look() == replace(Surroundings(), metered=True)
    told.unlink()
    assert environment.look().metered, "a file that is being replaced says what it said"


@pytest.mark.parametrize("text", ["{", "[]", '{"indoors": 1}', '{"mood": true}', '{"battery_level": true}'])
def test_what_the_platform_may_not_say_is_refused_and_holds_nothing_up(tmp_path: Path, text: str) -> None:
    told = tmp_path / "told.json"
    told.write_text(text)
    with pytest.raises(ProgramError, match="D610"):
        MachineEnvironment(told, tmp_path / "nothing").look()
