"""Messages of dramatiq. ``produce N`` sends some, ``work`` handles them."""

from __future__ import annotations

import sys
import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from told import PORT, begin, tell

broker = RedisBroker(port=PORT, heartbeat_timeout=1000, maintenance_chance=1_000_000)
dramatiq.set_broker(broker)


def wait_until_none_is_delayed() -> None:
    """The worker moves a delayed message in two steps. One killed between them moves it twice."""
    while broker.client.hlen("dramatiq:default.DQ.msgs"):
        time.sleep(0.01)


@dramatiq.actor(actor_name="job")
def job(number: int) -> None:
    wait_until_none_is_delayed()
    begin(number)
    tell(f"done {number}")


def work() -> None:
    worker = dramatiq.Worker(broker, worker_threads=1, worker_timeout=100)
    worker.start()
    while True:
        time.sleep(1)


if sys.argv[1] == "produce":
    for number in range(int(sys.argv[2])):
        job.send_with_options(args=(number,), delay=50 if number % 4 == 0 else None)
else:
    work()
