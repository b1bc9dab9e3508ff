"""A peer in an environment of its own: made once, made again when its requirements change, its failures named.

No peer here has packages from outside, so nothing is downloaded.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.harness import Reading
from bench.peer import Peer, PeerFailedError

ANSWERS = """
import json, sys
print("loading")
print(json.dumps({"seconds": 0.5, "answer": [sys.prefix, sys.argv[1:]]}))
"""


def a_peer(tmp_path: Path, script: str, *requirements: str) -> Peer:
    path = tmp_path / "script.py"
    path.write_text(script)
    return Peer("peer", requirements, str(path), home=tmp_path / "peers")


def test_it_runs_in_its_own_environment_and_answers(tmp_path: Path) -> None:
    side = a_peer(tmp_path, ANSWERS).side("input.csv", "7")
    assert side.name == "peer"
    assert side.run() == Reading(0.5, [str(tmp_path / "peers" / "peer"), ["input.csv", "7"]])


def test_its_environment_is_made_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    peer = a_peer(tmp_path, ANSWERS)
    peer.side()
    peer.side()
    assert capsys.readouterr().out.count("[set-up]") == 1


def test_other_requirements_make_it_again(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    left_over = a_peer(tmp_path, ANSWERS).install().parent / "left_over"
    left_over.touch()
    with pytest.raises(PeerFailedError, match="peer could not be installed"):
        a_peer(tmp_path, ANSWERS, str(package)).install()  # a directory that is no package
    assert not left_over.exists()
    # What failed is not taken for done.
    with pytest.raises(PeerFailedError):
        a_peer(tmp_path, ANSWERS, str(package)).install()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("import sys; sys.exit('out of paper')", "out of paper"),
        ("print('no reading')", "no reading"),
        ("print(1)", "'1'"),
        ('import sys\nprint(\'{"seconds": 1, "answer": 2}\')\nsys.exit(3)', "ended with 3"),
    ],
)
def test_a_script_that_ends_without_a_reading_is_named(tmp_path: Path, script: str, says: str) -> None:
    side = a_peer(tmp_path, script).side()
    with pytest.raises(PeerFailedError, match=says):
        side.run()
