"""Sites: where an operator runs. `at=` is the only word that changes when a step moves."""

from __future__ import annotations

from enum import StrEnum


class Site(StrEnum):
    """Where a step runs."""

    DEVICE = "device"
    REGION = "region"
    FLEET = "fleet"
    CLOUD = "cloud"


DEVICE = Site.DEVICE
REGION = Site.REGION
FLEET = Site.FLEET
CLOUD = Site.CLOUD
