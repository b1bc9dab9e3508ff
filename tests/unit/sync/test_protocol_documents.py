"""The reference of the protocol says what the code does: its tables are drawn from it, its vectors are its bytes."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catchment.errors import PeerError
from catchment.program.types import Schema
from catchment.sync import admission, receiver, sender, session
from catchment.sync import frame as f
from catchment.sync.codecs import codec
from tests.unit.sync import vectors

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "sync-protocol.md"


def load(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((vectors.ROOT / name).read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", vectors.FILES)
def test_no_byte_of_the_protocol_changes_unseen(name: str) -> None:
    written = (vectors.ROOT / name).read_text(encoding="utf-8")
    if name == "payloads.json":
        # Compressed bytes are the libraries' affair.
        mine, theirs = json.loads(vectors.text(name)), json.loads(written)
        for one in [*mine, *theirs]:
            if not one["exact"]:
                del one["hex"]
        assert mine == theirs
    else:
        assert vectors.text(name) == written, "run python -m tests.unit.sync.vectors and look at the difference"


@pytest.mark.parametrize("vector", load("frames.json"), ids=lambda vector: vector["name"])
def test_frames_read_as_they_are_described(vector: dict[str, Any]) -> None:
    frame, end = f.decode(bytes.fromhex(vector["hex"]))
    assert type(frame).__name__ == vector["kind"]
    assert vectors.plain(frame) == vector["fields"]
    assert end * 2 == len(vector["hex"])


@pytest.mark.parametrize("vector", load("refused.json"), ids=lambda vector: vector["name"])
def test_what_is_no_frame_is_refused_with_its_code(vector: dict[str, Any]) -> None:
    with pytest.raises(PeerError) as caught:
        f.decode(bytes.fromhex(vector["hex"]))
    assert caught.value.code == vector["code"]


@pytest.mark.parametrize("vector", load("skipped.json"), ids=lambda vector: vector["name"])
def test_what_later_versions_add_is_read_past(vector: dict[str, Any]) -> None:
    frame, _ = f.decode(bytes.fromhex(vector["hex"]))
    assert (None if frame is None else vectors.plain(frame)) == vector["fields"]


@pytest.mark.parametrize("vector", load("payloads.json"), ids=lambda v: f"{v['codec']} of {v['schema']['name']}")
def test_payloads_read_as_they_are_described(vector: dict[str, Any]) -> None:
    schema = msgspec.convert(vector["schema"], Schema)
    assert schema.fingerprint == vector["fingerprint"]
    rows = codec(vector["codec"]).decode(schema, bytes.fromhex(vector["hex"]))
    assert vectors.plain(rows) == vector["rows"]
    if vector["exact"]:
        assert codec(vector["codec"]).encode(schema, rows).hex() == vector["hex"]


TABLES = {
    "receiver": receiver.TABLE,
    "sender": sender.TABLE,
    "session": session.TABLE,
    "admission": admission.TABLE,
}


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_on_the_page_are_those_of_the_code(name: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"<!-- table: {name} -->\n\n{TABLES[name].markdown()}\n" in page


@pytest.mark.parametrize(("number", "kind"), f.KINDS.items())
def test_the_fields_on_the_page_are_those_of_the_code(number: int, kind: type[f.Frame]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.split(f"### {number} {kind.__name__}\n")[1].split("\n### ")[0].split("\n## ")[0]
    fields = [field.name for field in msgspec.structs.fields(kind) if field.name != "payload"]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == fields


@pytest.mark.parametrize("part", [f.Epoch, f.Mark, f.Clock, f.Offset, f.Pressure, f.Promise, f.Lost, f.Gap])
def test_the_parts_on_the_page_are_those_of_the_code(part: type[msgspec.Struct]) -> None:
    (row,) = re.findall(rf"^\| {part.__name__} \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert re.findall(r"`(\w+)`", row) == [field.name for field in msgspec.structs.fields(part)]


def test_every_code_that_a_peer_may_see_is_on_the_page() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in Path(f.__file__).parent.rglob("*.py"))
    seen = set(re.findall(r'(?:PeerError|_bad)\(\s*"(S\d{3})"', source))
    assert seen <= set(re.findall(r"S\d{3}", PAGE.read_text(encoding="utf-8")))
