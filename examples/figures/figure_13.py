"""Sonora's Figure 13: moving transport-mode inference from the phone into the cloud.

There it took four new lines and two changed ones. Here `at=` is the only word that changes, and
the answers stay the same. Run it: `python examples/figures/figure_13.py`. What it prints stands in figure_13.txt.
"""

from __future__ import annotations

import catchment as cm
from catchment.testing import History, run


class Sample(cm.Record):
    """A reading of the GPS."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    speed_mps: cm.Field[float] = cm.field(step=0.1)


class Mode(cm.Record):
    """How somebody travels during a minute."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    mode: cm.Field[str]


def placed(inference: cm.Site) -> cm.Program:
    """The program with the inference at that site."""
    program = cm.Program("figure_13")

    @program.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(records=100, within=cm.minutes(1))))
    def samples(device: cm.DeviceSite) -> cm.Stream[Sample]:
        return device.sensor(Sample, "gps", every=cm.seconds(5))

    @program.stream(at=inference)
    def modes(samples: cm.Stream[Sample]) -> cm.Stream[Mode]:
        speeds = samples.key_by(Sample.user).window(cm.tumble(cm.minutes(1))).agg(mps=cm.mean(Sample.speed_mps))
        mode = cm.when(cm.col("mps") < 0.5, "still").when(cm.col("mps") < 2.5, "walk").otherwise("motor")
        return speeds.select(Mode, mode=mode)

    @program.stream(at=cm.CLOUD)
    def minutes_by_mode(modes: cm.Stream[Mode]) -> cm.Stream[cm.Record]:
        return modes.key_by(Mode.user, Mode.mode).window(cm.tumble(cm.hours(1))).agg(minutes=cm.count())

    return program


def main() -> None:
    """Both placements on one history."""
    answers = []
    for inference in (cm.DEVICE, cm.CLOUD):
        program = placed(inference)
        history = History(program)
        for n in range(60):
            speed_mps = (0.2, 1.4, 12.5)[n // 20]
            history.send({"user": "ada", "at": cm.seconds(5 * n), "speed_mps": speed_mps})
        answers.append([(row["mode"], row["minutes"]) for row in run(program, history.end())["minutes_by_mode"]])
        crossing = cm.build(program).syncs[0]
        print(f"inference at {inference.name:6}  crossing to the cloud: {crossing.name}")
    print("the same answers:", answers[0] == answers[1], answers[0])


if __name__ == "__main__":
    main()
