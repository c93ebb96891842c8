"""Jobs of rq. ``produce N`` makes some, ``work`` does them."""

from __future__ import annotations

import sys

import jobs_of_rq
from redis import Redis
from rq import Queue, SimpleWorker
from told import PORT

connection = Redis(port=PORT)
queue = Queue("jobs", connection=connection)


def produce(count: int) -> None:
    for number in range(count):
        # Each fourth one has to wait for the second, which no worker holds.
        after = "job-1" if number % 4 == 3 else None
        queue.enqueue(jobs_of_rq.job, number, job_id=f"job-{number}", depends_on=after)


if sys.argv[1] == "produce":
    produce(int(sys.argv[2]))
else:
    SimpleWorker([queue], connection=connection).work()
