"""Benchmarks: one file per claim, each a race between sides on the same input, in the same run.

`python -m bench` runs them all, `python -m bench NAME` one; see `bench/harness.py` for how to write one.
"""
