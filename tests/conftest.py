"""What all tests share: properties that time does not fail, and one Spark session for all that need one.

Properties have no deadline, and no limit on how slowly examples come: both measure who else uses the machine. Workers
share the tests between them (`make test`), and those of Spark and of the browser stay together, because what they share
takes seconds to start. xdist's own groups are not used: since pytest 9.2 it no longer sees them.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")


TOGETHER = ("tests/spark/", "tests/browser/", "tests/unit/cloud/")


class Together(LoadScopeScheduling):  # type: ignore[misc]
    """Each test for itself, but for those of such a folder, which one worker runs."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in TOGETHER if nodeid.startswith(folder)), nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together:
    return Together(config, log)
