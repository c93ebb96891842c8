"""Fixtures for every test: our server, a fresh one, clients, the real Redis, a PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support import build, clock
from support.client import RawClient
from support.clock import Clock
from support.process import Pair, Process, RedisProcess, ServerProcess, judge_program

if TYPE_CHECKING:
    from xdist.remote import Producer

    from rocket_rides.postgres import Cluster
    from support.fuzz.duel import Duel
    from support.scheduling import Scheduling

pytest.register_assert_rewrite("support.groups", "support.group_model")  # to see what differs
_under_test = ""


def pytest_configure(config: pytest.Config) -> None:
    global _under_test
    try:
        _under_test = build.check()
    except build.WrongBuildError as wrong:
        raise pytest.UsageError(str(wrong)) from None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, so that several workers end together."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    if config.getoption("dist") != "loadscope":
        return None
    from support.scheduling import Scheduling

    return Scheduling(config, log)


def pytest_report_header(config: pytest.Config) -> str:
    return _under_test


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        for value in item.funcargs.values():
            started = value.started if isinstance(value, Factory) else [value]
            for process in started:
                if isinstance(process, Process) and process.log():
                    report.sections.append((f"{process.name} log", process.log()[-8000:]))
    return report


class Factory:
    """Starts servers for one test, and ends them with it."""

    def __init__(self, kind: type[ServerProcess | RedisProcess]) -> None:
        self._kind = kind
        self.started: list[Process] = []

    def __call__(self, *options: str, start: bool = True, **settings: object) -> Process:
        process = self._kind(*options, **settings)  # type: ignore[arg-type]
        self.started.append(process)
        return process.start() if start else process

    def finish(self) -> None:
        try:
            for process in self.started:
                process.kill()
            for process in self.started:
                if isinstance(process, ServerProcess) and process.check_log_at_end:
                    process.check_log()
        finally:
            for process in self.started:
                process.discard()


@pytest.fixture(scope="session")
def _shared_server() -> Iterator[ServerProcess]:
    process = ServerProcess("--enable-debug-command", "yes")
    try:
        yield process
        if process.running:
            process.stop()
    finally:
        process.discard()


@pytest.fixture
def server(_shared_server: ServerProcess) -> ServerProcess:
    """Our server, shared and emptied before each test, which puts changed settings back."""
    if not _shared_server.running:
        _shared_server.start()
    _shared_server.call("FLUSHALL")
    return _shared_server


@pytest.fixture
def client(server: ServerProcess) -> Iterator[RawClient]:
    """A RESP2 connection to the shared server."""
    with server.client() as connection:
        yield connection


@pytest.fixture
def client3(server: ServerProcess) -> Iterator[RawClient]:
    """A RESP3 connection to the shared server."""
    with server.client(resp3=True) as connection:
        yield connection


@pytest.fixture
def fresh_server() -> Iterator[Factory]:
    """Starts servers of the test's own; see ``ServerProcess`` for the arguments."""
    factory = Factory(ServerProcess)
    yield factory
    factory.finish()


@pytest.fixture(scope="session")
def _judge() -> None:
    if judge_program() is not None:
        return
    missing = "no redis-server found to compare with"
    if os.environ.get("CI") or os.environ.get("HEADRACE_REQUIRE_JUDGE"):
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture(scope="session")
def _shared_redis(_judge: None) -> Iterator[RedisProcess]:
    process = RedisProcess()
    try:
        yield process
    finally:
        process.discard()


@pytest.fixture
def redis_server(_shared_redis: RedisProcess) -> RedisProcess:
    """The real Redis, shared by the tests and emptied before each."""
    if not _shared_redis.running:
        _shared_redis.start()
    _shared_redis.call("FLUSHALL")
    return _shared_redis


@pytest.fixture
def fresh_redis(_judge: None) -> Iterator[Factory]:
    """Starts real Redis servers of the test's own."""
    factory = Factory(RedisProcess)
    yield factory
    factory.finish()


@pytest.fixture
def pair(server: ServerProcess, redis_server: RedisProcess) -> Iterator[Pair]:
    """A RESP2 connection to each server; ``pair.both(...)`` compares raw replies."""
    both = Pair(server.client(), redis_server.client())
    yield both
    both.close()


@pytest.fixture
def pair3(server: ServerProcess, redis_server: RedisProcess) -> Iterator[Pair]:
    """As ``pair``, in RESP3."""
    both = Pair(server.client(resp3=True), redis_server.client(resp3=True))
    yield both
    both.close()


@pytest.fixture
def settable_clock() -> Iterator[Clock]:
    """A time of day for servers that are started with its ``environment``."""
    if not clock.can_be_set():
        missing = "a settable clock needs Linux and a C compiler"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    with Clock() as settable:
        yield settable


@pytest.fixture(scope="session")
def _shared_duel() -> Iterator[Duel]:
    from support.fuzz.duel import Duel, find_judge  # not before it is known which build to import

    judge = find_judge()
    if judge is None or "8.10" not in judge or not clock.can_be_set():
        missing = "needs Redis 8.10, which `make judges` fetches, Linux and a C compiler"
        if os.environ.get("HEADRACE_REQUIRE_JUDGE"):
            pytest.fail(missing)
        pytest.skip(missing)
    with Duel(judge) as both:
        yield both


@pytest.fixture
def duel(_shared_duel: Duel) -> Iterator[Duel]:
    """Ours and Redis 8.10 under one clock; ``duel.player.play(...)`` compares all that shows."""
    yield _shared_duel
    _shared_duel.check_log()


@pytest.fixture
def repo() -> Path:
    """The root of the checkout."""
    return build.ROOT


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL of the tests' own, shared by them."""
    from rocket_rides.guard import Guard
    from rocket_rides.postgres import Cluster, NoPostgres, programs

    if programs() is None:
        missing = "no PostgreSQL found (Debian and Ubuntu: apt-get install postgresql)"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    try:
        with Guard() as guard, Cluster(guard, "-c", "fsync=off") as cluster:
            yield cluster
    except NoPostgres as error:
        pytest.fail(str(error))
