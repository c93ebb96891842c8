"""Tasks of taskiq on a list. ``produce N`` makes some, ``work`` does them."""

from __future__ import annotations

import asyncio
import sys

from taskiq.api import run_receiver_task
from taskiq_redis import ListQueueBroker, RedisAsyncResultBackend
from told import PORT, begin, tell

URL = f"redis://127.0.0.1:{PORT}"
# Its worker waits without an end, which redis-py ends after a while unless told.
broker = ListQueueBroker(URL, socket_timeout=None).with_result_backend(RedisAsyncResultBackend(URL))


@broker.task(task_name="job")
async def job(number: int) -> int:
    begin(number)
    tell(f"done {number}")
    return number * 2


async def produce(count: int) -> None:
    await broker.startup()
    tasks = [await job.kiq(number) for number in range(count)]
    await broker.shutdown()
    tell(f"produced {len(tasks)}")


async def work() -> None:
    await broker.startup()
    await run_receiver_task(broker, max_async_tasks=1, max_prefetch=0)


if sys.argv[1] == "produce":
    asyncio.run(produce(int(sys.argv[2])))
else:
    asyncio.run(work())
