"""Catchment: one stream program in Python, run across a fleet of devices and in the cloud."""
