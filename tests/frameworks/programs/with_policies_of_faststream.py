"""Messages of faststream on a stream with policies: ``produce N`` sends, ``work`` takes them."""

from __future__ import annotations

import asyncio
import os
import sys

from faststream import AckPolicy, FastStream
from faststream.redis import RedisBroker, StreamSub
from redis.asyncio import Redis
from told import PORT, begin, fail, tell

broker = RedisBroker(f"redis://127.0.0.1:{PORT}")
# It reads by ``>`` alone: with ``min_idle_time`` it would only claim.
stream = StreamSub("jobs", group="workers", consumer=f"worker-{os.getpid()}", max_records=1)


async def job(number: int, customer: int = 0) -> None:
    begin(number)
    fail(number)
    await asyncio.sleep(0.05)
    tell(f"done {number}")


async def produce(count: int, customers: int = 0) -> None:
    """Faststream makes entries of one field, but takes the fields of others as a message."""
    async with broker, Redis(port=PORT) as client:
        for number in range(count):
            if customers:
                await client.xadd("jobs", {"number": number, "customer": number % customers})
            else:
                await broker.publish({"number": number}, stream="jobs")


async def work(at_once: int = 1) -> None:
    # What has failed stays unacknowledged, and that is all that it does about it.
    policy = AckPolicy.NACK_ON_ERROR
    broker.subscriber(stream=stream, ack_policy=policy, max_workers=at_once)(job)
    await FastStream(broker).run()


if sys.argv[1] == "produce":
    asyncio.run(produce(*map(int, sys.argv[2:])))
else:
    asyncio.run(work(*map(int, sys.argv[2:])))
