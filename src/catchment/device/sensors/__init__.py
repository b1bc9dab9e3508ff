"""Sensors: what a device reads, behind one small interface.

`sensor` is the interface, `polled` drives what is asked at an interval, `replay` plays recordings at their own pace,
and `named` makes the sensor that a command line names. `fitting` makes rows of what a sensor gives.
"""
