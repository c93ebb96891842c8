"""Fixtures of pytest for Headrace, with names as pytest-redis has them.

``headrace_proc`` is a server for the whole session, one for each worker of xdist. ``headracedb`` is
a client of it, for one test, before and after which the server is brought back to its start.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import pytest

from headrace.testing import Clock, Faults, HeadraceServer
from pytest_headrace import factories

__version__ = "0.2.0"

LOG_LINES: Final = 50  # of a server, in the report of a test that has failed

headrace_proc = factories.headrace_proc()
headracedb = factories.headracedb("headrace_proc")
headracedb_async = factories.headracedb_async("headrace_proc")


@pytest.fixture(scope="session")
def headrace_url(headrace_proc: HeadraceServer) -> str:
    """Return the address of the server."""
    return headrace_proc.url


@pytest.fixture
def headrace_clock(headrace_proc: HeadraceServer) -> Generator[Clock]:
    """Yield the server's clock, which shows the system's time again afterwards."""
    yield headrace_proc.clock
    headrace_proc.clock.reset()


@pytest.fixture
def headrace_faults(headrace_proc: HeadraceServer) -> Generator[Faults]:
    """Yield the server's faults, of which none is left afterwards."""
    yield headrace_proc.faults
    headrace_proc.faults.clear()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, which are settings of pytest.ini as well."""
    group = parser.getgroup("headrace")
    for name, about in (
        ("exec", "the server to run, instead of the Headrace of this environment"),
        ("port", "the port of headrace_proc; a free one without it"),
    ):
        group.addoption(f"--headrace-{name}", help=about)
        parser.addini(f"headrace_{name}", about)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what its servers have logged last, where a test has failed."""
    report = yield
    if report.failed:
        for name, value in vars(item).get("funcargs", {}).items():
            if isinstance(value, HeadraceServer):
                lines = value.log().splitlines()[-LOG_LINES:]
                report.sections.append((f"log of {name}", "\n".join(lines)))
    return report
