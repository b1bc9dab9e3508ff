"""What all tests share: properties that time does not fail, and one Spark session for all that need one.

Properties have no deadline, and no limit on how slowly examples come: both measure who else uses the machine. Workers
share the tests between them (`make test`), and those of Spark stay together, because a session takes seconds to start.
"""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
