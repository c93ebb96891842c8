"""The live tail: all that comes, a sample where that is too much, and nothing lost in a pause."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from support.client import RawClient
from support.consoles import Console, Shop
from support.waiting import wait_until

pytestmark = pytest.mark.once


class Event(NamedTuple):
    kind: str
    value: Any
    cursor: str


def events(shop: Shop, place: str) -> Iterator[Event]:
    """The events of a tail, as they come."""
    with shop.console.visitor.stream("GET", place) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        fields = dict[str, str]()
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if line:
                fields[name] = value
            elif "event" in fields:
                yield Event(fields["event"], json.loads(fields["data"]), fields.get("id", ""))
                fields = {}


def shown_ids(found: list[Event]) -> list[str]:
    return [row[0] for each in found if each.kind == "entries" for row in each.value]


def add(client: RawClient, first: int, count: int, who: str = "ann") -> list[str]:
    ids = [f"9{n:06}-0" for n in range(first, first + count)]
    client.pipeline(*(("XADD", "new", each, "who", who, "n", 1) for each in ids))
    return ids


def tail_until(stream: Iterator[Event], wanted: str) -> list[Event]:
    found = list[Event]()
    while wanted not in shown_ids(found):
        found.append(next(stream))
    return found


def test_entries_come_in_order_and_a_pause_loses_none(shop: Shop) -> None:
    with shop.server.client() as client:
        first = add(client, 0, 5)
        stream = events(shop, f"events?key=new&after={first[1]}")
        found = tail_until(stream, first[-1])
        later = add(client, 5, 15)
        found += tail_until(stream, later[-1])
        assert shown_ids(found) == first[2:] + later
        cursor = found[-1].cursor
        stream.close()  # type: ignore[attr-defined]
        missed = add(client, 20, 30)
        stream = events(shop, f"events?key=new&after={cursor}")
        assert shown_ids(tail_until(stream, missed[-1])) == missed
        stream.close()  # type: ignore[attr-defined]
        client.call("DEL", "new")


def test_too_many_are_a_sample_that_says_how_many_are_left_out(shop: Shop) -> None:
    with shop.server.client() as client:
        first = add(client, 0, 1)
        stream = events(shop, "events?key=new&after=" + first[0])
        found = tail_until(stream, add(client, 1, 1)[0])  # from now on it knows how many there are
        cursor = found[-1].cursor
        stream.close()  # type: ignore[attr-defined]
        many = [each for n in range(20) for each in add(client, 2 + 500 * n, 500)]
        stream = events(shop, f"events?key=new&after={cursor}")
        found = tail_until(stream, many[-1])
        stream.close()  # type: ignore[attr-defined]
        passed = [each.value for each in found if each.kind == "passed"]
        assert len(passed) == 1
        count, after, before = passed[0]
        seen = shown_ids(found)
        if not cursor.endswith("/"):
            assert count == len(many) - len(seen)
        assert seen == sorted(seen)
        assert seen.index(after) + 1 == seen.index(before)
        assert len(seen) < 500
        client.call("DEL", "new")


def test_a_tail_says_from_where_on_it_shows_entries(shop: Shop) -> None:
    with shop.server.client() as client:
        before = add(client, 0, 2)
        stream = events(shop, "events?key=new")
        begun = next(stream)
        assert begun.kind == "begun"
        assert begun.cursor.startswith(before[-1])
        later = add(client, 2, 1)
        assert shown_ids(tail_until(stream, later[0])) == later
        stream.close()  # type: ignore[attr-defined]
        client.call("DEL", "new")


def test_a_filter_and_what_is_hostile(shop: Shop) -> None:
    with shop.server.client() as client:
        add(client, 0, 1)
        stream = events(shop, "events?key=new&after=9000000-0&field=who&value=bob")
        add(client, 1, 30)
        wanted = add(client, 40, 1, who="<b>bob\u2028\n\nevent: x")
        found = tail_until(stream, wanted[0])
        stream.close()  # type: ignore[attr-defined]
        assert shown_ids(found) == wanted
        [row] = [row for each in found if each.kind == "entries" for row in each.value]
        assert row[2][0] == ["who", "<b>bob\\u2028\n\nevent: x"]
        client.call("DEL", "new")


def test_a_console_ends_though_somebody_looks(our_shop: Shop, show: Callable[..., Console]) -> None:
    console = show(f"redis://127.0.0.1:{our_shop.server.port}")  # its log is looked at in the end
    stream = events(our_shop._replace(console=console), "events?key=orders&after=0")
    assert next(stream).kind == "entries"
    console.process.terminate()
    assert console.process.wait(60) in (0, -signal.SIGTERM)
    with pytest.raises(httpx.HTTPError):
        console.visitor.get("./")


def test_viewers_are_counted(our_shop: Shop) -> None:
    streams = [events(our_shop, "events?key=orders&after=0") for _ in range(16)]
    for stream in streams:
        assert next(stream).kind == "entries"
    visitor = our_shop.console.visitor
    assert visitor.get("events?key=orders").status_code == 503
    for stream in streams:
        stream.close()  # type: ignore[attr-defined]

    def is_free() -> bool:
        with visitor.stream("GET", "events?key=orders&after=0") as answer:
            return answer.status_code == 200

    wait_until(is_free)
    assert visitor.get("events?key=orders&after=soon").status_code == 400
