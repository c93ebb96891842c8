"""The pages: what each of them asks, and what it shows. ``app`` says at which URL."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

from headrace.console import text
from headrace.console.catalogue import SORTS, STUCK_MS, Catalogue, Group, Row
from headrace.console.changes import Plan, Rejected, counted, ticket
from headrace.console.guard import Guard, Refused
from headrace.console.link import About, Error, Link, Unreachable, info_fields, pairs
from headrace.console.nodes import cluster_table, regions_table
from headrace.console.streams import (
    LOOK,
    Entry,
    Filter,
    Page,
    Pending,
    entries_of,
    read_entry,
    read_letters,
    read_page,
    read_pending,
)
from headrace.console.tail import VIEWERS, Tail

HERE: Final = Path(__file__).parent
ROWS: Final = 100  # streams on a page
FIRST_LOOK_S: Final = 0.6
FIELDS: Final = 200  # of an entry on a page
CUT: Final = 2_000  # bytes of a value in a table
TEXT: Final = 200_000  # characters of an entry as JSON or text
HEX: Final = 4_096
EDITABLE_BYTES: Final = 200_000
PREVIEW: Final = 160  # bytes of a value in a list
PREVIEWED: Final = 30  # pending entries that are shown with what is in them
PREVIEWED_BYTES: Final = 20_000  # unless they are larger than this on average
CONSUMERS: Final = 500
LOOKS: Final = (2_000, 20_000, 100_000)  # pending entries that are looked at
_OF_STREAM: Final = (b"max-len", b"max-bytes", b"max-age", b"retention", b"overflow")
_SUGGESTED: Final = (b"ack-wait", b"30s", b"delivery-limit", b"5", b"dead-letter-key")
_ENDS: Final = {"newest": "+", "oldest": "-"}

Policy = tuple[bytes, bytes, str]


@dataclass(frozen=True, slots=True)
class Options:
    """How the console was started."""

    read_only: bool = False
    hide_values: bool = False


class Query:
    """Reads what a URL asks for; keys and groups are bytes."""

    def __init__(self, request: Request) -> None:
        self.raw: Final = request.scope["query_string"].decode("ascii", "replace")
        self._found: Final = parse_qs(
            self.raw, keep_blank_values=True, errors="surrogateescape", max_num_fields=50
        )

    def one(self, name: str) -> str:
        """Return a value as text; empty if it is not there."""
        return self.bytes(name).decode("utf-8", "replace")

    def bytes(self, name: str) -> bytes:
        """Return a value as it was sent; empty if it is not there.

        A form can send text alone, so there ``k`` is the key as a part of a URL.
        """
        if name == "key" and "k" in self._found:
            return text.from_url(self._found["k"][0])
        found: str = self._found.get(name, [""])[0]
        return found.encode("utf-8", "surrogateescape")

    def number(self, name: str, most: int) -> int:
        """Return a number from 0 to ``most``; 0 if there is none."""
        found = self.one(name)
        return min(int(found), most) if found.isdecimal() and len(found) < 19 else 0


class Pages:
    """The pages of one console.

    Attributes:
        is_ending: whether the console is about to end, so that live tails end before it.
    """

    def __init__(self, link: Link, catalogue: Catalogue, options: Options) -> None:
        self.link: Final = link
        self.catalogue: Final = catalogue
        self.options: Final = options
        self._notes: Final[OrderedDict[str, tuple[str, bool]]] = OrderedDict()
        self._viewers = 0
        self.is_ending: Callable[[], bool] = lambda: False
        self._templates: Final = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(
            shown=text.shown,
            url=text.to_url,
            age=text.age,
            size=text.size,
            rate=text.rate,
            time=text.time_of,
            ms=text.ms_of,
            escape_bytes=text.escape,
            preview=lambda value: text.shown(value, PREVIEW),
            number=lambda value: text.UNKNOWN if value is None else f"{value:,}",
        )
        self._templates.globals.update(
            now_ms=lambda: time.time() * 1000,
            now_s=time.monotonic,
            counted=counted,
            ticket=ticket,
            options=options,
            server=link.shown,
            stuck_ms=STUCK_MS,
            cut=CUT,
        )

        for name in self._templates.list_templates():  # now, and not when somebody waits
            self._templates.get_template(name)

    # What all pages have

    def note(self, said: str, is_bad: bool = False) -> str:
        """Keep what has happened for the next page; return the token that finds it."""
        token = secrets.token_urlsafe(9)
        self._notes[token] = (said, is_bad)
        if len(self._notes) > 200:
            self._notes.popitem(last=False)
        return token

    def render(
        self, request: Request, template: str, status: int = 200, /, **values: Any
    ) -> HTMLResponse:
        """Return a page."""
        guard: Guard = request.scope["guard"]
        values = {
            "query": Query(request),
            "token": guard.token(request),
            "has_password": guard.has_password,
            "note": self._notes.get(request.query_params.get("note", "")),
            "about": None,
            **values,
        }
        return HTMLResponse(self._templates.get_template(template).render(values), status)

    def failure(self, request: Request, why: Exception) -> Response:
        """Return the page of an error that ends a request."""
        if isinstance(why, Unreachable):
            title, status = "The server does not answer", 503
            said = f"{self.link.shown}: {why}. This page tries again by itself."
        elif isinstance(why, Refused):
            title, status, said = "Refused", why.status, str(why)
        elif isinstance(why, Error):
            title, status, said = "The server refuses", 403, str(why)
        else:
            title, status, said = "That cannot be done", 400, str(why)
        return self.render(request, "error.html", status, title=title, said=said)

    def seen(self, entry: Entry) -> Entry:
        """Return an entry as this console may show it. Every page shows entries through this."""
        return entry.hidden() if self.options.hide_values else entry

    def lacks(self, about: About, *commands: str) -> dict[str, str]:
        """Return why each command cannot be used; empty where it can."""
        reason = "This console was started with --read-only." if self.options.read_only else ""
        return {name: reason or self.link.lack(about, name) for name in commands}

    async def _stream(self, request: Request) -> tuple[Query, About, Row]:
        self.catalogue.visited()
        query = Query(request)
        about = await self.link.about()
        return query, about, await self.catalogue.row(query.bytes("key"))

    def _filter(self, query: Query) -> Filter:
        value = b"" if self.options.hide_values else query.bytes("value")
        return Filter(query.bytes("field"), value)

    # Streams

    async def streams(self, request: Request) -> Response:
        """All streams: sorted, filtered, a hundred on a page."""
        query, catalogue = Query(request), self.catalogue
        catalogue.visited()
        about, trouble = None, catalogue.trouble
        await catalogue.first_look(FIRST_LOOK_S)
        sort = query.one("sort") if query.one("sort") in SORTS else "name"
        down = query.one("down") == "1"
        only = query.one("only") if query.one("only") in ("lag", "pending", "stuck") else ""
        rows = catalogue.ordered(sort, down, query.bytes("part"), only)
        at = query.number("at", max(len(rows) - 1, 0)) // ROWS * ROWS
        shown = rows[at : at + ROWS]
        try:
            about = await self.link.about()
            await catalogue.fresh(row.key for row in shown)
        except Unreachable as why:
            trouble = str(why)
        values = {"sort": sort, "down": down, "only": only, "at": at, "page_size": ROWS}
        return self.render(
            request,
            "streams.html",
            about=about,
            trouble=trouble,
            rows=shown,
            found=len(rows),
            stuck_count=len(catalogue.ordered("name", False, b"", "stuck")),
            catalogue=catalogue,
            **values,
        )

    # One stream

    async def stream(self, request: Request) -> Response:
        """A page of the entries of a stream."""
        query, about, row = await self._stream(request)
        at, way, problem = query.one("at"), query.one("way"), ""
        if at in _ENDS:
            at, way = _ENDS[at], "from" if at == "oldest" else "older"
        elif at:
            try:
                at = text.point(at, int(time.time() * 1000))
            except ValueError as why:
                at, problem = "", f"{why}."
        newer = bool(at) and way != "older"
        if at in ("", "+"):
            start = "+"
        else:
            start = at if at == "-" or way == "from" else f"({at}"
        page = Page(ended=True)
        try:
            if not row.error:
                page = await read_page(self.link, row.key, start, newer, self._filter(query))
        except Error as refusal:
            problem = str(refusal)
        return self.render(
            request,
            "stream.html",
            about=about,
            row=row,
            page=page,
            entries=[self.seen(entry) for entry in page.entries],
            newer=newer,
            start=start,
            problem=problem,
            look=LOOK,
            lacks=self.lacks(about, "XDEL", "XADD", "XTRIM"),
            policies=await self._policies(about, row.key, None),
        )

    async def _policies(self, about: About, key: bytes, group: bytes | None) -> list[Policy]:
        """Return what holds for a group or a stream: names, values, commands to change them."""
        if "XPOLICY" in about.missing:
            return []
        of_group = () if group is None else (b"GROUP", group)
        found = pairs(await self.link.one("XPOLICY", "GET", key, *of_group))
        return [
            (name, value, _policy_line(key, () if name in _OF_STREAM else of_group, name, value))
            for name, value in found.items()
        ]

    async def entry(self, request: Request) -> Response:
        """One entry: as a table, JSON, text or hex."""
        query = Query(request)
        key, form = query.bytes("key"), query.one("as") or "table"
        about = await self.link.about()
        whole = await read_entry(self.link, key, self._id(query))
        body, is_all = "", True
        at, offset = query.number("field_at", 1 << 30), query.number("offset", 1 << 40)
        entry = self.seen(whole) if whole else None
        if entry and form == "json":
            body, is_all = text.as_json(entry.fields, TEXT)
        elif entry and form == "text":
            lines = [f"{text.shown(n)}: {text.shown(v, TEXT)}" for n, v in entry.fields[:FIELDS]]
            body = "\n".join(lines)[:TEXT]
            is_all = len(body) < TEXT and len(lines) == len(entry.fields)
        elif entry and form == "hex" and entry.fields:
            at = min(at, len(entry.fields) - 1)
            body = text.hex_lines(entry.fields[at][1], offset // 16 * 16, HEX)
        return self.render(
            request,
            "entry.html",
            about=about,
            key=key,
            entry=entry,
            form=form,
            body=body,
            is_all=is_all,
            field_at=at,
            offset=offset,
            fields_per_page=FIELDS,
            hex_bytes=HEX,
            lacks=self.lacks(about, "XADD"),
        )

    def _id(self, query: Query) -> str:
        try:
            return text.point(query.one("id"), 0)
        except ValueError:
            raise Rejected("There is no such ID.") from None

    async def value(self, request: Request) -> Response:
        """One value as it is, to be saved as a file."""
        query = Query(request)
        if self.options.hide_values:
            raise Refused(403, "This console was started with --hide-values.")
        entry = await read_entry(self.link, query.bytes("key"), self._id(query))
        at = query.number("field_at", 1 << 30)
        if entry is None or at >= len(entry.fields):
            raise Rejected("There is no such value.")
        name = f'attachment; filename="{entry.id}-{at}.bin"'
        headers = {"Content-Disposition": name}
        return Response(entry.fields[at][1], media_type="application/octet-stream", headers=headers)

    async def rates(self, request: Request) -> Response:
        """The rates of a stream in the last minutes, as JSON: times, entries in, entries read."""
        self.catalogue.visited()
        key = Query(request).bytes("key")
        await self.catalogue.row(key)
        history = self.catalogue.history(key)
        return JSONResponse([list(column) for column in zip(*history, strict=True)])

    async def tail(self, request: Request) -> Response:
        """The page of the live tail."""
        _, about, row = await self._stream(request)
        return self.render(request, "tail.html", about=about, row=row)

    async def events(self, request: Request) -> Response:
        """The live tail itself."""
        query = Query(request)
        if self._viewers >= VIEWERS:
            return Response("There are too many live tails already.", 503)
        after = request.headers.get("last-event-id") or query.one("after")
        try:
            text.point(after.partition("/")[0] or "0", 0)
        except ValueError:
            raise Rejected("There is no such ID.") from None
        guard: Guard = request.scope["guard"]

        def is_welcome() -> bool:
            self.catalogue.visited()
            return guard.knows(request) and not self.is_ending()

        tail = Tail(
            self.link, query.bytes("key"), after, self._filter(query), self._as_line, is_welcome
        )
        return StreamingResponse(self._counted(tail), media_type="text/event-stream")

    async def _counted(self, tail: Tail) -> Any:
        self._viewers += 1
        try:
            async for each in tail.events():
                yield each
        finally:
            self._viewers -= 1

    def _as_line(self, entry: Entry) -> object:
        entry = self.seen(entry)
        fields = [[text.shown(n, PREVIEW), text.shown(v, PREVIEW)] for n, v in entry.fields[:8]]
        left = len(entry.fields) - len(fields)
        return [entry.id, text.time_of(entry.id)[11:], fields, left, text.size(entry.size)]

    async def append_form(
        self, request: Request, problem: str = "", typed: list[tuple[str, str]] | None = None
    ) -> Response:
        """The form for a new entry; with the ID of another one, filled with its fields."""
        query, about, row = await self._stream(request)
        fields = typed if typed is not None else [("", "")]
        again = query.one("id")
        if again and typed is None:
            entry = await read_entry(self.link, row.key, self._id(query))
            if self.options.hide_values:
                problem = "Values are hidden here, so they cannot be appended again."
            elif entry is None:
                problem = "That entry is gone."
            elif entry.size > EDITABLE_BYTES or len(entry.fields) > FIELDS:
                problem = "That entry is too large to be changed in a form."
            else:
                fields = [(text.escape(name), text.escape(value)) for name, value in entry.fields]
        lacks = self.lacks(about, "XADD")
        values = {"fields": fields, "problem": problem, "lacks": lacks, "again": again}
        return self.render(
            request, "append.html", 400 if typed else 200, about=about, row=row, **values
        )

    async def trim_form(self, request: Request, problem: str = "") -> Response:
        """The forms that trim or delete a stream."""
        _, about, row = await self._stream(request)
        lacks = self.lacks(about, "XTRIM", "UNLINK")
        status = 400 if problem else 200
        values = {"problem": problem, "lacks": lacks}
        return self.render(request, "trim.html", status, about=about, row=row, **values)

    def confirm(
        self, request: Request, plan: Plan, hidden: list[tuple[str, str]], back: str
    ) -> Response:
        """Return the page that says what goes, with a button that confirms it."""
        page = request.scope["path"].removeprefix("/")
        return self.render(
            request, "confirm.html", plan=plan, hidden=hidden, back=back, action=page
        )

    # Groups

    async def group(self, request: Request) -> Response:
        """A group: what is stuck, its consumers, its policies and dead letters."""
        query, about, row = await self._stream(request)
        name, link = query.bytes("group"), self.link
        look = next((each for each in LOOKS if each >= query.number("look", LOOKS[-1])), LOOKS[0])
        consumer = query.bytes("consumer") if query.one("by") == "consumer" else None
        pending, problem = None, row.error
        groups, consumers = await link.ask(("XINFO", "GROUPS", row.key), _members(row, name))
        facts = next((pairs(g) for g in _list(groups) if pairs(g).get(b"name") == name), {})
        if not problem and isinstance(groups, list) and not facts:
            problem = f"The stream has no group {text.shown(name)}."
        try:
            if not problem:
                pending = await read_pending(link, row.key, name, look, consumer)
        except Error as why:
            problem = str(why)
        policies = await self._policies(about, row.key, name) if not problem else []
        letters_key = next(
            (value for each, value, _ in policies if each == b"dead-letter-key"), b""
        )
        letters = None
        if letters_key:
            letters = await self._letters(letters_key, "+", newer=False, group=name)
        return self.render(
            request,
            "group.html",
            about=about,
            row=row,
            name=name,
            facts=_named(facts),
            consumers=[_named(pairs(each)) for each in _list(consumers)[:CONSUMERS]],
            consumer=consumer,
            pending=pending,
            holders=_holders(pending.rows if pending else []),
            contents=await self._contents(row, pending.rows[:PREVIEWED] if pending else []),
            look=look,
            further=next((each for each in LOOKS if each > look), 0),
            problem=problem,
            policies=policies,
            suggestion=_policy_line(row.key, (b"GROUP", name), *_SUGGESTED, row.key + b".dead"),
            letters_key=letters_key,
            letters=letters,
            can_set="XPOLICY" not in about.missing,
            no_policies=link.lack(about, "XPOLICY"),
            lacks=self.lacks(about, "XCLAIM", "XNACK", "XACK", "XREDRIVE"),
        )

    async def _contents(self, row: Row, pending: list[Pending]) -> dict[str, Entry]:
        """Return what is in pending entries, by their IDs; nothing where entries are large."""
        if (row.bytes or 0) > PREVIEWED_BYTES * max(row.length, 1):
            return {}
        asked = [("XRANGE", row.key, each.id, each.id) for each in pending]
        replies = await self.link.ask(*asked)
        found = [entries_of(reply) for reply in replies if isinstance(reply, list)]
        return {each[0].id: self.seen(each[0]) for each in found if each}

    async def _letters(self, key: bytes, start: str, newer: bool, group: bytes) -> Page | None:
        try:
            page = await read_letters(self.link, key, start, newer, group)
        except Error:
            return None
        page.entries = [self.seen(entry) for entry in page.entries]
        return page

    async def letters(self, request: Request) -> Response:
        """The dead letters of a stream of dead letters, or those of one group in it."""
        query, about, row = await self._stream(request)
        at, newer = query.one("at"), query.one("way") == "newer"
        start = f"({self._id_of(at)}" if at else "+"
        group = query.bytes("group")
        page = await self._letters(row.key, start, newer and bool(at), group)
        lacks = self.lacks(about, "XREDRIVE")
        values = {"letters": page, "group": group, "lacks": lacks, "newer": newer, "start": start}
        return self.render(request, "letters.html", about=about, row=row, **values)

    def _id_of(self, at: str) -> str:
        try:
            return text.point(at, 0)
        except ValueError:
            raise Rejected("There is no such ID.") from None

    # Servers

    async def regions(self, request: Request) -> Response:
        """The regions that the server knows."""
        about = await self.link.about()
        reply = await self.link.one("INFO", "activeactive")
        table = regions_table(about, None if isinstance(reply, Error) else info_fields(reply))
        return self.render(request, "nodes.html", about=about, table=table, page="regions")

    async def cluster(self, request: Request) -> Response:
        """The nodes of the cluster, or master and replicas."""
        about = await self.link.about()
        nodes = await self.link.one("CLUSTER", "NODES")
        replies = await self.link.ask(("INFO", "replication"), ("CLUSTER", "INFO"))
        replication, cluster = (info_fields(reply) for reply in replies)
        table = cluster_table(self.link.shown, nodes, replication, cluster)
        return self.render(request, "nodes.html", about=about, table=table, page="cluster")


def _holders(rows: list[Pending]) -> list[tuple[bytes, int, Pending]]:
    """Return which consumers hold stuck entries, how many each, and the longest stuck one."""
    found: dict[bytes, list[Pending]] = {}
    for row in rows:
        if row.idle_ms >= STUCK_MS:
            found.setdefault(row.consumer, []).append(row)
    return [(consumer, len(held), held[0]) for consumer, held in found.items()]


def _policy_line(key: bytes, group: tuple[bytes, ...], *words: bytes) -> str:
    return text.command_line([b"XPOLICY", b"SET", key, *group, *words])


def _named(fields: dict[bytes, Any]) -> dict[str, Any]:
    return {name.decode("utf-8", "replace"): value for name, value in fields.items()}


def _list(reply: Any) -> list[Any]:
    return reply if isinstance(reply, list) else []


def _members(row: Row, name: bytes) -> tuple[bytes | str, ...]:
    """Return the request for the consumers of a group; none where they are too many to list."""
    group: Group | None = next((each for each in row.groups if each.name == name), None)
    too_many = group is not None and group.consumers > 20 * CONSUMERS
    return ("PING",) if too_many else ("XINFO", "CONSUMERS", row.key, name)
