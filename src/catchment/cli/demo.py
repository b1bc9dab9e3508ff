"""`catchment demo`: the whole of Catchment on this machine, with a page to watch it on, until Ctrl-C.

A gateway and Spark by the supervisor of `catchment run`, sixty simulated devices that are real agents, the
environmental report of examples/peir. The address and the passwords are printed; a browser is opened where there is a
screen to open it on.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import webbrowser
from pathlib import Path
from types import FrameType

_EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("--port", type=int, default=8080, help="of the page (default: 8080)")
    parser.add_argument("--host", default="127.0.0.1", help="where the page listens (default: this machine only)")
    parser.add_argument("--data", type=Path, default=Path("catchment-demo"), help="where the demo keeps everything")
    parser.add_argument("--resume", action="store_true", help="go on where the last demo in that directory stopped")
    parser.add_argument("--devices", type=int, default=60, help="how many (default: 60)")
    parser.add_argument("--processes", type=int, default=2, help="that the devices run in (default: 2)")
    parser.add_argument("--speed", type=float, default=30.0, help="so many times faster than life (default: 30)")
    parser.add_argument("--seconds", type=float, default=None, help="end after so long; by default at Ctrl-C")
    parser.add_argument("--no-browser", action="store_true", help="print the address only")
    parser.add_argument("--examples", type=Path, help="the folder of the examples (default: the checkout's)")


def run(arguments: argparse.Namespace) -> int:
    """Show it, say what happens meanwhile, and end all that was started."""
    from catchment.demo.show import Show
    from catchment.demo.stage import Stage, Wanted

    wanted = Wanted(
        data=arguments.data.resolve(),
        examples=(arguments.examples or _EXAMPLES).resolve(),
        host=arguments.host,
        port=arguments.port,
        devices=arguments.devices,
        processes=arguments.processes,
        speed=arguments.speed,
        resume=arguments.resume,
    )
    show = Show(Stage(wanted), say=lambda line: print(line, flush=True))

    def stop(number: int, frame: FrameType | None) -> None:
        show.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return show.run(
            seconds=arguments.seconds,
            open_browser=webbrowser.open if not arguments.no_browser and _has_screen() else None,
        )
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _has_screen() -> bool:
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
