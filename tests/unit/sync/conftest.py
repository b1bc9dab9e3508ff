"""Properties here have no deadline: how long an example takes says more about who else uses the machine."""

from hypothesis import settings

settings.register_profile("no deadline", settings.get_profile("default"), deadline=None)
settings.load_profile("no deadline")
