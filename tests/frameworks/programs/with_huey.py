"""Tasks of huey, with priorities. ``produce N`` makes some, ``work`` does them."""

from __future__ import annotations

import sys

from huey import PriorityRedisHuey
from told import PORT, begin, tell

huey = PriorityRedisHuey("jobs", port=PORT)


@huey.task()
def job(number: int) -> int:
    begin(number)
    tell(f"done {number}")
    return number * 2


def produce(count: int) -> None:
    for number in range(count):
        if number % 4 == 0:
            job.schedule((number,), delay=0.1)
        else:
            job(number, priority=number % 5)
    with huey.lock_task("produce"):
        pass


if sys.argv[1] == "produce":
    produce(int(sys.argv[2]))
else:
    huey.create_consumer(workers=1, scheduler_interval=1, check_worker_health=False).run()
