"""The simulator: people who want to fly. Random distances, and now and then nonsense.

A request without an answer is sent again under the same ``Idempotency-Key`` until there is one, so
it makes one ride. With ``--ledger`` every answered ride is noted in a file: what the API has
promised, to be compared with what the database holds.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import httpx

from rocket_rides import options
from rocket_rides.running import say

NONSENSE = ("", "far", "-1", "0", "nan", "inf", "1e999", "12,5", "0x10")


class Simulator:
    """A number of customers.

    Args:
        ledger: where promised rides are noted, one JSON object a line.
        rides_per_s: for all customers together.
        nonsense: share of requests that the API has to refuse.
    """

    def __init__(
        self, url: str, ledger: TextIO | None, rides_per_s: float, customers: int, nonsense: float
    ) -> None:
        self.url = url
        self.ledger = ledger
        self.customers = customers
        self.pause_s = customers / rides_per_s
        self.nonsense = nonsense
        self.stopping = False
        self.promised = 0

    async def run(self) -> None:
        """Fly until ``stopping``, and then until every request has an answer."""
        async with httpx.AsyncClient(base_url=self.url, timeout=10) as client:
            await asyncio.gather(*(self._customer(client) for _ in range(self.customers)))

    async def _customer(self, client: httpx.AsyncClient) -> None:
        while not self.stopping:
            await asyncio.sleep(random.expovariate(1 / self.pause_s))
            if random.random() < self.nonsense:
                await self._talk_nonsense(client)
            else:
                await self._fly(client, random.uniform(5, 1000))

    async def _fly(self, client: httpx.AsyncClient, distance: float) -> None:
        key = str(uuid.uuid4())
        pause_s = 0.05
        while True:
            try:
                answer = await client.post(
                    "/rides", data={"distance": repr(distance)}, headers={"Idempotency-Key": key}
                )
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code == httpx.codes.CREATED:
                break
            if answer is not None and answer.status_code < 500:
                raise RuntimeError(f"{distance!r} was refused: {answer.text}")
            await asyncio.sleep(pause_s)
            pause_s = min(1.0, pause_s * 2)
        self.promised += 1
        if self.ledger is not None:
            line = {"id": answer.json()["id"], "distance": distance}
            self.ledger.write(json.dumps(line) + "\n")
            self.ledger.flush()

    async def _talk_nonsense(self, client: httpx.AsyncClient) -> None:
        try:
            answer = await client.post("/rides", data={"distance": random.choice(NONSENSE)})
        except httpx.TransportError:
            return
        if answer.status_code < 400:
            raise RuntimeError(f"nonsense was taken for a ride: {answer.text}")


async def _run(simulator: Simulator) -> None:
    def stop() -> None:
        simulator.stopping = True

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop)
    loop.add_signal_handler(signal.SIGINT, stop)
    await simulator.run()
    say(f"{simulator.promised} rides")


def main(argv: Sequence[str] | None = None) -> None:
    """Simulate until told to stop."""
    arguments = options.parser(__doc__)
    arguments.add_argument("--url", default="http://127.0.0.1:8080", help="the API")
    arguments.add_argument("--rate", type=float, default=50.0, help="rides a second")
    arguments.add_argument("--customers", type=int, default=8, help="how many at the same time")
    arguments.add_argument(
        "--nonsense", type=options.probability, default=0.05, help="share of bad requests"
    )
    arguments.add_argument("--ledger", type=Path, help="file to note promised rides in")
    given = arguments.parse_args(argv)
    ledger = given.ledger.open("a") if given.ledger else None
    asyncio.run(_run(Simulator(given.url, ledger, given.rate, given.customers, given.nonsense)))


if __name__ == "__main__":
    main()
