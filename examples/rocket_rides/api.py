"""The API: ``POST /rides`` with a distance writes a ride, and stages the record of it.

Both rows are written in one serializable transaction, so the log is told of a ride if and only if
there is one. The API does not know the stream: a server of it that is away costs no ride.

The distance comes as a form (``distance=12.5``) or as JSON (``{"distance": 12.5}``). A client that
got no answer may send the same ``Idempotency-Key`` again: it gets its ride, not a second one.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

import psycopg
import uvicorn
from psycopg import AsyncConnection, IsolationLevel
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from rocket_rides import options
from rocket_rides.database import ALL_DIGITS, CREATE_RIDE, FIND_RIDE

MOST_METRES = 1_000_000.0
MOST_BYTES = 64 * 1024
MOST_KEY_LETTERS = 200
MOST_CONNECTIONS = 8
MOST_ATTEMPTS = 10  # more than there are connections, should all of them be broken
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)

Connection = AsyncConnection[tuple[Any, ...]]


class Refused(Exception):
    """The request is wrong: a 4xx."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


# What the client sends


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request is too large.")
    return bytes(body)


async def _parameters(request: Request) -> dict[str, object]:
    """The parameters of a form or of a JSON object."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await _body(request)
    try:
        text = body.decode()
        if kind == "application/json":
            parsed = json.loads(text)
        elif kind in ("application/x-www-form-urlencoded", ""):
            form = parse_qs(text, keep_blank_values=True, max_num_fields=100)
            parsed = {name: values[-1] for name, values in form.items()}
        else:
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send a form, or JSON.")
    except (ValueError, RecursionError):
        raise Refused(HTTPStatus.BAD_REQUEST, "The request cannot be read.") from None
    if not isinstance(parsed, dict):
        raise Refused(HTTPStatus.BAD_REQUEST, "Send a JSON object.")
    return parsed


def _distance(parameters: dict[str, object]) -> float:
    given = parameters.get("distance")
    if given is None or given == "":
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "Please specify 'distance'.")
    distance = math.nan
    if isinstance(given, str) and _NUMBER.fullmatch(given):
        distance = float(given)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        distance = float(given) if abs(given) <= MOST_METRES else math.inf
    if not 0 < distance <= MOST_METRES:
        raise Refused(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"'distance' must be a number of metres above 0, and at most {MOST_METRES:,.0f}.",
        )
    return distance


def _request_id(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= MOST_KEY_LETTERS and key.isprintable()):
        raise Refused(
            HTTPStatus.BAD_REQUEST,
            f"'Idempotency-Key' must have 1 to {MOST_KEY_LETTERS} letters.",
        )
    return key


# What it gets


class Rides:
    """The application.

    Args:
        late: share of transactions that stay open for a while after drawing their id.
    """

    def __init__(self, dsn: str, late: float = 0.0) -> None:
        self.dsn = dsn
        self.late = late
        self._pool: AsyncConnectionPool[Connection] | None = None

    def application(self) -> Starlette:
        """The ASGI application."""
        return Starlette(
            routes=[
                Route("/rides", self.create, methods=["POST"]),
                Route("/health", self.health, methods=["GET"]),
            ],
            lifespan=self._lifespan,
            exception_handlers={
                Refused: _refused,
                HTTPException: _http_error,
                psycopg.OperationalError: _unavailable,
                PoolTimeout: _unavailable,
            },
        )

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        async with AsyncConnectionPool(
            self.dsn,
            connection_class=Connection,
            kwargs={"autocommit": True, "connect_timeout": 5},
            min_size=1,
            max_size=MOST_CONNECTIONS,
            timeout=5,
            configure=_configure,
            open=False,
        ) as self._pool:
            yield

    async def health(self, _: Request) -> JSONResponse:
        """Return whether the API runs; it may, while its database does not."""
        return JSONResponse({"status": "ok"})

    async def create(self, request: Request) -> JSONResponse:
        """``POST /rides``."""
        distance = _distance(await _parameters(request))
        request_id = _request_id(request)
        ride_id = await self._create(distance, request_id)
        return JSONResponse(
            {
                "id": ride_id,
                "distance": distance,
                "message": f"Your pilot is on the way, for {distance:.1f} m.",
            },
            status_code=HTTPStatus.CREATED,
        )

    async def _create(self, distance: float, request_id: str | None) -> int:
        """Write the ride; the id of it, or of the one that the same request made before."""
        assert self._pool is not None
        for attempt in range(MOST_ATTEMPTS):
            committing = False
            async with self._pool.connection() as database:
                try:
                    async with database.transaction():
                        ride_id = await self._insert(database, distance, request_id)
                        committing = True
                    return ride_id
                except psycopg.errors.SerializationFailure:
                    pass  # the database has chosen another transaction to go first
                except psycopg.OperationalError:
                    if committing:
                        raise  # nobody knows whether there is a ride; only the client may ask again
            await asyncio.sleep(random.uniform(0, 0.001 * 2**attempt))
        raise psycopg.OperationalError("no transaction came to its end")

    async def _insert(self, database: Connection, distance: float, request_id: str | None) -> int:
        given = {"distance": distance, "request_id": request_id}
        row = await (await database.execute(CREATE_RIDE, given)).fetchone()
        if row is not None:
            if random.random() < self.late:
                await asyncio.sleep(random.uniform(0.01, 0.3))
            return int(row[0])
        row = await (await database.execute(FIND_RIDE, given)).fetchone()
        if row is None:  # it came into being after our transaction began
            raise psycopg.errors.SerializationFailure
        if row[1] != distance:
            raise Refused(
                HTTPStatus.CONFLICT, "'Idempotency-Key' was used for another ride already."
            )
        return int(row[0])


async def _configure(database: Connection) -> None:
    await database.set_isolation_level(IsolationLevel.SERIALIZABLE)
    await database.execute(ALL_DIGITS)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return JSONResponse({"error": error.reason}, status_code=error.status)


async def _http_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def _unavailable(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse(
        {"error": "The database cannot be reached. Try again."},
        status_code=HTTPStatus.SERVICE_UNAVAILABLE,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until told to stop."""
    arguments = options.parser(__doc__)
    arguments.add_argument("--host", default="127.0.0.1")
    arguments.add_argument("--port", type=int, default=8080)
    arguments.add_argument(
        "--late",
        type=options.probability,
        default=0.1,
        help="share of rides whose transaction stays open for a while",
    )
    given = arguments.parse_args(argv)
    uvicorn.run(
        Rides(given.dsn, given.late).application(),
        host=given.host,
        port=given.port,
        log_level="warning",
        access_log=False,
    )


if __name__ == "__main__":
    main()
