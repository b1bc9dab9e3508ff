"""Properties have no deadline and no limit on how slowly examples come: both measure who else uses the machine."""

from hypothesis import HealthCheck, settings

settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")
