"""A worker of a consumer group, run as a process of its own and killed at any time.

``group_worker.py PORT STREAM GROUP NAME IDLE_MS COUNT``: reads, claiming what has been idle for
``IDLE_MS``, does its work, which is to note the number of an entry in the stream ``done``, and
then acknowledges. It never ends by itself.
"""

from __future__ import annotations

import sys
from typing import Any

import redis


def main() -> None:
    port, stream, group, name, idle_ms, count = sys.argv[1:]
    client = redis.Redis(port=int(port), decode_responses=True)
    while True:
        reply: Any = client.xreadgroup(
            group,
            name,
            {stream: ">"},
            count=int(count),
            block=1000,
            claim_min_idle_time=int(idle_ms),
        )
        for _, entries in reply or []:
            for entry_id, fields, _, _ in entries:
                client.xadd("done", {"number": fields["number"], "by": name})
                client.xack(stream, group, entry_id)


if __name__ == "__main__":
    main()
