"""How good the transport modes are: labelled GeoLife, GPS features only, leave-one-segment-out.

Four ways to tell walk, bike and motor for each fix: always the commonest; by the speed from the fix before, against two
thresholds; the hidden Markov model with published speeds, as the program ships it; and the same trained on all labelled
segments but the one that is asked about. The constant and the thresholds learn from the same segments, too.

The labels are few and lopsided: 17 segments of two people who can be used, most of their fixes on trains, two segments
by bike on one day, and some `walk` at the speed of a train. So the figures say which of these ways is better here, and
little about anybody else. GeoLife may not be redistributed and is not in this repository: without it the benchmark says
so and measures nothing.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path

from bench import harness
from bench.harness import Bar

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "peir"))

from modes import published
from train_modes import Segment, archive, inferred, segments, speeds_of, trained

ASKED = ("walk", "bike", "motor")
SAID = ("still", *ASKED)
STEPS_MPS = (1.6, 1.9, 2.2, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.5, 10.0)

Way = Callable[[Segment, Sequence[Segment]], list[str]]
Confusion = Counter[tuple[str, str]]


def constant(asked: Segment, others: Sequence[Segment]) -> list[str]:
    """Always what is commonest among the others."""
    fixes: Counter[str] = Counter()
    for segment in others:
        fixes[segment.mode] += len(segment.fixes) - 1
    return [fixes.most_common(1)[0][0]] * (len(asked.fixes) - 1)


def thresholds(asked: Segment, others: Sequence[Segment]) -> list[str]:
    """Each fix by its speed alone, with the two bounds that do best on the others."""
    known = [(speed, segment.mode) for segment in others for speed in speeds_of(segment)]

    def told(bounds: tuple[float, float]) -> Confusion:
        return Counter((mode, ASKED[bisect_right(bounds, speed)]) for speed, mode in known)

    best = max((b for b in product(STEPS_MPS, STEPS_MPS) if b[0] < b[1]), key=lambda b: macro_f1(told(b)))
    return [ASKED[bisect_right(best, speed)] for speed in speeds_of(asked)]


def shipped(asked: Segment, others: Sequence[Segment]) -> list[str]:
    """The model as the program has it: nothing is learnt from GeoLife."""
    return inferred(asked, published())


def learnt(asked: Segment, others: Sequence[Segment]) -> list[str]:
    """The model with its speed table trained on the others."""
    return inferred(asked, trained(others))


WAYS: dict[str, Way] = {
    "constant": constant,
    "speed thresholds": thresholds,
    "HMM, published speeds (shipped)": shipped,
    "HMM, trained on the others": learnt,
}


def confusion(way: Way, known: Sequence[Segment]) -> Confusion:
    """What each segment's fixes are told to be, by all but that segment."""
    found: Confusion = Counter()
    for number, segment in enumerate(known):
        said = way(segment, [*known[:number], *known[number + 1 :]])
        found.update((segment.mode, mode) for mode in said)
    return found


def macro_f1(found: Confusion) -> float:
    """The mean over modes of F1; what is told to be still is missed by its mode, and no mode's false alarm."""
    return sum(f1(found, mode) for mode in ASKED) / len(ASKED)


def f1(found: Confusion, mode: str) -> float:
    """The harmonic mean of precision and recall."""
    right = found[mode, mode]
    wrong = sum(n for (truth, said), n in found.items() if (truth == mode) != (said == mode))
    return 2 * right / (2 * right + wrong) if right else 0.0


def described(name: str, found: Confusion) -> Iterable[str]:
    """A confusion matrix as lines."""
    total = sum(found.values())
    right = sum(found[mode, mode] for mode in ASKED)
    yield f"\n{name}: macro-F1 {macro_f1(found):.3f}, {right / total:.1%} of {total} fixes"
    rows = [[mode, *(str(found[mode, said]) for said in SAID), f"{f1(found, mode):.3f}"] for mode in ASKED]
    yield harness.table(["is \\ said", *SAID, "F1"], rows)


def main() -> int:
    """Compare the ways on what labels there are."""
    quick = harness.arguments(__doc__).parse_args().quick
    path = archive()
    if path is None:
        print("labelled GeoLife is not here (shared/data/gps/geolife_modes_labelled.tar.gz in a folder above this")
        print("repository); it may not be redistributed, so there is nothing to measure modes on")
        bar = Bar("labelled tracks are there, or their absence is said", 1.0, at_least=1.0)
        return harness.conclude("peir_modes", quick=quick, ratios={}, bars=[bar], figures={"segments": 0})
    known = segments(path)
    shares = Counter(segment.mode for segment in known)
    fixes = {mode: sum(len(s.fixes) - 1 for s in known if s.mode == mode) for mode in ASKED}
    print(f"{len(known)} labelled segments: " + ", ".join(f"{shares[m]} {m} ({fixes[m]} fixes)" for m in ASKED))
    print("few and lopsided labels: compare the ways with one another, and trust no figure for other people")
    found = {name: confusion(way, known) for name, way in WAYS.items()}
    for name, matrix in found.items():
        print("\n".join(described(name, matrix)))
    scores = {name: macro_f1(matrix) for name, matrix in found.items()}
    print()
    ours = scores["HMM, published speeds (shipped)"]
    return harness.conclude(
        "peir_modes",
        quick=quick,
        ratios={"constant": ours / scores["constant"], "thresholds": ours / scores["speed thresholds"]},
        bars=[
            Bar("the shipped model's macro-F1 over the constant's", ours - scores["constant"], at_least=0.0),
            Bar("the shipped model's macro-F1 over the thresholds'", ours - scores["speed thresholds"], at_least=0.0),
        ],
        figures={"segments": len(known), "macro_f1": {name: round(score, 4) for name, score in scores.items()}},
    )


if __name__ == "__main__":
    sys.exit(main())
