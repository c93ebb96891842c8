"""Our server, which knows tallies as well: ``python -m support.tally``."""

from __future__ import annotations

import sys

import support.tally.registrations  # noqa: F401
from headrace.server.cli import main

if __name__ == "__main__":
    sys.exit(main())
