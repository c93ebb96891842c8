"""The unified log, piece by piece: nothing is lost and nothing counts twice, whatever happens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from functools import reduce
from operator import add

import pytest

from support.waiting import DEADLINE_S

pytest.importorskip("psycopg", reason="psycopg is not installed: headrace[demo]")
pytest.importorskip("rich", reason="rich is not installed: headrace[demo]")

import psycopg
import redis

from rocket_rides.consumer import Consumer
from rocket_rides.database import (
    Database,
    State,
    checkpoints,
    connect,
    count_staged,
    create_ride,
    fence,
    forget,
    register,
    save_state,
    stage_correction,
    states,
)
from rocket_rides.group_consumer import GroupConsumer
from rocket_rides.log import Log
from rocket_rides.reconcile import Finding, compare, look
from rocket_rides.records import (
    Correction,
    EntryID,
    Ride,
    Way,
    exact_sum,
    understand,
)
from rocket_rides.running import Failures, SimulatedCrash
from rocket_rides.streamer import Streamer
from support.process import ServerProcess
from support.waiting import wait_until

pytestmark = pytest.mark.once

RIGHT = [Way.CLASSIC, Way.IDMP]
ALWAYS = Failures(1.0)


class System:
    """Database and log, and whoever works between them; each over connections of its own."""

    def __init__(self, dsn: str, server: ServerProcess) -> None:
        self.dsn = dsn
        self.server = server
        self._open = ExitStack()
        self.database = self.connect()
        self.log = self.open_log()

    def connect(self) -> Database:
        return self._open.enter_context(connect(self.dsn))

    def open_log(self) -> Log:
        return self._open.enter_context(Log(f"redis://127.0.0.1:{self.server.port}", "rides"))

    def close(self) -> None:
        self._open.close()

    def streamer(self, way: Way, *, failing: bool = False, keep: int = 10_000) -> Streamer:
        streamer = Streamer(self.connect(), self.open_log(), way, keep=keep)
        streamer.failures = ALWAYS if failing else Failures()
        return streamer

    def consumer(self, way: Way, name: str = "ada", *, batch: int = 1000) -> Consumer:
        return Consumer(self.connect(), self.open_log(), way, name, batch=batch)

    def member(
        self, way: Way, name: str = "member", *, dead_after_ms: int = 60_000
    ) -> GroupConsumer:
        return GroupConsumer(
            self.connect(),
            self.open_log(),
            way,
            "group",
            name,
            dead_after_ms=dead_after_ms,
            block_ms=1,
        )

    def ride(self, *distances: float) -> None:
        with self.database.transaction():
            for distance in distances:
                create_ride(self.database, distance)

    def findings(self, *, no_copies: bool = False) -> list[Finding]:
        """Return what is not as the database says."""
        found = compare(self.database, self.log, look(self.database, self.log), no_copies=no_copies)
        return [finding for finding in found if not finding.agrees]

    def entries(self) -> list[Ride | Correction | None]:
        return [understand(entry.fields) for entry in self.log.all()]

    def state(self, name: str) -> State:
        return states(self.database)[name]


@pytest.fixture
def system(dsn: str, server: ServerProcess) -> Iterator[System]:
    system = System(dsn, server)
    yield system
    system.close()


def run_dry(worker: Streamer | Consumer | GroupConsumer) -> None:
    """Run it until nothing is left to do."""
    while worker.run_once():
        pass


def crash(worker: Streamer | Consumer | GroupConsumer) -> None:
    with pytest.raises(SimulatedCrash):
        worker.run_once()
    worker.database.close()
    worker.log.close()


# Records


def test_ids_compare_as_numbers() -> None:
    assert EntryID.parse("9-10") > EntryID.parse("9-9") > EntryID.parse("8-100")
    assert str(EntryID.parse("1700-0")) == "1700-0"
    for wrong in ("", "1", "1-", "-1-1", "1-1-1", "a-b", "1-1 ", "\u0661-1"):
        with pytest.raises(ValueError, match="entry ID"):
            EntryID.parse(wrong)


def test_what_an_entry_says() -> None:
    ride = {"object": "ride", "action": "create", "id": "7", "distance": "0.1"}
    assert understand(ride) == Ride(7, Decimal("0.1"))
    correction = {
        "object": "total",
        "action": "correct",
        "total_distance": "12.50",
        "ride_count": "3",
        "last_ride_id": "9",
    }
    assert understand(correction) == Correction(Decimal("12.5"), 3, 9)
    assert understand(None) is None
    for changed in ({"id": "x"}, {"distance": "far"}, {"distance": "nan"}, {"object": "horse"}):
        assert understand({**ride, **changed}) is None
    for field in ride:
        assert understand({key: value for key, value in ride.items() if key != field}) is None


def test_sums_do_not_depend_on_the_order() -> None:
    distances = [Decimal(repr(number)) for number in (1e6, 0.1, 1e-7, 539.836923415231, 2 / 3)]
    forward, backward = exact_sum(distances), exact_sum(reversed(distances))
    assert forward == backward == Decimal("1000540.6035901818976666")


# From the database into the log


@pytest.mark.parametrize("way", RIGHT)
def test_records_move(system: System, way: Way) -> None:
    system.ride(0.1, 1e6, 2 / 3)
    streamer = system.streamer(way)
    run_dry(streamer)
    assert count_staged(system.database) == 0
    [first, second, third] = system.log.all()
    assert first.fields == {
        "record": "1",
        "action": "create",
        "object": "ride",
        "id": "1",
        "distance": "0.1",
    }
    assert understand(second.fields) == Ride(2, Decimal(1_000_000))
    assert understand(third.fields) == Ride(3, Decimal("0.6666666666666666"))


@pytest.mark.parametrize("way", RIGHT)
def test_a_streamer_that_dies_before_deleting_sends_again(system: System, way: Way) -> None:
    system.ride(1.5, 2.5)
    crash(system.streamer(way, failing=True))
    assert count_staged(system.database) == 2
    system.ride(4.0)
    crash(system.streamer(way, failing=True))
    run_dry(system.streamer(way))
    copies = {Way.CLASSIC: 5, Way.IDMP: 0}[way]
    assert look(system.database, system.log).copies == copies
    assert len(system.entries()) == 3 + copies
    consumer, member = system.consumer(way), system.member(way)
    run_dry(consumer)
    run_dry(member)
    assert system.findings(no_copies=way is Way.IDMP) == []
    assert system.state("ada") == State("ada", 3, copies, Decimal(8))


def test_a_batch_is_sent_whole_or_not_at_all(system: System) -> None:
    system.ride(*[1.0] * 250)
    streamer = system.streamer(Way.IDMP)
    streamer.batch = 100
    system.server.call("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(redis.ResponseError):
            streamer.run_once()
    finally:
        system.server.call("CONFIG", "SET", "maxmemory", "0")
    assert (system.log.facts().length, count_staged(system.database)) == (0, 250)
    sizes = [streamer.run_once() for _ in range(4)]
    assert sizes == [100, 100, 50, 0]


def test_a_server_that_is_away_costs_nothing(
    dsn: str, fresh_server: Callable[..., ServerProcess]
) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    system = System(dsn, server)
    try:
        streamer, consumer, member = (
            system.streamer(Way.IDMP),
            system.consumer(Way.IDMP),
            system.member(Way.IDMP),
        )
        system.ride(1.0, 2.0)
        streamer.run_once()
        member._take()  # and then it dies, holding both
        system.ride(3.0)
        crash(system.streamer(Way.IDMP, failing=True))
        server.kill()
        for worker in (streamer, consumer, member):
            with pytest.raises(redis.ConnectionError):
                worker.run_once()
        assert count_staged(system.database) == 1
        server.restart(crash=True)
        for worker in (
            system.streamer(Way.IDMP),
            system.consumer(Way.IDMP),
            system.member(Way.IDMP),
        ):
            run_dry(worker)
        assert system.findings(no_copies=True) == []
    finally:
        system.close()


# Ids do not become visible in the order in which they were drawn


def draw_late(system: System, between: Callable[[], None]) -> None:
    """Two rides: the first is committed after ``between``, the second before it."""
    slow = system.connect()
    with slow.transaction():
        assert create_ride(slow, 100.0) == 1
        assert create_ride(system.database, 1.0) == 2
        between()


def test_the_classic_skip_loses_a_late_ride(system: System) -> None:
    """As the original does it: in the order of the staged ids, as soon as they can be seen."""
    streamer, consumer = system.streamer(Way.NAIVE), system.consumer(Way.NAIVE)

    def between() -> None:
        run_dry(streamer)
        run_dry(consumer)

    draw_late(system, between)
    run_dry(streamer)
    run_dry(consumer)
    assert system.entries() == [Ride(2, Decimal(1)), Ride(1, Decimal(100))]
    assert system.state("ada") == State("ada", 1, 1, Decimal(1))
    assert [finding.what for finding in system.findings()] == ["ada"]


def test_the_classic_skip_loses_a_ride_whose_record_was_staged_first(system: System) -> None:
    """Two sequences: nothing makes a transaction draw from both before another does."""
    other = system.connect()
    insert = "INSERT INTO rides (distance) VALUES (%s) RETURNING id"
    stage = """
        INSERT INTO staged_log_records (ride_id, action, object, data)
        SELECT id, 'create', 'ride', jsonb_build_object('id', id, 'distance', distance)
        FROM rides WHERE id = %s
    """
    with system.database.transaction(), other.transaction():
        system.database.execute(insert, (100.0,))
        other.execute(insert, (1.0,))
        other.execute(stage, (2,))
        system.database.execute(stage, (1,))
    naive = system.streamer(Way.NAIVE)
    assert [record.data["id"] for record in naive._next(None)] == ["2", "1"]
    run_dry(system.streamer(Way.CLASSIC))
    assert system.entries() == [Ride(1, Decimal(100)), Ride(2, Decimal(1))]


def test_our_classic_way_waits_for_a_late_ride(system: System) -> None:
    streamer, consumer = system.streamer(Way.CLASSIC), system.consumer(Way.CLASSIC)
    waiting = threading.Thread(target=streamer.run_once)

    def between() -> None:
        waiting.start()
        wait_until(lambda: locks_waited_for(system) == 1)
        run_dry(consumer)
        assert system.entries() == []

    draw_late(system, between)
    waiting.join(DEADLINE_S)
    run_dry(consumer)
    assert system.entries() == [Ride(1, Decimal(100)), Ride(2, Decimal(1))]
    assert system.findings() == []


def test_the_idmp_way_need_not_wait(system: System) -> None:
    streamer, consumer = system.streamer(Way.IDMP), system.consumer(Way.IDMP)

    def between() -> None:
        run_dry(streamer)
        run_dry(consumer)
        assert system.state("ada").ride_count == 1

    draw_late(system, between)
    run_dry(streamer)
    run_dry(consumer)
    assert system.entries() == [Ride(2, Decimal(1)), Ride(1, Decimal(100))]
    assert system.findings(no_copies=True) == []


def locks_waited_for(system: System) -> int:
    [waiting] = system.database.execute(
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'rides'::regclass"
    ).fetchone() or (0,)
    return int(waiting)


def test_a_transaction_left_open_holds_up_the_log_and_not_the_rides(system: System) -> None:
    slow = system.connect()
    with slow.transaction():
        create_ride(slow, 1.0)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            fence(system.database, timeout_ms=20)
        create_ride(system.database, 2.0)
    assert fence(system.database) == 2


def test_a_second_classic_streamer_stands_by(system: System) -> None:
    first, second = system.streamer(Way.CLASSIC), system.streamer(Way.CLASSIC)
    system.ride(1.0)
    assert first.run_once() == 1
    system.ride(2.0)
    assert second.run_once() == 0
    first.database.close()
    wait_until(second.run_once)
    assert system.entries() == [Ride(1, Decimal(1)), Ride(2, Decimal(2))]


def test_two_idmp_streamers_at_the_same_time_make_no_copies(system: System) -> None:
    first, second = system.streamer(Way.IDMP), system.streamer(Way.IDMP)
    system.ride(1.0, 2.0, 3.0)
    seen = second._next(None)
    first.run_once()
    second.log.append(seen, second._producer)  # it had read them before the other deleted them
    system.ride(4.0)
    second.run_once()
    run_dry(system.consumer(Way.IDMP))
    assert system.findings(no_copies=True) == []


def test_the_same_ids_of_another_database_are_other_records(system: System) -> None:
    system.ride(1.0)
    run_dry(system.streamer(Way.IDMP))
    system.database.execute("UPDATE log_origin SET id = gen_random_uuid()")
    system.database.execute("TRUNCATE rides, staged_log_records RESTART IDENTITY")
    system.ride(2.0)
    run_dry(system.streamer(Way.IDMP))
    assert system.entries() == [Ride(1, Decimal(1)), Ride(1, Decimal(2))]


# Consumers


@pytest.mark.parametrize("way", RIGHT)
def test_consumers_that_crash_come_to_the_same_total(system: System, way: Way) -> None:
    system.ride(0.1, 0.2, 0.7, 1e6, 1e-6)
    run_dry(system.streamer(way))
    crashing, steady = system.consumer(way, "crashing", batch=2), system.consumer(way, "steady")
    crashing.failures = ALWAYS
    crash(crashing)
    assert system.state("crashing") == State("crashing", 0, 0, Decimal(0))
    crashing = system.consumer(way, "crashing", batch=2)
    assert crashing.run_once() == 2
    crashing.failures = ALWAYS
    crash(crashing)
    run_dry(system.consumer(way, "crashing", batch=2))
    run_dry(steady)
    assert system.findings() == []
    assert system.state("crashing").total == Decimal("1000001.000001")


def test_the_total_is_rounded_once(system: System) -> None:
    """Ten times 0.1 is 1, which doubles do not find when they add."""
    system.ride(*[0.1] * 10)
    run_dry(system.streamer(Way.CLASSIC))
    run_dry(system.consumer(Way.CLASSIC))
    [double] = system.database.execute(
        "SELECT total_distance FROM consumer_states WHERE name = 'ada'"
    ).fetchone() or (0,)
    assert double == 1.0 != reduce(add, [0.1] * 10)  # sum() of Python 3.12 rounds once, too


def test_nonsense_in_the_log_is_passed_over(system: System) -> None:
    consumer, member = system.consumer(Way.CLASSIC), system.member(Way.CLASSIC)
    system.server.call("XADD", "rides", "*", "object", "horse")
    system.server.call("XADD", "rides", "*", b"\xff\x00", b"\xfe")
    system.ride(1.0)
    run_dry(system.streamer(Way.CLASSIC))
    run_dry(consumer)
    run_dry(member)
    assert system.state("ada").ride_count == system.state("group").ride_count == 1
    assert system.findings() == []


def test_a_forgotten_consumer_leaves_nothing(system: System) -> None:
    consumer = system.consumer(Way.CLASSIC)
    forget(system.database, "ada")
    assert not checkpoints(system.database)
    assert not states(system.database)
    with pytest.raises(LookupError, match="ada"):
        consumer.run_once()


# Trimming


@pytest.mark.parametrize("way", RIGHT)
def test_a_consumer_far_behind_loses_nothing(system: System, way: Way) -> None:
    quick, slow = system.consumer(way, "quick"), system.consumer(way, "slow", batch=100)
    member = system.member(way)
    streamer = system.streamer(way, keep=50)
    for _ in range(5):
        system.ride(*[1.25] * 100)
        run_dry(streamer)
        run_dry(quick)
        run_dry(member)
        member.tidy()
        assert streamer.trim() == 0
    assert system.log.facts().length == 500  # ten times what it is to be capped at
    slow.run_once()
    slow.run_once()
    assert streamer.trim() == 200  # what everybody has read
    run_dry(slow)
    assert system.findings(no_copies=True) == []
    assert streamer.trim() == 200  # whole blocks of 100: so many are left that 50 are within
    assert system.log.facts().length == 100
    assert checkpoints(system.database)["slow"].lost_entries == 0


def test_what_a_group_holds_is_not_trimmed(system: System) -> None:
    member = system.member(Way.CLASSIC)
    streamer = system.streamer(Way.CLASSIC, keep=0)
    system.ride(*[1.0] * 200)
    run_dry(streamer)
    held = member._take()
    assert len(held) == 100
    # However far the checkpoints say one may go, an entry that is not acknowledged stays.
    assert system.log.trim(0, EntryID(2**60, 0)) == 0
    run_dry(system.member(Way.CLASSIC))
    member.tidy()
    streamer.trim()
    assert system.log.facts().length == 0
    assert system.state("group").ride_count == 200


def test_a_newcomer_waits_for_nothing_and_loses_nothing(system: System) -> None:
    """Before it reads a first entry the log is kept for it; what was before, a correction tells."""
    streamer = system.streamer(Way.IDMP, keep=0)
    system.ride(*[1.0] * 200)
    run_dry(streamer)
    run_dry(system.consumer(Way.IDMP, "old"))
    assert streamer.trim() == 200
    newcomer = system.consumer(Way.IDMP, "new")
    system.ride(*[1.0] * 100)
    run_dry(streamer)
    run_dry(system.consumer(Way.IDMP, "old"))
    assert streamer.trim() == 0
    run_dry(newcomer)
    run_dry(streamer)  # the correction that it asked for
    run_dry(newcomer)
    run_dry(system.consumer(Way.IDMP, "old"))
    assert system.findings(no_copies=True) == []
    assert checkpoints(system.database)["new"].lost_entries == 200


# Corrections


@pytest.mark.parametrize("way", RIGHT)
@pytest.mark.parametrize("damage", ["trimmed", "deleted", "emptied", "replaced", "set back"])
def test_what_somebody_removed_is_put_right(system: System, way: Way, damage: str) -> None:
    streamer, consumer, member = system.streamer(way), system.consumer(way), system.member(way)

    def all_run_dry() -> None:
        for worker in (streamer, consumer, member):
            run_dry(worker)

    if damage == "set back":  # once the clock was wrong, and IDs ran ahead of the time
        system.server.call("XADD", "rides", "99999999999999-0", "object", "clock")
    system.ride(*[1.5] * 5)
    all_run_dry()
    system.ride(*[2.5] * 7)
    run_dry(streamer)
    match damage:
        case "trimmed":
            system.server.call("XTRIM", "rides", "MAXLEN", "2")
        case "deleted":
            [*_, before_last, _] = system.log.all()
            system.server.call("XDEL", "rides", str(before_last.id))
        case "emptied":
            system.server.call("FLUSHALL")
        case "replaced" | "set back":
            system.server.call("FLUSHALL")
            system.ride(*[3.5] * 20)
            run_dry(streamer)
    all_run_dry()
    all_run_dry()
    assert system.findings() == []
    lost = {"trimmed": 5, "set back": 14}.get(damage, 1)
    assert checkpoints(system.database)["ada"].lost_entries == lost


@pytest.mark.parametrize("way", RIGHT)
def test_a_correction_comes_between_the_rides_that_it_covers_and_the_others(
    system: System, way: Way
) -> None:
    consumer, member = system.consumer(way), system.member(way)
    system.ride(1.0, 2.0)
    stage_correction(system.database)
    system.ride(4.0)
    crash(system.streamer(way, failing=True))  # and with it the correction is sent twice
    run_dry(system.streamer(way))
    once = [
        Ride(1, Decimal(1)),
        Ride(2, Decimal(2)),
        Correction(Decimal(3), 2, 2),
        Ride(3, Decimal(4)),
    ]
    assert system.entries() == (once if way is Way.IDMP else once * 2)
    for name, worker in (("ada", consumer), ("group", member)):
        register(system.database, name)
        save_state(system.database, State(name, 99, 0, Decimal(99)))  # a bug, or a bad night
        run_dry(worker)
        assert system.state(name)[:2] == (name, 3)
    assert system.findings() == []


def test_a_correction_that_comes_too_late_is_no_correction(system: System) -> None:
    """Somebody appended it past the staging table: by then rides after it have been counted."""
    consumer, member = system.consumer(Way.IDMP), system.member(Way.IDMP)
    system.ride(1.0, 2.0, 4.0)
    run_dry(system.streamer(Way.IDMP))
    run_dry(consumer)
    run_dry(member)
    member.tidy()
    fields = ("object", "total", "action", "correct")
    numbers = ("total_distance", "3", "ride_count", "2", "last_ride_id", "2")
    system.server.call("XADD", "rides", "*", *fields, *numbers)
    run_dry(consumer)
    run_dry(member)
    assert [state.total for state in states(system.database).values()] == [Decimal(7)] * 2


# Groups


@pytest.mark.parametrize("way", RIGHT)
@pytest.mark.parametrize("where", ["before committing", "before acknowledging"])
def test_a_member_that_comes_back_goes_on(system: System, way: Way, where: str) -> None:
    member = system.member(way)
    system.ride(1.0, 2.0, 3.0)
    run_dry(system.streamer(way))

    class Once(Failures):
        def may_strike(self, here: str) -> None:
            if here.startswith(where):
                raise SimulatedCrash(here)

    member.failures = Once()
    crash(member)
    assert system.log.group_facts("group") is not None
    assert look(system.database, system.log).lag("group") == 3
    run_dry(system.member(way))
    assert system.findings() == []


@pytest.mark.parametrize("way", RIGHT)
def test_a_member_that_does_not_come_back_is_replaced(system: System, way: Way) -> None:
    dead = system.member(way, "dead")
    system.ride(1.0, 2.0, 3.0)
    run_dry(system.streamer(way))
    assert len(dead._take()) == 3
    other = system.member(way, "other", dead_after_ms=1)
    wait_until(other.run_once)
    assert system.findings() == []


@pytest.mark.parametrize("way", RIGHT)
def test_a_member_that_was_held_for_dead_counts_nothing_twice(system: System, way: Way) -> None:
    slow, quick = system.member(way, "slow"), system.member(way, "quick", dead_after_ms=1)
    system.ride(1.0, 2.0)
    run_dry(system.streamer(way))
    held = slow._take()
    wait_until(quick.run_once)
    quick.tidy()  # the notes of these rides are gone, in the way that drops them
    slow._count(held)
    assert system.state("group")[:2] == ("group", 2)
    assert system.findings() == []


def notes(system: System) -> int:
    [count] = system.database.execute("SELECT count(*) FROM group_rides").fetchone() or (0,)
    return int(count)


def test_notes_are_dropped_as_soon_as_they_may(system: System) -> None:
    member, streamer = system.member(Way.IDMP), system.streamer(Way.IDMP)
    system.ride(*[1.0] * 10)
    run_dry(streamer)
    run_dry(member)
    member.tidy()
    assert notes(system) == 0


def test_classic_notes_stay_until_a_correction(system: System) -> None:
    member, streamer = system.member(Way.CLASSIC), system.streamer(Way.CLASSIC)
    system.ride(*[1.0] * 10)
    run_dry(streamer)
    run_dry(member)
    member.tidy()
    assert notes(system) == 10
    stage_correction(system.database)
    system.ride(1.0)
    run_dry(streamer)
    run_dry(member)
    assert notes(system) == 1
    assert system.findings() == []


@pytest.mark.parametrize("way", RIGHT)
def test_a_correction_while_others_are_at_work(system: System, way: Way) -> None:
    """One member holds rides from before and after a correction, another takes the correction."""
    slow, quick = system.member(way, "slow"), system.member(way, "quick")
    streamer = system.streamer(way)
    system.ride(1.0)
    run_dry(streamer)
    before = slow._take()
    system.ride(2.0)
    run_dry(streamer)
    assert quick.run_once() == 1
    quick.tidy()
    stage_correction(system.database)
    run_dry(streamer)
    correction = quick._take()
    system.ride(4.0)
    run_dry(streamer)
    after = slow._take()
    slow._count(after)
    quick._count(correction)
    slow._count(before)
    for entries in (before, after, correction):
        system.log.acknowledge("group", [entry.id for entry in entries])
    assert system.state("group").total == Decimal(7)
    assert system.findings() == []


# Reconciling


def test_every_disagreement_is_found(system: System) -> None:
    consumer = system.consumer(Way.IDMP)
    streamer = system.streamer(Way.IDMP)
    system.ride(1.0, 2.0)
    assert [finding.what for finding in system.findings()] == ["staged records left", "ada"]
    run_dry(streamer)
    assert [finding.found for finding in system.findings()] == [
        "-2 rides, -3 m against the database, 2 entries behind"
    ]
    run_dry(consumer)
    assert system.findings(no_copies=True) == []
    save_state(system.database, State("ada", 2, 0, Decimal("2.9999999999999999")))
    assert [finding.found for finding in system.findings()] == [
        "+0 rides, -0.0000000000000001 m against the database"
    ]
    save_state(system.database, State("ada", 2, 0, Decimal(3)))
    fields = ("object", "ride", "action", "create", "id", "2", "distance")
    system.server.call("XADD", "rides", "*", *fields, "2")
    run_dry(consumer)
    assert [finding.what for finding in system.findings(no_copies=True)] == [
        "ada",
        "copies in the stream",
    ]
    system.server.call("XADD", "rides", "*", *fields, "2.5")
    run_dry(consumer)
    found = {finding.what: finding.found for finding in system.findings()}
    assert found["rides in the stream that the database has not, or has otherwise"] == "1 of 4"
