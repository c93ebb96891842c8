"""What every program of the example is told: where the database and the log are."""

from __future__ import annotations

import argparse
import os

STREAM = "rocket-rides"


def parser(description: str | None) -> argparse.ArgumentParser:
    """An argument parser with the options all programs share.

    The addresses may come from the environment, which does not show passwords to ``ps``.
    """
    arguments = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    arguments.add_argument(
        "--dsn", help="PostgreSQL (or ROCKET_RIDES_DSN)", default=argparse.SUPPRESS
    )
    arguments.add_argument(
        "--redis-url",
        help="server of the log (or ROCKET_RIDES_REDIS_URL)",
        default=argparse.SUPPRESS,
    )
    arguments.add_argument(
        "--stream",
        help="key of the log (or ROCKET_RIDES_STREAM)",
        default=os.environ.get("ROCKET_RIDES_STREAM", STREAM),
    )
    arguments.set_defaults(
        dsn=os.environ.get("ROCKET_RIDES_DSN", "dbname=rocket_rides"),
        redis_url=os.environ.get("ROCKET_RIDES_REDIS_URL", "redis://127.0.0.1:6379"),
    )
    return arguments


def probability(text: str) -> float:
    """A number from 0 to 1, as an argument."""
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value
