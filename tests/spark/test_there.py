"""Whether the Spark tests can run at all; where they cannot, this one says so for all of them."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.build import ROOT
from support.scheduling import WITH_SPARK

pytestmark = pytest.mark.once

REQUIRED = bool(os.environ.get("HEADRACE_REQUIRE_SPARK"))


def test_spark_is_there() -> None:
    missing = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        missing.append("Java 17")
    if missing and not REQUIRED:
        pytest.skip(f"{', '.join(missing)} not installed: see `make install SPARK=1`")
    assert missing == []


def test_one_worker_has_the_session() -> None:
    modules = Path(__file__).parent.glob("test_*.py")
    asking = {module for module in modules if "spark: SparkSession" in module.read_text()}
    asking.discard(Path(__file__))
    assert {str(module.relative_to(ROOT)) for module in asking} == WITH_SPARK
