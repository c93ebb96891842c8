"""Programs that tests run, and that a developer may lack; CI may not."""

from __future__ import annotations

import os
import shutil

import pytest


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        reason = f"{name} is not installed"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found
