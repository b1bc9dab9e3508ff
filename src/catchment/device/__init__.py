"""The process on a device: sensors in, a program's device parts, sync streams out, and results back.

`agent` is the one loop; everything it depends on is passed in (a clock, a link, sensors, the outbox), so that the same
code runs in tests on a clock that jumps. Nothing heavy is imported here or below: a device starts in a fraction of a
second and holds tens of megabytes.
"""
