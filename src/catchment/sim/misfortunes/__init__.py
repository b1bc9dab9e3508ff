"""What each kind of misfortune does to a world: to devices, links, gateways, the log's disk and the cloud.

Every kind is a function of its own, named in `script.KINDS`.
"""

from catchment.sim.misfortunes import cloud, devices, gateways, links, log
from catchment.sim.misfortunes.striking import kinds, strike

STRUCK = (devices, links, gateways, log, cloud)
"""Where the kinds are."""


__all__ = ["STRUCK", "kinds", "strike"]
