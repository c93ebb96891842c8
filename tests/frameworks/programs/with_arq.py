"""Jobs of arq. ``produce N`` makes some, ``work`` does them."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from arq import create_pool, func
from arq.connections import RedisSettings
from arq.worker import Worker
from told import PORT, begin, tell


async def job(context: dict[str, Any], number: int) -> int:
    begin(number)
    tell(f"done {number}")
    return number * 2


async def produce(count: int) -> None:
    pool = await create_pool(RedisSettings(port=PORT))
    for number in range(count):
        await pool.enqueue_job("job", number, _job_id=f"job-{number}")
        # The same once more: refused, because there is a job of this name.
        assert await pool.enqueue_job("job", number, _job_id=f"job-{number}") is None
    await pool.aclose()


def work() -> None:
    worker = Worker(
        [func(job, name="job")], redis_settings=RedisSettings(port=PORT), poll_delay=0.05
    )
    worker.in_progress_timeout_s = 1  # after which a job of a worker that is gone is done again
    worker.run()


if sys.argv[1] == "produce":
    asyncio.run(produce(int(sys.argv[2])))
else:
    work()
