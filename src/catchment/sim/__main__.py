"""Seeds tried: `python -m catchment.sim --seeds 10000`; or looked at closely: `… 1234`, or `… script.json`.

`--from 5000 --seeds 1000` tries 5000 to 5999, `--processes 1` on one core, `--notes DIR` goes on where a run with the
same code was interrupted.

Closely means: says whether every promise held; if not, shrinks the script and shows the trace of what is left of it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from catchment.sim.campaign import campaign
from catchment.sim.notes import Notes
from catchment.sim.script import Script, script_of
from catchment.sim.shrink import shrink
from catchment.sim.trial import attempt


def main(words: list[str]) -> int:
    """The status to end with: 0 if everything held."""
    parser = argparse.ArgumentParser("python -m catchment.sim", description="Seeds and scripts for the simulator.")
    parser.add_argument("--seeds", type=int, default=0, metavar="N", help="try N seeds")
    parser.add_argument("--from", type=int, default=0, metavar="N", dest="first", help="the first of them (0)")
    parser.add_argument("--processes", type=int, default=None, metavar="N", help="on so many cores (all)")
    parser.add_argument("--notes", type=Path, default=None, metavar="DIR", help="keep notes there, and go on from them")
    parser.add_argument("scripts", nargs="*", metavar="SEED|FILE", help="look at these closely")
    arguments = parser.parse_args(words)
    broken = sum(not _look(word) for word in arguments.scripts)
    if arguments.seeds:
        seeds = range(arguments.first, arguments.first + arguments.seeds)
        notes = None if arguments.notes is None else Notes(arguments.notes)
        broken += not campaign(seeds, _say, processes=arguments.processes, notes=notes)
    return int(broken > 0)


def _look(word: str) -> bool:
    script = script_of(int(word)) if word.isdigit() else msgspec.json.decode(Path(word).read_bytes(), type=Script)
    trial = attempt(script)
    held = trial.held
    if not held:
        _say(f"{trial.promise}\n  {trial.how}\nshrinking …\n")
        trial = shrink(trial)
    _say(f"{trial.report()}\ndigest:      {trial.digest}\n")
    return held


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
