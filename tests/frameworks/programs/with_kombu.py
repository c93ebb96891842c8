"""Messages of kombu. ``produce N`` sends some, ``work`` takes and acknowledges them."""

from __future__ import annotations

import sys
from typing import Any

from kombu import Connection, Consumer, Queue
from told import PORT, begin, tell

QUEUE = Queue("jobs")


def done(body: Any, message: Any) -> None:
    begin(body["number"])
    tell(f"done {body['number']}")
    message.ack()


with Connection(f"redis://127.0.0.1:{PORT}/0") as connection:
    if sys.argv[1] == "produce":
        producer = connection.Producer()
        for number in range(int(sys.argv[2])):
            producer.publish(
                {"number": number}, routing_key="jobs", declare=[QUEUE], priority=number % 10
            )
    else:
        with Consumer(connection, [QUEUE], callbacks=[done], prefetch_count=2):
            while True:
                connection.drain_events()
