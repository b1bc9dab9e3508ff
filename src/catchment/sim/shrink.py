"""Shrinking: the least of a script that still breaks the same promise.

What is left out changes no luck of the rest, so a script can lose misfortunes, devices, streams, gateways and bad
weather one after the other, for as long as the same promise breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from catchment.sim.network import Conditions
from catchment.sim.script import Script
from catchment.sim.trial import Trial, attempt


def shrink(trial: Trial, attempt: Callable[[Script], Trial] = attempt) -> Trial:
    """The smallest trial that was found to break what that one broke."""
    best = trial
    again = True
    while again:
        again = False
        for smaller in _smaller(best.script):
            tried = attempt(smaller)
            if tried.promise == trial.promise:
                best, again = tried, True
                break
    return best


def _smaller(script: Script) -> Iterator[Script]:
    """Scripts with a little less, what helps most first."""
    replace = msgspec.structs.replace
    for index in range(len(script.misfortunes)):
        yield replace(script, misfortunes=script.misfortunes[:index] + script.misfortunes[index + 1 :])
    if len(script.devices) > 1:
        yield replace(script, devices=script.devices[:-1])
    for at, device in enumerate(script.devices):
        if len(device.streams) > 1:
            lean = replace(device, streams=device.streams[:1])
            yield replace(script, devices=(*script.devices[:at], lean, *script.devices[at + 1 :]))
    if script.gateways > 1:
        yield replace(script, gateways=1)
    if script.partitions > 1:
        yield replace(script, partitions=1)
    calm = Conditions(delay_us=script.usual.delay_us)
    if script.usual != calm:
        yield replace(script, usual=calm)
