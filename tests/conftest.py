"""Fixtures for every test: our server, a fresh one, clients, the real Redis, a PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from pytest_rerunfailures import ClientStatusDB, StatusDB

from support import build, campaigns, clock, judges
from support.certificates import Certificates
from support.client import RawClient
from support.clock import Clock
from support.judges import JUDGES, Judge
from support.mesh import Mesh
from support.process import Pair, Process, RedisProcess, ServerProcess

if TYPE_CHECKING:
    from xdist.remote import Producer

    from rocket_rides.postgres import Cluster
    from support.fuzz.duel import Duel
    from support.scheduling import Scheduling

pytest.register_assert_rewrite("support.groups", "support.group_model")  # to see what differs
settings.register_profile("patient", parent=settings.default, deadline=None)
settings.load_profile("patient")  # a busy machine is no fault
_under_test = ""


def count_alone(config: pytest.Config) -> None:
    """Let a worker count for itself how often it has tried a test.

    It would ask the process that started it, four times for each test, in packets that wait 40 ms
    for each other: what the answer is for, that another worker tries again, is nothing we do.
    """
    asked = vars(config).get("failures_db")
    if isinstance(asked, ClientStatusDB):
        asked.sock.close()
        vars(config)["failures_db"] = StatusDB()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    global _under_test
    count_alone(config)
    try:
        _under_test = build.check()
    except build.WrongBuildError as wrong:
        raise pytest.UsageError(str(wrong)) from None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what a real server judges with each of them: with the older ones on one build only."""
    if "judge" in metafunc.fixturenames:
        judged = []
        for judge in judges.chosen():
            marks = [pytest.mark.judge, *([] if judge is JUDGES[0] else [pytest.mark.once])]
            judged.append(pytest.param(judge, id=judge.name, marks=marks))
        metafunc.parametrize("judge", judged, indirect=True)


def judged_too_early(item: pytest.Item) -> bool:
    """Return whether the item's judge is older than the version that the test is about."""
    judge = item.callspec.params.get("judge") if hasattr(item, "callspec") else None
    if not isinstance(judge, Judge):
        return False
    return any(judge.follows < mark.args for mark in item.iter_markers("since"))


def chance_again(item: pytest.Item) -> bool:
    """Whether the item is by chance what two others are: the uncompiled checkout runs no more."""
    seed = item.callspec.params.get("seed") if hasattr(item, "callspec") else None
    return build.use_tree() and seed in range(2, 1000)  # what is greater was chosen


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order them; leave out what is judged too early, and what a push leaves out.

    People see first what is quick. In CI, where nobody looks on, the slow ones begin: then no
    processor waits for the last.
    """
    pushed = campaigns.Selection()
    named = {argument.partition("[")[0] for argument in config.args}  # these are meant
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        is_run = judges.everything() or (pushed.has(item.nodeid) and not chance_again(item))
        is_run = is_run or item.nodeid.partition("[")[0] in named
        (kept if is_run and not judged_too_early(item) else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    quick_first = not os.environ.get("CI")
    kept.sort(key=lambda item: (item.get_closest_marker("slow") is None) != quick_first)
    items[:] = kept


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

    def __init__(self, kind: type[ServerProcess | RedisProcess], **always: object) -> None:
        self._kind = kind
        self._always = always
        self.started: list[Process] = []

    def __call__(self, *options: str, start: bool = True, **settings: object) -> Process:
        process = self._kind(*options, **self._always, **settings)  # type: ignore[arg-type]
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
    process = ServerProcess("--enable-debug-command", "yes", "--save", "")  # as the judges
    try:
        yield process
        if process.running:
            process.stop()
    finally:
        process.discard()


@pytest.fixture
def server(_shared_server: ServerProcess) -> ServerProcess:
    """Our server, shared, and emptied before each test."""
    return _shared_server.start_or_empty()


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
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates, of which no other test changes the files."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> str:
    """Where the real server lies that judges this test; each test runs once for each of them."""
    judge: Judge = getattr(request, "param", JUDGES[0])
    program = judge.program()
    if program is None:
        judges.missing(f"no {judge.name} to compare with: `make judges` brings it")
    return program


@pytest.fixture(scope="session")
def _shared_judges() -> Iterator[dict[str, RedisProcess]]:
    processes: dict[str, RedisProcess] = {}
    try:
        yield processes
    finally:
        for process in processes.values():
            process.discard()


@pytest.fixture
def redis_server(judge: str, _shared_judges: dict[str, RedisProcess]) -> RedisProcess:
    """A real server, shared by the tests that it judges and emptied before each."""
    if judge not in _shared_judges:
        _shared_judges[judge] = RedisProcess(program=judge)
    return _shared_judges[judge].start_or_empty()


@pytest.fixture
def fresh_redis(judge: str) -> Iterator[Factory]:
    """Starts real servers of the test's own."""
    factory = Factory(RedisProcess, program=judge)
    yield factory
    factory.finish()


@pytest.fixture
def pair(server: ServerProcess, redis_server: RedisProcess) -> Iterator[Pair]:
    """A RESP2 connection to each server; ``pair.both(...)`` compares raw replies."""
    both = Pair.of(server, redis_server)
    yield both
    both.close()


@pytest.fixture
def pair3(server: ServerProcess, redis_server: RedisProcess) -> Iterator[Pair]:
    """As ``pair``, in RESP3."""
    both = Pair.of(server, redis_server, resp3=True)
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


@pytest.fixture(params=["ours", pytest.param("redis", marks=pytest.mark.judge)])
def tested(request: pytest.FixtureRequest) -> Process:
    """Our server, or the newest Redis."""
    name = "server" if request.param == "ours" else "redis_server"
    process: Process = request.getfixturevalue(name)
    return process


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


@pytest.fixture
def two_regions() -> Iterator[Mesh]:
    """Two regions that pull from each other."""
    with Mesh(2) as mesh:
        yield mesh
        for region in mesh.regions.values():
            region.check_log()


@pytest.fixture
def three_regions() -> Iterator[Mesh]:
    """Three regions, each of which pulls from the others."""
    with Mesh(3) as mesh:
        yield mesh
        for region in mesh.regions.values():
            region.check_log()
