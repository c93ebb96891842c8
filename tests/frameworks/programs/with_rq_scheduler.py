"""Jobs that rq-scheduler hands to rq. ``produce N`` plans some, ``work`` does them in time."""

from __future__ import annotations

import sys
from datetime import timedelta

import jobs_of_rq
from redis import Redis
from rq import Queue, SimpleWorker
from rq_scheduler import Scheduler
from told import PORT

connection = Redis(port=PORT)
queue = Queue("jobs", connection=connection)
scheduler = Scheduler(queue=queue, connection=connection)


def produce(count: int) -> None:
    for number in range(count):
        late = timedelta(milliseconds=100 if number % 4 == 0 else 0)
        scheduler.enqueue_in(late, jobs_of_rq.job, number, job_id=f"job-{number}")


def work() -> None:
    while True:
        scheduler.run(burst=True)
        SimpleWorker([queue], connection=connection).work(burst=True, logging_level="WARNING")


if sys.argv[1] == "produce":
    produce(int(sys.argv[2]))
else:
    work()
