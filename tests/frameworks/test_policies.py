"""Frameworks that read streams by groups, and one XPOLICY of which their code knows nothing.

They read by ``>`` and acknowledge. What else they can do about what was not acknowledged is set so
that it does nothing, as their programs say.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from frameworks.conftest import FOLDER
from frameworks.workplace import PATIENCE_S, Workplace

from support.process import ServerProcess

pytestmark = [pytest.mark.once, pytest.mark.slow]

# Each, and the field by which its messages can be kept in order.
FRAMEWORKS = {"taskiq": "customer", "faststream": "customer", "moleculer": "headers"}
JOBS = 5
WAIT_MS = 2000
DELAY_MS = 300
LIMIT = 3
POLICY = (
    f"ack-wait {WAIT_MS}ms retry-delay {DELAY_MS}ms retry-delay-type all "
    f"delivery-limit {LIMIT} dead-letter-key %k.dead order-key"
)
MARK = b"__dlq.errors."


class Shop(Workplace):
    """Where a framework works on the stream ``jobs``, of which group ``workers`` has the policy.

    Args:
        order_key: a field of its messages.
    """

    def __init__(
        self,
        server: ServerProcess,
        order_key: str,
        command: list[Path | str],
        told: Path,
        **environment: str,
    ) -> None:
        super().__init__(command, server.port, told, **environment)
        self.server = server
        server.call("XGROUP", "CREATE", "jobs", "workers", "0", "MKSTREAM")
        server.call("XPOLICY", "SET", "jobs", "GROUP", "workers", *POLICY.split(), order_key)

    def all_is_acknowledged(self) -> bool:
        """Whether the group holds no entry, and has none to come."""
        groups = self.server.call("XINFO", "GROUPS", "jobs")
        assert isinstance(groups, list)
        figures = dict(zip(groups[0][::2], groups[0][1::2], strict=True))
        return (figures[b"pending"], figures[b"lag"]) == (0, 0)

    def letters(self) -> list[dict[bytes, bytes]]:
        """The dead letters: the fields of each."""
        entries = self.server.call("XRANGE", "jobs.dead", "-", "+")
        assert isinstance(entries, list)
        return [dict(zip(row[::2], row[1::2], strict=True)) for _, row in entries]


@pytest.fixture(params=FRAMEWORKS)
def shop(
    request: pytest.FixtureRequest,
    python_with: Callable[[str], Path],
    fresh_server: Callable[..., ServerProcess],
    tmp_path: Path,
) -> Shop:
    """That of each framework."""
    name = request.param
    more: dict[str, str] = {}
    if name == "moleculer":
        more["NODE_PATH"] = str(request.getfixturevalue("node_modules"))
        command: list[Path | str] = ["node", FOLDER / f"node/with_policies_of_{name}.js"]
    else:
        command = [python_with(name), FOLDER / f"programs/with_policies_of_{name}.py"]
    return Shop(fresh_server(), FRAMEWORKS[name], command, tmp_path / "told", **more)


def wait_until(is_so: Callable[[], bool], shop: Shop) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, shop.events()
        time.sleep(0.05)


@pytest.mark.parametrize("fails", ["raises", "kills"])
def test_a_job_that_nobody_can_do_ends_as_a_dead_letter(shop: Shop, fails: str) -> None:
    """It is tried as often as it may be, each time later, while all others are done once.

    A worker that it kills is started again. When it can be done it is put back, and is.
    """
    shop.produce(JOBS)
    workers = 0
    while not shop.all_is_acknowledged():
        workers += 1
        with shop.worker(fails=fails) as worker:
            wait_until(lambda: worker.poll() is not None or shop.all_is_acknowledged(), shop)
    assert workers == (1 if fails == "raises" else LIMIT + 1)
    assert shop.numbers("begun").count(0) == LIMIT
    assert sorted(shop.numbers("done")) == list(range(1, JOBS))
    [letter] = shop.letters()
    assert letter[MARK + b"message"] == b"delivery limit"
    assert letter[MARK + b"delivery.count"] == b"%d" % LIMIT
    assert (letter[MARK + b"topic"], letter[MARK + b"group"]) == (b"jobs", b"workers")
    took_ms = int(letter[MARK + b"last.delivery.ms"]) - int(letter[MARK + b"first.delivery.ms"])
    assert took_ms >= (LIMIT - 1) * (WAIT_MS + DELAY_MS)

    shop.server.call("XREDRIVE", "jobs.dead")
    with shop.worker():
        wait_until(shop.all_is_acknowledged, shop)
    assert sorted(shop.numbers("done")) == list(range(JOBS))
    assert shop.letters() == []


def test_what_a_killed_worker_had_begun_is_done_by_another(shop: Shop) -> None:
    """Which reads that as it reads all else; each job is done once."""
    shop.produce(JOBS)
    with shop.worker(holds=True) as worker:
        shop.wait_for("begun", 1)
        worker.kill()
        worker.wait()
    with shop.worker():
        wait_until(shop.all_is_acknowledged, shop)
    assert sorted(shop.numbers("begun")) == [0, *range(JOBS)]
    assert sorted(shop.numbers("done")) == list(range(JOBS))
    assert shop.letters() == []


def test_jobs_of_one_customer_are_done_in_their_order(shop: Shop) -> None:
    """Never are two of them under way, at whatever worker; those of others are."""
    customers, jobs = 3, 30
    shop.produce(jobs, customers)
    with shop.worker(2), shop.worker(2):
        wait_until(shop.all_is_acknowledged, shop)
    under_way: dict[int, int] = {}  # by customer
    most = 0
    for what, number in shop.events():
        if what == "begun":
            assert under_way.setdefault(number % customers, number) == number
            most = max(most, len(under_way))
        else:
            del under_way[number % customers]
    assert most > 1
    done = shop.numbers("done")
    for customer in range(customers):
        own = [number for number in done if number % customers == customer]
        assert own == list(range(customer, jobs, customers))
