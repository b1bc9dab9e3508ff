"""`python -m catchment` is the `catchment` command."""

from __future__ import annotations

import sys

from catchment.cli import main

if __name__ == "__main__":
    sys.exit(main())
