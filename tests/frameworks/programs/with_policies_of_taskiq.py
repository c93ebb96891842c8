"""Tasks of taskiq on a stream with policies. ``produce N`` makes some, ``work`` does them."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

from redis.asyncio import Redis
from taskiq import Context, TaskiqDepends, TaskiqMessage
from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker
from told import PORT, begin, fail, tell

URL = f"redis://127.0.0.1:{PORT}"
# ``idle_timeout`` stays ten minutes: until then its own XAUTOCLAIM takes nothing. A worker reads no
# more than it can begin, or what kills it would take others along.
broker = RedisStreamBroker(
    URL, queue_name="jobs", consumer_group_name="workers", xread_count=1, socket_timeout=None
)


# A task that has raised is done for taskiq, unless it is to acknowledge by itself.
@broker.task(task_name="job", ack_type="manual")
async def job(number: int, context: Annotated[Context, TaskiqDepends()]) -> None:
    begin(number)
    fail(number)
    await asyncio.sleep(0.05)
    tell(f"done {number}")
    await context.ack()


async def produce(count: int, customers: int = 0) -> None:
    """Taskiq makes entries of one field, but reads those of more: with customers there are two."""
    await broker.startup()
    async with Redis(port=PORT) as client:
        for number in range(count):
            if customers:
                data = broker.formatter.dumps(message_of(number)).message
                await client.xadd("jobs", {"data": data, "customer": number % customers})
            else:
                await job.kiq(number)
    await broker.shutdown()


def message_of(number: int) -> TaskiqMessage:
    name, labels = job.task_name, job.labels
    return TaskiqMessage(
        task_id=f"{number}", task_name=name, labels=labels, args=[number], kwargs={}
    )


async def work(at_once: int = 1) -> None:
    await broker.startup()
    await run_receiver_task(broker, max_async_tasks=at_once, max_prefetch=0)


if sys.argv[1] == "produce":
    asyncio.run(produce(*map(int, sys.argv[2:])))
else:
    asyncio.run(work(*map(int, sys.argv[2:])))
