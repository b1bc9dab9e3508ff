"""The report on Sonora's section 5: what was measured is in it beside theirs, and what was not said to be missing."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from bench.__main__ import BENCH, benchmarks
from bench.sonora.__main__ import read, write
from bench.sonora.items import ITEMS, Results
from bench.sonora.plot import Line, plot

MACHINE = {"processor": "a processor", "cores": 2, "memory_gb": 8.0, "system": "a system"}
AWAY = {"moments": [[0, 0, 0, 0], [60, 4000, 9, 9]], "waited": 4, "wrong": 0}
AWAY |= {"caught_up_s": 1.5, "backlog_bytes": 5.0, "usual_bytes": 6.0}


def test_what_was_not_measured_is_said_with_its_command(tmp_path: Path) -> None:
    write(Results({}), tmp_path, "A lead.")
    report = (tmp_path / "report.md").read_text()
    for name in {item.benchmarks[0] for item in ITEMS if item.benchmarks}:
        assert f"Not measured on this machine yet: `make bench NAME={name}`" in report
    assert report.count("**Theirs.**") == len(ITEMS)


def test_a_curve_is_a_curve_and_a_table_has_both_numbers(tmp_path: Path) -> None:
    found = {"offline": {"figures": {"1 minute": AWAY}, "ratios": {}, "machine": MACHINE}}
    found["panes"] = {"figures": {}, "ratios": {"dft, overlap 12": 9.96, "mean, overlap 12": 5.0}, "machine": MACHINE}
    page = write(Results(found), tmp_path, "A lead.").read_text()
    assert "<polyline" in page
    assert "<td>overlap 12</td><td>10.0x</td>" in page
    assert "4 elements had waited, 0 were lost" in page
    report = (tmp_path / "report.md").read_text()
    assert "(figure-12-1.svg)" in report
    ET.parse(tmp_path / "figure-12-1.svg")


def test_quick_results_are_not_taken_for_full_ones(tmp_path: Path) -> None:
    (tmp_path / "panes.quick.json").write_text('{"ratios": {}}')
    assert read(["panes"], quick=False, results=tmp_path).found == {}
    assert set(read(["panes"], quick=True, results=tmp_path).found) == {"panes"}


def test_its_benchmarks_are_there() -> None:
    assert {name for item in ITEMS for name in item.benchmarks} <= set(benchmarks(BENCH))


def test_a_plot_has_units_and_a_name_and_its_points_in_place() -> None:
    drawn = ET.fromstring(plot([Line("sent & kept", [(0, 0), (10, 5)])], x="time (s)", y="KB", about="KB over time"))
    assert drawn.attrib["aria-label"] == "KB over time"
    assert {"time (s)", "KB", "sent & kept"} <= {text.text for text in drawn.iter("text")}
    (line,) = drawn.iter("polyline")
    assert line.attrib["points"] == "64.0,256.0 624.0,30.0"
