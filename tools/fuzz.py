"""`make fuzz INPUTS=n`: hostile input for the frame decoder, the codecs and the HTTP surface, guided by coverage.

atheris lives in an environment of its own, as benchmarks' peers do, and is installed on first use. Each target of
`tests/fuzz` runs in a process of its own, from the protocol's test vectors on, with a bound on its memory; an input
that breaks something is kept in `.build/fuzz/` and named. Besides, mutated conversations run against a gateway whose
log is then read back (`tests/unit/gateway/test_gateway_fuzz.py`). The last line is one JSON object.

    python -m tools.fuzz --inputs 1000000
    python -m tools.fuzz --guided TARGET --inputs N        what runs inside atheris' environment
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".build" / "fuzz"
REQUIREMENTS = ("atheris==3.0.0", "msgspec>=0.22", "sqlglot>=30", "zstandard>=0.23", "numpy>=2")
SHARES = {"frames": 0.3, "headers": 0.25, "payloads": 0.3, "surface": 0.1}
"""Of all inputs; what is left goes to the conversations, which cost most each."""
GROWTH_MB_MAX = 256
"""By so much may a process have grown between a tenth of its inputs and the last."""
INPUT_BYTES_MAX = 4096


def seeds(target: str) -> list[bytes]:
    """Inputs to begin with, made of the protocol's vectors."""
    from tests.fuzz.targets import CODECS, SCHEMAS, unsealed

    vectors = ROOT / "tests" / "vectors" / "sync"
    frames = [bytes.fromhex(one["hex"]) for one in json.loads((vectors / "frames.json").read_text("utf-8"))]
    match target:
        case "frames":
            return frames
        case "headers":
            return [unsealed(frame) for frame in frames]
        case "surface":
            posted = [bytes([0x60 | kind << 7, 0, 0, 0, 0, 0]) + unsealed(frame) for frame in frames for kind in (0, 1)]
            asked = [bytes([method, path, 3, 0, 0, 0]) + b"{}" for method in range(3) for path in range(8)]
            return [*posted, *asked]
    from catchment.sync.codecs import codec

    rows: list[list[tuple[object, ...]]] = [
        [(1_000 * n, n / 8, 5 * n) for n in range(20)],
        [(None if n % 3 else n / 7, "ab"[n % 2], n % 2 == 0, n) for n in range(20)],
        [((n, None), (0.5, float(n)), b"raw") for n in range(5)],
        [(), ()],
    ]
    return [
        bytes([place, number]) + codec(name).encode(schema, rows[place])
        for place, schema in enumerate(SCHEMAS)
        for number, name in enumerate(CODECS)
    ]


def guided(target: str, inputs: int) -> None:
    """Run a target in atheris, which never returns: it ends the process, with 0 if nothing broke."""
    import atheris

    with atheris.instrument_imports(include=["catchment"]):
        from tests.fuzz import surface, targets
    place = HOME / target
    corpus = place / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(target)):
        (corpus / f"seed-{number}").write_bytes(seed)
    hear: Callable[[bytes], None]
    with_it = contextlib.ExitStack()
    if target == "surface":
        import logging

        # What is said of each refusal is for a person who runs a gateway.
        logging.disable(logging.CRITICAL)
        directory = with_it.enter_context(tempfile.TemporaryDirectory())
        hear = with_it.enter_context(surface.surface(Path(directory))).hear
    else:
        hear = targets.TARGETS[target]
    done = 0
    after_a_tenth_kb = 0

    def one(data: bytes) -> None:
        nonlocal done, after_a_tenth_kb
        done += 1
        hear(data)
        if done == inputs // 10:
            after_a_tenth_kb = _peak_kb()
        if done == inputs:
            with_it.close()
            grown = (_peak_kb() - after_a_tenth_kb) / 1024
            print(f"[grown] {grown:.1f}", flush=True)
            assert grown <= GROWTH_MB_MAX, f"the process grew by {grown:.0f} MB"

    words = [f"-runs={inputs}", f"-max_len={INPUT_BYTES_MAX}", "-rss_limit_mb=2048", "-timeout=30", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *words, f"-artifact_prefix={place}/", "-print_final_stats=1", str(corpus)], one)
    atheris.Fuzz()


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _run(words: list[str], **more: str) -> tuple[bool, str]:
    """Whether it ended well, and what it said."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **more}
    ran = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return ran.returncode == 0, ran.stdout + ran.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description="hostile input")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--guided", choices=[*SHARES], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.guided:
        guided(arguments.guided, arguments.inputs)
    sys.path.insert(0, str(ROOT))
    from bench.harness import machine, table
    from bench.peer import Peer

    python = Peer("atheris", requirements=REQUIREMENTS, script="").install()
    counts = {name: round(arguments.inputs * share) for name, share in SHARES.items()}
    counts["conversations"] = arguments.inputs - sum(counts.values())
    rows, broken = [], []
    for name, count in counts.items():
        start = time.monotonic()
        if name == "conversations":
            words = [sys.executable, "-m", "pytest", "-q", "tests/unit/gateway/test_gateway_fuzz.py"]
            ended, said = _run(words, CATCHMENT_FUZZ=str(count))
        else:
            ended, said = _run([str(python), "-m", "tools.fuzz", "--guided", name, "--inputs", str(count)])
        grown = next((line.split()[1] for line in said.splitlines() if line.startswith("[grown]")), "")
        took_s = time.monotonic() - start
        rows.append(["ok" if ended else "BROKEN", name, f"{count}", f"{count / took_s:.0f}", grown])
        print(f"[fuzz] {name}: {count:,} inputs in {took_s:.0f} s", flush=True)
        if not ended:
            broken.append(name)
            print(said[-6000:], flush=True)
    print(table(["", "target", "inputs", "inputs/s", "MB grown"], rows))
    print(json.dumps({"name": "fuzz", "inputs": arguments.inputs, "machine": machine(), "broken": broken}))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
