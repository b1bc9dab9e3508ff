"""A field's `step`: the one place that says how a value becomes a whole number of steps, and back.

Sums of scaled integers do not depend on the order of addition, and integers compress; so codecs and aggregates
on every engine go through these two functions (or print the same arithmetic for their engine).

>>> scale(46.056947, 1e-6), unscale(46056947, 1e-6)
(46056947, 46.056947)
>>> unscale(scale(0.3, 0.1), 0.1), scale(2.5, 1.0), scale(7, 5)
(0.3, 2, 1)
"""

from __future__ import annotations


def per_unit(step: float) -> float | None:
    """How many steps make one, when that is a whole number: dividing by it rounds better than multiplying."""
    many = 1 / step
    # A subnormal step has no finite inverse, and is finer than every float that a field may hold.
    inverse = round(many) if many < float("inf") else 0
    return float(inverse) if inverse >= 1 and abs(inverse * step - 1) < 1e-9 else None


def scale(value: float, step: float) -> int:
    """The whole number of steps nearest to the value; ties go to the even one."""
    inverse = per_unit(step)
    return round(value * inverse) if inverse is not None else round(value / step)


def unscale(steps: int, step: float) -> float:
    """The value of so many steps, as the float nearest to it."""
    inverse = per_unit(step)
    return steps / inverse if inverse is not None else steps * step
