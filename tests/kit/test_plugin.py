"""pytest-headrace, as a test suite of a user has it: loaded by pytest, alone and in parallel."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from kit.conftest import FRAMEWORKS, guide

from support.build import ROOT

pytest_plugins = ["pytester"]

CLEAN = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_clean(headracedb, number):
    assert headracedb.dbsize() == 0
    assert headracedb.client_getname() is None
    headracedb.set("k", "v")
    headracedb.client_setname("mine")
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    return pytester


def run(suite: pytest.Pytester, *words: str) -> pytest.RunResult:
    options = ("-p", "pytest_headrace", "-p", "no:cacheprovider", "-W", "error::ResourceWarning")
    return suite.runpytest_subprocess(*options, *words)


def test_each_test_has_a_clean_server(suite: pytest.Pytester) -> None:
    suite.makepyfile(CLEAN.format(count=50))
    run(suite).assert_outcomes(passed=50)


@pytest.mark.parametrize("words", [("-n", "4"), ("-n", "2", "--dist", "loadgroup")])
def test_each_worker_has_a_server(suite: pytest.Pytester, words: tuple[str, ...]) -> None:
    suite.makepyfile(CLEAN.format(count=40))
    run(suite, *words).assert_outcomes(passed=40)


def test_clock_faults_and_url(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        from datetime import datetime, timedelta, timezone
        import pytest, redis

        def test_expiry(headracedb, headrace_clock):
            headracedb.set("session", "v", ex=1800)
            headrace_clock.shift(timedelta(minutes=29))
            assert headracedb.get("session")
            headrace_clock.shift(60)
            assert not headracedb.get("session")
            then = datetime(2100, 1, 1, tzinfo=timezone.utc)
            assert headrace_clock.move_to(then) == then
            assert headrace_clock.freeze() == headrace_clock.resume()

        def test_the_clock_is_back(headrace_clock):
            assert headrace_clock.now().year < 2100

        def test_lost_reply(headracedb, headrace_faults):
            headrace_faults.close_after("XADD", times=1)
            headracedb.execute_command("XADD", "s", "IDMP", "p", "1", "*", "f", "v")
            assert headracedb.xlen("s") == 1

        def test_no_fault_is_left(headrace_faults):
            assert headrace_faults.list() == []

        def test_url(headrace_url):
            assert redis.from_url(headrace_url + "/9").ping()

        @pytest.fixture(scope="session")
        def broker(headrace_url):
            return redis.from_url(headrace_url)

        def test_url_for_the_session(broker):
            assert broker.ping()
        """
    )
    run(suite).assert_outcomes(passed=6)


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_coroutines(suite: pytest.Pytester, mode: str) -> None:
    mark = "@pytest.mark.asyncio" if mode == "strict" else ""
    suite.makepyfile(
        f"""
        import pytest

        {mark}
        async def test_one(headracedb_async, headrace_clock):
            assert await headracedb_async.dbsize() == 0
            await headracedb_async.set("k", "v", ex=60)
            headrace_clock.shift(61)
            assert await headracedb_async.get("k") is None

        {mark}
        async def test_other(headracedb_async):
            assert await headracedb_async.keys() == []
        """
    )
    run(suite, "-o", f"asyncio_mode={mode}").assert_outcomes(passed=2)


def test_anyio(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @pytest.mark.anyio
        async def test_one(headrace_proc):
            client = headrace_proc.async_client()
            assert await client.ping()
            await client.aclose()
        """
    )
    run(suite, "-p", "no:asyncio").assert_outcomes(passed=1)


def test_factories_and_options(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        from pytest_headrace import factories

        kept_proc = factories.headrace_proc(appendonly=True, maxmemory="50mb")
        kept = factories.headracedb("kept_proc", dbnum=3, decode=True)

        def test_kept(kept, headracedb, kept_proc):
            kept.set("k", "v")
            assert kept.get("k") == "v"
            assert kept.client_info()["db"] == 3
            assert kept.config_get("appendonly") == {"appendonly": "yes"}
            assert headracedb.dbsize() == 0
            kept_proc.restart(crash=True)
            assert kept.get("k") == "v"
        """
    )
    run(suite).assert_outcomes(passed=1)
    result = run(suite, "--headrace-exec", "/nonexistent/headrace")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*/nonexistent/headrace cannot be run: No such file*"])
    suite.makeini("[pytest]\nheadrace_exec = /nonexistent/from-ini")
    run(suite).stdout.fnmatch_lines(["*/nonexistent/from-ini cannot be run*"])


def test_a_test_that_takes_all_rights_ends_alone(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        def test_one(headracedb):
            headracedb.execute_command("ACL", "SETUSER", "default", "-@all")

        def test_other(headracedb):
            assert headracedb.set("k", "v")
        """
    )
    run(suite).assert_outcomes(passed=2)


def test_the_log_is_in_the_report_of_a_failure(suite: pytest.Pytester) -> None:
    suite.makepyfile("def test_it(headrace_proc):\n    assert False")
    result = run(suite)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*log of headrace_proc*", "*Ready to accept connections*"])


def test_nothing_is_left_of_a_suite(suite: pytest.Pytester, tmp_path: Path) -> None:
    suite.makepyfile("def test_it(headrace_proc):\n    print('AT', headrace_proc.folder)")
    result = run(suite, "-s", "-n", "0")
    found = re.findall(r"AT (\S+)", result.stdout.str())
    assert found
    assert not any(Path(each).exists() for each in found)


def test_the_guide(suite: pytest.Pytester) -> None:
    """All that docs/testing.md shows runs, as it stands there, and its recipes are short.

    What needs a framework runs in test_frameworks.py.
    """
    shown = guide()
    assert len(shown["Ten recipes"]) == 10
    assert all(len(block.strip().splitlines()) < 15 for each in shown.values() for block in each)
    blocks = [block for each in shown if each not in FRAMEWORKS for block in shown[each]]
    suite.makepyfile("\n\n".join(blocks))
    run(suite).assert_outcomes(passed=sum(block.count("def test_") for block in blocks))
