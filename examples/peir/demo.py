"""The report as `catchment demo` runs it: lived many times faster, so that batches wait a second and not a minute."""

from __future__ import annotations

import catchment as cm
from program import placed

peir = placed(within=cm.seconds(1))
