"""``python -m headrace`` is ``headrace``."""

import sys

from headrace.server.cli import main

sys.exit(main())
