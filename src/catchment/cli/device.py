"""`catchment device`: run a program's device part on this machine.

    catchment device run --data DIR --gateway URL --token TOKEN --sensor meter=replay:readings.csv

The first start enrols the device with a one-time token and fetches its plan; every later one goes on where the last one
stopped, with or without a connection.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

from catchment.errors import ProgramError

_FOLLOW_S = 0.25


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    run_it = actions.add_parser(
        "run", help="run the device part of a program until told to stop", formatter_class=argparse.RawTextHelpFormatter
    )
    _data(run_it)
    run_it.add_argument("--gateway", default="", metavar="URL", help="where to; without it, readings only gather")
    run_it.add_argument("--name", default="", help="its name, for its enrolment (default: the gateway gives it one)")
    run_it.add_argument("--token", default="", help="the one-time token of the first start (or CATCHMENT_TOKEN)")
    run_it.add_argument("--credential-file", type=Path, metavar="FILE", help="who this is (default: DIR/identity.json)")
    run_it.add_argument("--user", default="", help="whose device it is, where there is no gateway to say so")
    run_it.add_argument("--plan", type=Path, metavar="FILE", help="run this plan, not the gateway's")
    run_it.add_argument(
        "--sensor",
        action="append",
        default=[],
        metavar="NAME=KIND:…",
        help="what reads a sensor of the program; may be given several times\n"
        "  NAME=replay:FILE[,speed=10|max][,times=live]   a .csv, .jsonl or .gpx recording\n"
        "  NAME=generate[:seed=7,low=0,high=1,count=9]    made-up values\n"
        "  NAME=machine                                   this machine's figures\n"
        "  NAME=python:module:factory[,key=value]         a sensor of your own\n"
        "  NAME=none                                      this device has none",
    )
    run_it.add_argument("--surroundings", type=Path, metavar="FILE", help='what the platform knows: {"indoors": true}')
    run_it.add_argument("--poll", default="30s", metavar="TIME", help="how often results are asked for (default: 30s)")
    run_it.add_argument("--ca", type=Path, metavar="PEM", help="authorities to trust instead of the system's")
    run_it.add_argument("--stop-within", default="5s", metavar="TIME", help="to send what is left (default: 5s)")
    run_it.add_argument("--until-idle", action="store_true", help="end once all is played and sent")

    status = actions.add_parser("status", help="say how a device is: what waits, what was lost, its clock and its link")
    _data(status)
    status.add_argument("--json", action="store_true", help="as JSON")

    results = actions.add_parser("results", help="print the results that came down, one JSON object per line")
    _data(results)
    results.add_argument("--stream", metavar="NAME", help="of this stream only")
    results.add_argument("--after", type=int, default=0, metavar="ID", help="those that came after this one")
    results.add_argument("--follow", action="store_true", help="go on as they come")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    match arguments.action:
        case "run":
            return _run(arguments)
        case "status":
            return _status(arguments)
        case _:
            return _results(arguments)


def _data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, default=Path("catchment-device"), help="the device's directory")


def _run(arguments: argparse.Namespace) -> int:
    # Imported here: asking a running device needs none of it.
    from catchment.device.process import Settings, run
    from catchment.device.sensors.named import duration_of, parse
    from catchment.device.transport import check_gateway

    return run(
        Settings(
            data=arguments.data,
            name=arguments.name,
            gateway=check_gateway(arguments.gateway) if arguments.gateway else "",
            plan=arguments.plan,
            token=arguments.token or os.environ.get("CATCHMENT_TOKEN", ""),
            identity=arguments.credential_file,
            user=arguments.user,
            sensors=tuple(parse(text) for text in arguments.sensor),
            poll_us=duration_of("--poll", arguments.poll),
            ca=arguments.ca,
            surroundings=arguments.surroundings,
            stop_s=duration_of("--stop-within", arguments.stop_within) / 1e6,
            until_idle=arguments.until_idle,
        )
    )


def _status(arguments: argparse.Namespace) -> int:
    from catchment.device.control import ask

    status = ask(arguments.data, {"ask": "status"})
    if status is None:
        at_rest = _at_rest(arguments.data)
        status = at_rest.status()
        at_rest.close()
    if arguments.json:
        print(json.dumps(status))
    else:
        print("\n".join(_lines(status)))
    return 0 if status["running"] else 1


def _lines(value: Any, indent: str = "") -> list[str]:
    """Nested figures as people read them."""
    lines: list[str] = []
    for name, held in value.items():
        if isinstance(held, dict) and held:
            lines += [f"{indent}{name}:", *_lines(held, indent + "  ")]
        elif isinstance(held, list):
            lines.append(f"{indent}{name}:")
            for one in held:
                lines += [f"{indent}  {one.pop('stream')}:", *_lines(one, indent + "    ")]
        else:
            lines.append(f"{indent}{name}: {held}")
    return lines


def _results(arguments: argparse.Namespace) -> int:
    from catchment.device.control import ask
    from catchment.device.status import results

    after = arguments.after
    while True:
        answer = ask(arguments.data, {"ask": "results", "after": after, "stream": arguments.stream})
        if answer is not None and "error" in answer:
            raise ProgramError("D652", "the device did not answer", why=answer["error"], fix="ask it again")
        if answer is None:
            at_rest = _at_rest(arguments.data)
            plan = at_rest.plan()
            found = [] if plan is None else results(plan, at_rest.results, after, arguments.stream)
            at_rest.close()
        else:
            found = answer["results"]
        for result in found:
            print(json.dumps(result), flush=True)
            after = result["id"]
        if found:
            continue
        if not arguments.follow:
            return 0
        time.sleep(_FOLLOW_S)


def _at_rest(data: Path) -> Any:
    from catchment.device.process import OUTBOX
    from catchment.device.status import AtRest

    return AtRest(data / OUTBOX)
