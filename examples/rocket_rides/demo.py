"""The demo: the whole of it for a minute, with all its failures, and then the reckoning.

It makes a PostgreSQL and a Headrace server of its own, starts the API, two streamers, consumers, a
consumer group of two and the simulator, and kills one of them, or one of the two servers, every
now and then. In the end it lets everything come to rest and compares. Exit code 0: every total is
the database's, to the last digit. 1: it is not, or a process ended by itself.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from psycopg import sql
from psycopg.conninfo import make_conninfo
from rich.console import Console

from rocket_rides import options
from rocket_rides.database import Database, connect, create_schema, stage_correction
from rocket_rides.guard import Guard
from rocket_rides.log import Log, client
from rocket_rides.postgres import Cluster, NoPostgres
from rocket_rides.reconcile import (
    Finding,
    Situation,
    compare,
    look,
    print_findings,
    promised,
)
from rocket_rides.records import Way
from rocket_rides.running import PASSING, fail
from rocket_rides.supervisor import Postgres, Program, Supervisor, Victim
from rocket_rides.view import View

GROUP = "group"
LOOK_EVERY_S = 0.5
REST_TIMEOUT_S = 90.0
MOST_ENDS = 3

# The nightly job: Spark holds the log against the database.
PIPELINE = "headrace-pipeline"
RECONCILE = f"""{PIPELINE} reconcile \\
    --dsn "$ROCKET_RIDES_DSN" \\
    --query "SELECT NULL, count(*), sum(distance::text::numeric), max(id) FROM rides" \\
    --url "$ROCKET_RIDES_REDIS_URL" --stream "$ROCKET_RIDES_STREAM" \\
    --where "fields['object'] = 'ride'" --value distance --last "fields['id']\""""
WHOLE_LOG = 1_000_000_000


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def programs_path() -> str:
    """Return where programs are looked for: beside Python first."""
    return _before(str(Path(sys.executable).parent), "PATH")


def _before(folder: str, variable: str) -> str:
    return os.pathsep.join(filter(None, (folder, os.environ.get(variable, ""))))


class Place:
    """Where one run of the demo happens.

    Attributes:
        victims: the servers that are our own, and may be killed.
    """

    def __init__(self, guard: Guard, folder: Path, stream: str) -> None:
        self.guard = guard
        self.folder = folder
        self.stream = stream
        self.dsn = ""
        self.redis_url = ""
        self.victims: list[Victim] = []

    def environment(self) -> dict[str, str]:
        """The environment variables of every program."""
        return {
            **os.environ,
            "PATH": programs_path(),
            "PYTHONPATH": _before(str(Path(__file__).resolve().parents[1]), "PYTHONPATH"),
            "PYTHONUNBUFFERED": "1",
            "ROCKET_RIDES_DSN": self.dsn,
            "ROCKET_RIDES_REDIS_URL": self.redis_url,
            "ROCKET_RIDES_STREAM": self.stream,
        }

    def program(self, name: str, module: str, *arguments: str) -> Program:
        """A program of ours, not yet started."""
        command = [sys.executable, "-P", "-m", module, *arguments]
        log_path = self.folder / f"{name}.log"
        return Program(self.guard, name, command, self.environment(), log_path)


@contextmanager
def a_database(place: Place, dsn: str | None) -> Iterator[None]:
    """A cluster of our own; or, in a given database, a schema of our own."""
    if dsn is None:
        with Cluster(place.guard) as cluster:
            place.dsn = cluster.dsn()
            place.victims.append(Postgres(cluster))
            yield
        return
    schema = f"rocket_rides_{datetime.now(UTC):%Y%m%d_%H%M%S}_{os.getpid()}"
    place.dsn = make_conninfo(dsn, options=f"-c search_path={schema}")
    with connect(dsn) as database:
        database.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    try:
        yield
    finally:
        with connect(dsn) as database:
            database.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


@contextmanager
def a_server(place: Place, redis_url: str | None) -> Iterator[None]:
    """A Headrace of our own, which syncs what it acknowledges; or, on a given server, a stream."""
    if redis_url is not None:
        place.redis_url = redis_url
        try:
            yield
        finally:
            with Log(redis_url, place.stream) as log:
                log.client.delete(place.stream)
        return
    port = free_port()
    place.redis_url = f"redis://127.0.0.1:{port}"
    data = place.folder / "data"
    data.mkdir()
    server = place.program(
        "headrace", "headrace", "--port", str(port), "--dir", str(data),
        "--appendonly", "yes", "--appendfsync", "always",
    )  # fmt: skip
    server.tend()
    try:
        wait_for_server(server, place.redis_url)
        place.victims.append(server)
        yield
    finally:
        server.stop()
        server.wait()


def wait_for_server(server: Program, url: str, timeout_s: float = 30.0) -> None:
    """Wait until it answers."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            with client(url) as connection:
                connection.ping()
            return
        except PASSING:
            if server.pid is None or time.monotonic() > deadline:
                fail(f"the server does not start:\n{server.log_end()}")
            time.sleep(0.02)


class Demo:
    """One run, in one way."""

    def __init__(self, given: argparse.Namespace, way: Way, place: Place, console: Console) -> None:
        self.given = given
        self.way = way
        self.place = place
        self.console = console
        self.ledger = place.folder / "promised.jsonl"
        self.looker = Looker(place)
        self.programs = self._programs()
        self.simulator = self.programs[-1]
        self.victims = [*place.victims, *self.programs]
        self.supervisor = Supervisor(self.victims, given.kill_every, given.kills)

    def _programs(self) -> list[Program]:
        given = self.given
        port = given.api_port or free_port()
        failing = ("--fail", str(given.fail))
        programs = [
            self.place.program(
                "api", "rocket_rides.api", "--port", str(port), "--late", str(given.late)
            )
        ]
        for name in names("streamer", given.streamers):
            programs.append(
                self.place.program(
                    name, "rocket_rides.streamer", *failing, "--keep", str(given.keep)
                )
            )
        for name in names("consumer", given.consumers):
            programs.append(
                self.place.program(name, "rocket_rides.consumer", *failing, "--name", name)
            )
        for name in names("member", given.members):
            programs.append(
                self.place.program(
                    name, "rocket_rides.group_consumer", *failing, "--group", GROUP, "--name", name
                )
            )
        url = f"http://127.0.0.1:{port}"
        programs.append(
            self.place.program(
                "simulator", "rocket_rides.simulator", "--url", url,
                "--rate", str(given.rate), "--ledger", str(self.ledger),
            )
        )  # fmt: skip
        return programs

    def run(self) -> bool:
        """Run it; whether everything agrees."""
        with connect(self.place.dsn) as database:
            create_schema(database, self.way)
        whose = {name: name for name in names("consumer", self.given.consumers)}
        whose.update(dict.fromkeys(names("member", self.given.members), GROUP))
        if self.given.redis_url is None:
            port = self.place.redis_url.rpartition(":")[2]
            line = f"To see its streams: make console PORT={port}"
            self.console.print(line, highlight=False, soft_wrap=True)
        with View(self.console, self.victims, whose) as view:
            try:
                view.phase = f"{self.way}, starting"
                self.supervisor.killing = False
                self._watch(view, REST_TIMEOUT_S, until=self._everybody_is_there)
                view.phase = f"{self.way}, everything may fail"
                self.supervisor.killing = self.given.kill_every > 0
                self._watch(view, self.given.seconds / 2)
                self._correct(view)
                self._watch(view, self.given.seconds / 2)
                self._watch(view, REST_TIMEOUT_S, until=self._enough)
                view.phase = f"{self.way}, coming to rest"
                self.supervisor.killing = False
                self.simulator.stop()
                rested = self._watch(view, REST_TIMEOUT_S, until=self._at_rest)
                findings = self._findings(rested)
            finally:
                self.looker.close()
                self._stop()
        findings += [self._ends()]
        if self.looker.last is not None:
            print_findings(self.console, self.looker.last.rides, findings)
            self.console.print(self._summary(self.looker.last), highlight=False, soft_wrap=True)
        return all(finding.agrees for finding in findings)

    @property
    def _consumers(self) -> set[str]:
        """Whoever has to have a total in the end."""
        consumers = set(names("consumer", self.given.consumers))
        return consumers | {GROUP} if self.given.members else consumers

    def _everybody_is_there(self, situation: Situation) -> bool:
        return situation.rides.ride_count > 0 and self._consumers <= set(situation.states)

    def _enough(self, situation: Situation) -> bool:
        enough: int = self.given.rides
        return situation.rides.ride_count >= enough

    def _at_rest(self, situation: Situation) -> bool:
        return self.simulator.pid is None and situation.at_rest

    def _watch(
        self, view: View, seconds: float, *, until: Callable[[Situation], bool] | None = None
    ) -> bool:
        """Tend to the processes and show them, for a time or until something is so.

        Returns: whether it was so in time.

        It gives up, too, when a process ends by itself again and again.
        """
        deadline = time.monotonic() + seconds
        look_at_s = 0.0
        while time.monotonic() < deadline:
            self.supervisor.tend()
            if any(len(victim.ends) > MOST_ENDS for victim in self.victims):
                return False
            if time.monotonic() >= look_at_s:
                look_at_s = time.monotonic() + LOOK_EVERY_S
                situation = self.looker.try_to_look()
                view.show(situation)
                if situation is not None:
                    self.supervisor.note(situation.rides.ride_count)
                if until is not None and situation is not None and until(situation):
                    return True
            time.sleep(0.02)
        return False

    def _correct(self, view: View) -> None:
        """What the nightly job does, in the middle of it all."""
        deadline = time.monotonic() + REST_TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                with connect(self.place.dsn) as database:
                    stage_correction(database)
                return
            except PASSING:
                self._watch(view, 0.2)

    def _findings(self, rested: bool) -> list[Finding]:
        try:
            situation = self.looker.look()
            database, log = self.looker.connections()
        except PASSING as error:
            return [Finding("database and log", str(error), False)]
        lost = sum(one.lost_entries for one in situation.checkpoints.values())
        absent = self._consumers - set(situation.states)
        return [
            Finding("came to rest", "in time" if rested else "not in time", rested),
            *compare(database, log, situation, no_copies=self.way is Way.IDMP),
            Finding("consumers without a total", ", ".join(sorted(absent)) or "none", not absent),
            Finding("entries lost to a consumer", str(lost), lost == 0),
            promised(database, self.ledger),
            *self._then(),
        ]

    def _then(self) -> list[Finding]:
        """Run the command that was asked for, on the log at rest."""
        if self.given.then is None:
            return []
        done = subprocess.run(
            self.given.then,
            shell=True,
            env=self.place.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.console.print(done.stdout, markup=False, highlight=False)
        command = self.given.then.partition("\\\n")[0]
        return [Finding(command, f"exit code {done.returncode}", done.returncode == 0)]

    def _ends(self) -> Finding:
        ended = {victim.name: victim.ends for victim in self.victims if victim.ends}
        for program in self.programs:
            if program.ends:
                self.console.print(f"[bold]{program.name}[/] ended by itself:")
                self.console.print(program.log_end(), markup=False, highlight=False)
        return Finding("processes that ended by themselves", str(ended or "none"), not ended)

    def _summary(self, situation: Situation) -> str:
        kills = ", ".join(f"{victim.name} {victim.kills}" for victim in self.victims)
        trimmed = situation.stream.entries_added - situation.stream.length
        return (
            f"{self.way}: {situation.stream.entries_added} entries, {situation.copies} of them "
            f"copies, {trimmed} trimmed, {situation.corrections} corrections. "
            f"Killed {self.supervisor.kills} times: {kills}."
        )

    def _stop(self) -> None:
        for program in self.programs:
            program.stop()
        for program in self.programs:
            program.wait()


class Looker:
    """Looks at the situation again and again, over connections that may break."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.last: Situation | None = None
        self._connections: tuple[Database, Log] | None = None

    def connections(self) -> tuple[Database, Log]:
        """To the database and to the log."""
        if self._connections is None:
            database = connect(self.place.dsn)
            self._connections = database, Log(self.place.redis_url, self.place.stream)
        return self._connections

    def look(self) -> Situation:
        """The situation now."""
        self.last = look(*self.connections())
        return self.last

    def try_to_look(self) -> Situation | None:
        """The situation; None while the database or the log is away."""
        try:
            return self.look()
        except PASSING:
            self.close()
            return None

    def close(self) -> None:
        """Let go of the connections."""
        if self._connections is not None:
            database, log = self._connections
            self._connections = None
            database.close()
            log.close()


def names(what: str, how_many: int) -> list[str]:
    """Names of processes: ``what-1``, ``what-2`` and so on."""
    return [f"{what}-{n + 1}" for n in range(how_many)]


def one_run(given: argparse.Namespace, way: Way, console: Console) -> bool:
    """Set everything up, run the demo in one way, remove everything; whether all agrees."""
    folder = Path(tempfile.mkdtemp(prefix="rocket-rides-logs-"))
    stream = f"{given.stream}-{os.getpid()}" if given.redis_url else given.stream
    agrees = False
    try:
        with ExitStack() as stack:
            place = Place(stack.enter_context(Guard()), folder, stream)
            stack.enter_context(a_database(place, given.dsn))
            stack.enter_context(a_server(place, given.redis_url))
            agrees = Demo(given, way, place, console).run()
    finally:
        if agrees:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            console.print(f"The logs of all processes are in {folder}", soft_wrap=True)
    return agrees


def arguments_of_the_demo() -> argparse.ArgumentParser:
    """Return what can be adjusted."""
    arguments = options.parser(__doc__)
    arguments.set_defaults(dsn=None, redis_url=None)
    arguments.add_argument(
        "--way", choices=[*Way, "both"], default=Way.IDMP, help="how to be right; both: in turn"
    )
    arguments.add_argument("--seconds", type=float, default=60.0, help="how long everything fails")
    arguments.add_argument(
        "--rides", type=int, default=0, help="go on until there are so many, however long it takes"
    )
    arguments.add_argument("--rate", type=float, default=60.0, help="rides a second")
    arguments.add_argument("--consumers", type=int, default=4)
    arguments.add_argument("--members", type=int, default=2, help="members of the consumer group")
    arguments.add_argument("--streamers", type=int, default=2)
    arguments.add_argument("--keep", type=int, default=200, help="length to cap the log at")
    arguments.add_argument(
        "--kill-every", type=float, default=1.5, help="seconds between two kills, 0 for none"
    )
    arguments.add_argument("--kills", type=int, help="kill no more often than that")
    arguments.add_argument(
        "--fail", type=options.probability, default=0.1,
        help="share of batches that are sent twice, and that consumers die over",
    )  # fmt: skip
    arguments.add_argument(
        "--late", type=options.probability, default=0.1,
        help="share of rides whose transaction stays open for a while",
    )  # fmt: skip
    finally_run = arguments.add_mutually_exclusive_group()
    finally_run.add_argument(
        "--reconcile", action="store_true", dest="nightly",
        help="in the end Spark holds the log against the database (needs pyspark-headrace, Java)",
    )  # fmt: skip
    finally_run.add_argument(
        "--then", metavar="COMMAND",
        help="run this in the end, with the addresses in its environment; it has to succeed",
    )  # fmt: skip
    arguments.add_argument("--api-port", type=int, help="a free one where none is given")
    arguments.add_argument("--seed", type=int, help="for the choice of whom to kill, and when")
    return arguments


def main(argv: Sequence[str] | None = None) -> None:
    """Run the demo."""
    given = arguments_of_the_demo().parse_args(argv)
    ways = [Way.IDMP, Way.CLASSIC] if given.way == "both" else [Way(given.way)]
    if given.nightly:
        if ways != [Way.IDMP]:
            fail("--reconcile goes with --way idmp: in the classic way the log holds copies")
        if shutil.which(PIPELINE, path=programs_path()) is None:
            fail(f"there is no {PIPELINE}: install pyspark-headrace")
        given.then = RECONCILE
        given.keep = WHOLE_LOG
    random.seed(given.seed)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console()
    try:
        agree = [one_run(given, way, console) for way in ways]
    except NoPostgres as error:
        fail(str(error))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    sys.exit(0 if all(agree) else 1)


if __name__ == "__main__":
    main()
