"""`catchment explain`: how a program becomes its plan, before and after each rewrite, with the reasons.

Answers with exit code 2, and every mistake that was found, when the program makes no sense.
"""

from __future__ import annotations

import argparse
import sys

from catchment.plan.check import mistakes
from catchment.plan.explain import explain, json, mermaid, text
from catchment.plan.graph import graph_of
from catchment.plan.rewrites import REWRITES
from catchment.program_file import load_program


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("program", help="program.py, or program.py:name where the file holds several")
    parser.add_argument("--format", choices=("text", "mermaid", "json"), default="text", help="default: text")
    parser.add_argument("--rewrites", action="store_true", help="show the whole graph before and after each rewrite")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=[name for name, _ in REWRITES],
        metavar="REWRITE",
        help=f"leave a rewrite out; may be given several times ({', '.join(name for name, _ in REWRITES)})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the account; returns the exit code."""
    graph = graph_of(load_program(arguments.program))
    found = list(mistakes(graph))
    if found:
        print("\n\n".join(map(str, found)), file=sys.stderr)
        return 2
    account = explain(graph, arguments.without)
    match arguments.format:
        case "mermaid":
            print(mermaid(account, every_stage=arguments.rewrites), end="")
        case "json":
            print(json(account, every_stage=arguments.rewrites).decode(), end="")
        case _:
            print(text(account, every_stage=arguments.rewrites), end="")
    return 0
