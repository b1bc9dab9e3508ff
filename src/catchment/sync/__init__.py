"""Sync streams: from a device's sensor to durable in the cloud, exactly once and in order, and back.

Everything here is sans-I/O: frames are values, the two ends are tables of transitions that take events and
return actions, and the outbox is the one part that touches a disk. No socket, no clock, no randomness: readings,
instants and nonces are arguments.
"""
