"""One seed, or one script, looked at closely: `python -m catchment.sim 1234`, or `… script.json`.

Says whether every promise held; if not, shrinks the script and shows the trace of what is left of it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from catchment.sim.script import Script, script_of
from catchment.sim.shrink import shrink
from catchment.sim.trial import attempt


def main(words: list[str]) -> int:
    """The status to end with: how many of the scripts broke something."""
    broken = 0
    for word in words:
        script = script_of(int(word)) if word.isdigit() else msgspec.json.decode(Path(word).read_bytes(), type=Script)
        trial = attempt(script)
        if not trial.held:
            broken += 1
            _say(f"{trial.promise}\n  {trial.how}\nshrinking …\n")
            trial = shrink(trial)
        _say(f"{trial.report()}\ndigest:      {trial.digest}\n")
    return broken


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
