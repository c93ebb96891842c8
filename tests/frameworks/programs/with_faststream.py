"""Messages of faststream on lists. ``produce N`` sends some, ``work`` takes them."""

from __future__ import annotations

import asyncio
import sys

from faststream import FastStream
from faststream.redis import ListSub, RedisBroker
from told import PORT, begin, tell

broker = RedisBroker(f"redis://127.0.0.1:{PORT}")
app = FastStream(broker)


@broker.subscriber(list=ListSub("jobs", polling_interval=0.05))
async def job(number: int) -> None:
    begin(number)
    tell(f"done {number}")


async def produce(count: int) -> None:
    async with broker:
        for number in range(count):
            await broker.publish(number, list="jobs")


if sys.argv[1] == "produce":
    asyncio.run(produce(int(sys.argv[2])))
else:
    asyncio.run(app.run())
