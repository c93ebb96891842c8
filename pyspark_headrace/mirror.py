"""A query's progress as a consumer group, so that XINFO GROUPS and its readers show Spark's lag."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyspark_headrace.client import Words
from pyspark_headrace.errors import ServerError
from pyspark_headrace.ids import format_id
from pyspark_headrace.offsets import Position
from pyspark_headrace.resp import Link

log = logging.getLogger("pyspark_headrace")


def mirror(link: Link, group: str, positions: Mapping[str, Position]) -> None:
    """Set a group's position in every stream to where a query stands; make it where it is missing.

    A group is only a mirror: nobody reads by it, and when it cannot be set the query goes on.
    """
    commands: list[Words] = []
    for key, position in positions.items():
        place = format_id(position.id)
        rank: list[str | int] = ["ENTRIESREAD", position.n] if position.n >= 0 else []
        commands.append(("XGROUP", "CREATE", key, group, place, *rank))
        commands.append(("XGROUP", "SETID", key, group, place, *rank))
    replies = link.pipeline(commands)
    for number, reply in enumerate(replies):
        if isinstance(reply, ServerError) and reply.code != "BUSYGROUP":
            log.warning("mirrorGroup %s: %s: %s", group, commands[number][2], reply)
