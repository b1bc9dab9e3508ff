"""What Sonora's section 5 shows, item by item: their workload and numbers, and how ours are read from the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bench.sonora.page import Block, Figure, Table, Text
from bench.sonora.plot import Line, plot

TITLE = "Sonora's evaluation, and ours beside it"
LEAD = (
    "Every table and figure of section 5 of *Sonora: A Platform for Continuous Mobile-Cloud Computing* (Yang et al.), "
    "with the workload, their number and ours. Theirs were taken on a phone of 2011 and a cluster of 40 machines; ours "
    "on one machine, in the run that wrote this report."
)


class Missing(Exception):  # noqa: N818  nothing went wrong
    """A benchmark has no result yet."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Results(NamedTuple):
    """Closing lines of benchmarks, by name."""

    found: Mapping[str, Mapping[str, Any]]

    def figures(self, name: str) -> Mapping[str, Any]:
        """What a benchmark measured beyond its ratios."""
        return self._of(name)["figures"]  # type: ignore[no-any-return]

    def ratios(self, name: str) -> Mapping[str, float]:
        """How many times as fast, by peer."""
        return self._of(name)["ratios"]  # type: ignore[no-any-return]

    @property
    def machine(self) -> str:
        """What the numbers were taken on."""
        for result in self.found.values():
            machine = result["machine"]
            cores, memory_gb, system = machine["cores"], machine["memory_gb"], machine["system"]
            return f"That machine: {machine['processor']}, {cores} cores, {memory_gb:.0f} GB, {system}."
        return "Nothing was measured yet."

    def _of(self, name: str) -> Mapping[str, Any]:
        if name not in self.found:
            raise Missing(name)
        return self.found[name]


class Item(NamedTuple):
    """A table or figure."""

    title: str
    theirs: str
    differs: str
    benchmarks: Sequence[str]
    ours: Callable[[Results], list[Block]]


def left_out(results: Results) -> list[Block]:
    """What cannot be shown here is not drawn."""
    return [Text("**Ours.** Left out.")]


def by_name(benchmark: str, first: str, columns: Mapping[str, str]) -> Callable[[Results], list[Block]]:
    """A table of what a benchmark measured of several things, each under its name."""

    def ours(results: Results) -> list[Block]:
        rows = [
            [name, *(_number(measured[column]) for column in columns)]
            for name, measured in results.figures(benchmark).items()
        ]
        return [Text("**Ours.**"), Table([first, *columns.values()], rows)]

    return ours


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def big_windows(results: Results) -> list[Block]:
    """Table 2."""
    ours = results.figures("keywords")
    rows = [
        [str(day + 1), theirs, f"{s:.3f}"]
        for day, (theirs, s) in enumerate(zip(EIGHT_S, ours["by_day_s"], strict=True))
    ]
    rows.append(["all, with daily tallies", "111.2", f"{ours['tallies_s']:.2f}"])
    rows.append(["all, from scratch", "296.7", f"{ours['scratch_s']:.2f}"])
    rows.append(["from scratch over tallies", "2.67", f"{ours['scratch_s'] / ours['tallies_s']:.2f}"])
    said = f"{ours['texts_a_day']:,} texts a day ({ours['day_mb']:.2f} MB) on one core; seconds of processor time."
    asked = f"An ask is answered by the engine in {ours['answer_ms']:.3f} ms; theirs reached the phone in 2.8 s."
    cloud = results.figures("cloud_windows")
    spent = cloud["cpu_s"]["7 days every day"]
    query = (
        f"As queries in the cloud, {cloud['texts_a_day']:,} texts a day: {spent['daily']:.1f} CPU-seconds for seven "
        f"days, and {spent['anew']:.1f} where each week is counted anew: {spent['anew'] / spent['daily']:.1f} times as "
        "much."
    )
    blocks = [Text(f"**Ours.** {said} {asked}"), Text(query)]
    return [Table(["day", "theirs, 8 machines (s)", "ours (s)"], rows), *blocks]


EIGHT_S = ("15.1", "12.2", "17.7", "21.9", "13.0", "10.8", "17.7")


def sensing(results: Results) -> list[Block]:
    """Table 3."""
    ours = results.figures("energy")["table_3_w"]
    rows = [[name, f"{watts:.2f}", f"{ours[name]:.2f}"] for name, watts in TABLE_3_W.items()]
    saved = 1 - ours["adaptive"] / ours["fixed"]
    return [
        Table(["sensors", "theirs (W)", "ours, by the model (W)"], rows),
        Text(f"**Ours.** Adaptive sensing saves {saved:.0%} here, 30 % in the paper."),
    ]


TABLE_3_W = {"accelerometer": 0.27, "gsm": 0.28, "battery": 0.19, "gps": 0.88, "fixed": 1.00, "adaptive": 0.70}


def sending(results: Results) -> list[Block]:
    """Table 4."""
    theirs = {"none": ("1.35", "2.087"), "batch": ("0.50", "2.087"), "batch and zip": ("0.45", "0.392")}
    ours = results.figures("energy")["table_4"]
    rows = [
        [name, *theirs.get(name, ("", "")), f"{one['watts']:.2f}", f"{one['sent_bytes'] / 1e6:.3f}"]
        for name, one in ours.items()
    ]
    return [Table(["policy", "theirs (W)", "theirs (MB)", "ours, by the model (W)", "ours (MB)"], rows)]


def disconnection(results: Results) -> list[Block]:
    """Figure 12."""
    blocks: list[Block] = []
    for number, (name, told) in enumerate(results.figures("offline").items()):
        unit, per_s = ("s", 1.0) if number == 0 else ("hours", 3600.0)
        moments = told["moments"]
        sent = Line("sent by the phone", [(at / per_s, sent / 1000) for at, sent, _, _ in moments])
        about = f"KB sent over time, the link away for {name}"
        blocks.append(
            Figure(f"figure-12-{number + 1}", plot([sent], x=f"time ({unit})", y="KB sent", about=about), about)
        )
        blocks.append(
            Text(
                f"**Ours.** Away for {name}: {told['waited']:,} elements had waited, {told['wrong']} were lost, "
                f"repeated or out of place; caught up {told['caught_up_s']:.1f} s after the link was noticed, "
                f"{told['backlog_bytes']:.1f} bytes each (before: {told['usual_bytes']:.1f})."
            )
        )
    return blocks


def placement(results: Results) -> list[Block]:
    """Section 5.4."""
    ours = results.figures("placement")
    rows = [
        [
            name,
            f"{ours[name]['sent_bytes'] / 1e3:,.1f}",
            f"{ours[name]['radio_j'] + ours[name]['sensors_j']:,.0f}",
            f"{ours[name]['processor_s']:.2f}",
        ]
        for name in ("phone", "cloud")
    ]
    table = Table(
        ["inference on the", "KB sent", "radio and sensors, by the model (J)", "processor of the phone's stack (s)"],
        rows,
    )
    said = f"**Ours.** {ours['hours']:g} hours of a generated day, {ours['phone']['waypoints']:,} way-points"
    return [table, Text(f"{said}, the same at both.")]


def fourier(results: Results) -> list[Block]:
    """The DFT of section 5.4."""
    ratios = results.ratios("panes")
    rows = [[each.removeprefix("dft, "), f"{ratio:.1f}x"] for each, ratio in ratios.items() if each.startswith("dft")]
    return [Table(["windows of readings", "with panes over without"], rows)]


LOAD = {
    "asked": "asked (points/s)",
    "admitted": "admitted (points/s)",
    "backlog_bytes": "backlog (bytes)",
    "batch_ms": "a batch (ms)",
    "slow_down": "devices slower (times)",
}

ITEMS = (
    Item(
        "Figure 7: the cloud's processor is full before its network",
        "Processor use and throughput of a server that takes PEIR's points, as their rate grows.",
        "A network of 1 Gb/s beside eight cores does not exist here; two cores are full long before loopback is.",
        (),
        left_out,
    ),
    Item(
        "Figure 8: points per second, by machines",
        "From 1 to 40 machines, 0.70 of linear at 40: about 70,000 points/s there, and 2,500 on one machine; which is "
        "350,000 users with a point each five seconds.",
        "Machines are processes of this one, which share its two cores: so what grows here is the number of users, at "
        "one rate. What forty machines would do is not modelled.",
        ("cloud_scale",),
        by_name(
            "cloud_scale",
            "on",
            {"points_s": "points/s", "state_bytes_per_user": "state per user (bytes)", "batch_ms": "a batch (ms)"},
        ),
    ),
    Item(
        "Figure 9: load that comes and goes",
        "Machines join and leave as the rate of points rises and falls. A curve only.",
        "One machine takes it: the log holds what is too much, and devices are told to slow down.",
        ("load",),
        by_name("load", "phase", LOAD),
    ),
    Item(
        "Figure 11 and Table 1: recovery",
        "A machine of the first stage fails half-way between checkpoints, 40 to 120 s apart: 8 to 31 s without "
        "results, 36 to 88 s until all have recovered, 266 to 356 MB of traffic. Partial rollback moved 63 % "
        "less than full.",
        "Two workers are processes of this machine; a checkpoint is a batch of Spark, so intervals are short. Spark "
        "runs again what was lost and keeps the rest of a batch, as partial rollback does.",
        ("recovery",),
        by_name(
            "recovery",
            "killed, at an interval",
            {
                "silent_s": "without results (s)",
                "caught_up_s": "caught up after (s)",
                "share_of_tasks": "share of the batch's tasks run again",
                "bytes_again": "read again (bytes)",
            },
        ),
    ),
    Item(
        "Figure 10: load over 19 and 38 machines",
        "Three of 57 machines were outside of 30 to 90 % processor load.",
        "Two cores hold no such distribution.",
        (),
        left_out,
    ),
    Item(
        "Table 2: seven days of popular keywords",
        "The most popular keyword near each cell of a 33 by 33 grid over the last 7 days, each day, of 2 GB of texts.",
        "The scale: see the texts a day; and one process against eight machines. The grid and the lengths are theirs.",
        ("keywords", "cloud_windows"),
        big_windows,
    ),
    Item(
        "Table 3: power of sensing",
        "Sensors of an HTC phone read every 5 s, alone for 5 minutes; together, fixed and adaptive, for 30.",
        "No phone was measured: a model whose parameters are theirs follows what the device's software did. The last "
        "row is a prediction.",
        ("energy",),
        sensing,
    ),
    Item(
        "Table 4: what batching and compression save",
        "30 minutes of GPS at 1 KB/s.",
        "Power is by the model, traffic is what was sent. `delta` and dead reckoning are ours.",
        ("energy",),
        sending,
    ),
    Item(
        "Figure 12: a disconnection is masked",
        "KB sent over time, with the link away for a minute. A curve only.",
        "Virtual time; and a second disconnection, of days.",
        ("offline",),
        disconnection,
    ),
    Item(
        "Figure 13 and section 5.4: the mode of transport on the phone or in the cloud",
        "Moving it to the cloud took fewer than 10 changed lines, doubled the traffic and saved 40 % of the power.",
        "One changed word (`at=`). The processor is no part of the model of energy, and inference is so cheap in ours "
        "that there is little to save: so the traffic decides, and the phone is the better place.",
        ("placement",),
        placement,
    ),
    Item(
        "Section 5.4: the incremental DFT",
        "Computed incrementally, the DFT raised the peak throughput of a cloud machine by over 200 %, to three times.",
        "The DFT alone, on one core of the edge engine; the naive side is the same engine with that rewrite off.",
        ("panes",),
        fourier,
    ),
)
