"""Tasks of streaQ, with priorities and delays. ``produce N`` makes some, ``work`` does them."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta

from streaq import Worker
from told import PORT, begin, tell

# What a worker that is gone had taken is taken back by another one after a second.
worker = Worker(
    redis_url=f"redis://127.0.0.1:{PORT}",
    concurrency=1,
    idle_timeout=1,
    priorities=["high", "low"],
)


@worker.task(name="job")
async def job(number: int) -> int:
    begin(number)
    tell(f"done {number}")
    return number * 2


async def produce(count: int) -> None:
    async with worker:
        for number in range(count):
            late = timedelta(milliseconds=100) if number % 4 == 0 else None
            await job.enqueue(number).start(priority="low" if number % 2 else "high", delay=late)


if sys.argv[1] == "produce":
    asyncio.run(produce(int(sys.argv[2])))
else:
    worker.run_sync()
