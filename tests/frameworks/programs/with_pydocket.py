"""Tasks of pydocket. ``produce N`` makes some, ``work`` does them."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime, timedelta

from docket import Docket, Worker
from told import PORT, begin, tell

URL = f"redis://127.0.0.1:{PORT}/0"


async def job(number: int) -> None:
    begin(number)
    tell(f"done {number}")


async def produce(count: int) -> None:
    async with Docket(name="jobs", url=URL) as docket:
        docket.register(job)
        for number in range(count):
            late = datetime.now(UTC) + timedelta(milliseconds=100 if number % 4 == 0 else 0)
            await docket.add(job, when=late, key=f"job-{number}")(number)
            await docket.add(job, when=late, key=f"job-{number}")(number)  # it is one task


async def work() -> None:
    async with Docket(name="jobs", url=URL) as docket:
        docket.register(job)
        async with Worker(docket, concurrency=1, redelivery_timeout=timedelta(seconds=1)) as worker:
            await worker.run_forever()


if sys.argv[1] == "produce":
    asyncio.run(produce(int(sys.argv[2])))
else:
    asyncio.run(work())
