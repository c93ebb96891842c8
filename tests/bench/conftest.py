"""The benchmarks are not installed: they are imported from the checkout, behind all else."""

from __future__ import annotations

import sys

from support.build import ROOT

if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))
