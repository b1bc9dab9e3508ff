"""`catchment doctor`: what this machine has for Catchment, what is missing, and how to get it.

Answers with exit code 1 when the core cannot work here; a missing part of an extra (gateway, cloud) is said,
with its fix, and is no failure: a device needs neither.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path

from catchment.cli.doctor.examination import examine
from catchment.cli.doctor.finding import Area, Finding, State

_MARKS = {State.OK: "ok", State.NOTE: "note", State.MISSING: "MISSING"}
_TITLES = {
    Area.CORE: "core (every site needs it)",
    Area.DEVICE: "device",
    Area.GATEWAY: "gateway",
    Area.CLOUD: "cloud",
    Area.MACHINE: "this machine",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.add_argument("--directory", type=Path, default=Path(), help="where state is kept (default: the current one)")


def run(arguments: argparse.Namespace) -> int:
    findings = examine(os.environ, arguments.directory)
    usable = not any(finding.area is Area.CORE and finding.state is State.MISSING for finding in findings)
    if arguments.json:
        print(json.dumps({"usable": usable, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        print(text(findings, usable=usable))
    return 0 if usable else 1


def text(findings: list[Finding], *, usable: bool) -> str:
    """The findings for people: one line each, aligned, with the fix under what needs one."""
    width = max(len(finding.name) for finding in findings)
    lines: list[str] = []
    for area in Area:
        lines.append(_TITLES[area])
        for finding in findings:
            if finding.area is area:
                lines.append(f"  {_MARKS[finding.state]:<7}  {finding.name:<{width}}  {finding.found}")
                if finding.fix:
                    lines.append(f"  {'':<7}  {'':<{width}}  fix: {finding.fix}")
        lines.append("")
    lines.append(_verdict(findings, usable=usable))
    return "\n".join(lines)


def _verdict(findings: list[Finding], *, usable: bool) -> str:
    if not usable:
        return "Catchment cannot run here until what is missing from the core is mended."
    short = [area for area in Area if any(f.area is area and f.state is State.MISSING for f in findings)]
    if short:
        return f"Programs build and run here; not yet what needs: {', '.join(short)}."
    return "Everything is here."
