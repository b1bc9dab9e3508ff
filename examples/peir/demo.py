"""The report as `catchment demo` runs it: lived many times faster, so that batches wait a second and not a minute.

Nothing is kept in tables: the page shows it, and the next demo begins anew.
"""

from __future__ import annotations

import catchment as cm
from program import placed

peir = placed(within=cm.seconds(1), tables=None)
