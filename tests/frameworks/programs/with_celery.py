"""Tasks of Celery. ``produce N`` makes some, ``work`` does them."""

from __future__ import annotations

import sys

from celery import Celery, chord
from told import PORT, begin, tell

URL = f"redis://127.0.0.1:{PORT}/0"
app = Celery("jobs", broker=URL, backend=URL)
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    broker_transport_options={"visibility_timeout": 2, "priority_steps": [0, 5]},
    broker_connection_retry_on_startup=True,
    worker_send_task_events=False,
)


@app.task(name="job")
def job(number: int) -> int:
    begin(number)
    tell(f"done {number}")
    return number * 2


@app.task(name="add")
def add(numbers: list[int]) -> int:
    return sum(numbers)


def produce(count: int) -> None:
    half = count // 2
    chord([job.s(number) for number in range(half)])(add.s())
    for number in range(half, count):
        job.apply_async((number,), priority=number % 10, countdown=0.1 if number % 4 == 0 else None)


if sys.argv[1] == "produce":
    produce(int(sys.argv[2]))
else:
    app.worker_main(["worker", "--pool=solo", "--loglevel=warning", "--without-gossip"])
