"""Make the tables of Rocket Rides in an empty database, and settle how copies are told."""

from __future__ import annotations

from collections.abc import Sequence

from rocket_rides import options
from rocket_rides.database import connect, create_schema
from rocket_rides.records import Way


def main(argv: Sequence[str] | None = None) -> None:
    """Make the tables."""
    arguments = options.parser(__doc__)
    arguments.add_argument("--way", choices=list(Way), default=Way.IDMP)
    given = arguments.parse_args(argv)
    with connect(given.dsn) as database:
        create_schema(database, Way(given.way))


if __name__ == "__main__":
    main()
