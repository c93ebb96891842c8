"""The benchmark of idempotent production runs, and shows every kind."""

from __future__ import annotations

import re
import subprocess
import sys

from support.build import ROOT, environment


def test_it_measures_every_kind() -> None:
    words = "--rounds 1 --seconds 0.02 --sizes 8 64 --entries 0".split()
    done = subprocess.run(
        [sys.executable, "-P", str(ROOT / "bench" / "idempotence.py"), *words],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    title, *rows = done.stdout.splitlines()
    assert "IDMPAUTO" in title
    assert [row.split("|")[0].split() for row in rows] == [
        ["1", "8", "B"], ["1", "64", "B"], ["16", "8", "B"], ["16", "64", "B"],
    ]  # fmt: skip
    for row in rows:
        assert len(re.findall(r"[\d,]+/s +[\d.]+ us", row)) == 3
        assert len(re.findall(r"[+-][\d.]+%", row)) == 4
