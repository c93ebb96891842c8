"""Tasks of taskiq on a stream. ``produce N`` makes some, ``work`` does them."""

from __future__ import annotations

import asyncio
import sys

from taskiq.api import run_receiver_task
from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker
from told import PORT, begin, tell

URL = f"redis://127.0.0.1:{PORT}"
# What a worker that is gone had taken is taken back by another one, under a lock; but only behind
# new tasks, so that it may not take all of them at once.
broker = RedisStreamBroker(
    URL, idle_timeout=500, unacknowledged_lock_timeout=1, xread_count=1, socket_timeout=None
).with_result_backend(RedisAsyncResultBackend(URL))


@broker.task(task_name="job")
async def job(number: int) -> int:
    begin(number)
    tell(f"done {number}")
    return number * 2


async def produce(count: int) -> None:
    await broker.startup()
    for number in range(count):
        await job.kiq(number)
    await broker.shutdown()


async def work() -> None:
    await broker.startup()
    await run_receiver_task(broker, max_async_tasks=1, max_prefetch=0)


if sys.argv[1] == "produce":
    asyncio.run(produce(int(sys.argv[2])))
else:
    asyncio.run(work())
