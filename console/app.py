"""The web application: URLs, forms, and how it starts."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from headrace.console import changes, text
from headrace.console.catalogue import Catalogue, Row
from headrace.console.changes import Plan, Rejected
from headrace.console.guard import Form, Guard, Refused, place_after_login
from headrace.console.link import Error, Link, Unreachable
from headrace.console.pages import HERE, Options, Pages, Query

Handler = Callable[[Request], Awaitable[Response]]
Change = Callable[["Changes", Query, Form], Awaitable["str | Plan"]]

LOOPBACK: Final = {"localhost", "127.0.0.1", "::1"}


class Files(StaticFiles):
    """Static files, which a browser may keep for a day."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "max-age=86400"
        return response


class Changes:
    """Does what forms ask. Where that needs a confirmation, it returns a Plan at first."""

    def __init__(self, pages: Pages) -> None:
        self._link: Final = pages.link
        self._catalogue: Final = pages.catalogue

    async def _now(self, key: bytes) -> Row:
        await self._catalogue.again(key)
        return await self._catalogue.row(key)

    async def claim(self, query: Query, form: Form) -> str | Plan:
        """Claim what is selected."""
        wanted = changes.tickets(form.all("id"))
        try:
            consumer = text.unescape(form.one("consumer"))
        except ValueError as why:
            raise Rejected(f"The name of the consumer: {why}.") from None
        key, group = query.bytes("key"), query.bytes("group")
        return await changes.claim(self._link, key, group, wanted, consumer)

    async def release(self, query: Query, form: Form) -> str | Plan:
        """Release what is selected."""
        wanted = changes.tickets(form.all("id"))
        key, group = query.bytes("key"), query.bytes("group")
        return await changes.release(self._link, key, group, wanted, form.one("mode") or "FAIL")

    async def acknowledge(self, query: Query, form: Form) -> str | Plan:
        """Acknowledge what is selected."""
        wanted = changes.tickets(form.all("id"))
        key, group = query.bytes("key"), query.bytes("group")
        if not form.one("confirmed"):
            return changes.plan_acknowledge(key, group, wanted)
        return await changes.acknowledge(self._link, key, group, wanted)

    async def delete(self, query: Query, form: Form) -> str | Plan:
        """Delete the entries that are selected."""
        try:
            ids = [text.point(each, 0) for each in form.all("id")[: changes.SELECTED]]
        except ValueError:
            raise Rejected("The form is none of this page.") from None
        key = query.bytes("key")
        if not form.one("confirmed"):
            return await changes.plan_delete(self._link, await self._now(key), ids)
        return await changes.delete(self._link, key, ids)

    async def trim(self, query: Query, form: Form) -> str | Plan:
        """Trim the stream."""
        key, value = query.bytes("key"), form.one("value").strip().replace(",", "")
        if form.one("how") == "keep":
            if not value.isdecimal() or len(value) > 18:
                raise Rejected("How many entries are to stay? A number, please.")
            words = ["MAXLEN", value]
        else:
            try:
                words = ["MINID", text.point(value, int(time.time() * 1000))]
            except ValueError as why:
                raise Rejected(f"{why}.") from None
        if not form.one("confirmed"):
            about = await self._link.about()
            return await changes.plan_trim(self._link, about, await self._now(key), words)
        return await changes.trim(self._link, key, words)

    async def drop(self, query: Query, form: Form) -> str | Plan:
        """Delete the whole stream."""
        key = query.bytes("key")
        if not form.one("confirmed"):
            return changes.plan_drop(await self._now(key))
        if form.one("typed").strip() != text.shown(key).strip():
            raise Rejected("The name that you typed is another one. Nothing was deleted.")
        return await changes.drop(self._link, key)

    async def redrive(self, query: Query, form: Form) -> str | Plan:
        """Put dead letters back: one, those that are selected, or all."""
        key, group = query.bytes("key"), query.bytes("group")
        if form.one("which") != "all":
            ids = [form.one("one")] if form.one("one") else form.all("id")[: changes.SELECTED]
            return await changes.redrive(self._link, key, ids)
        if form.one("confirmed"):
            return await changes.redrive_all(self._link, key, group)
        length = (await self._now(key)).length
        whose = f"of the group {text.shown(group)}" if group else "of all groups"
        facts = [
            f"All dead letters {whose} in this stream go back to the group that gave up.",
            f"The stream has {changes.counted(length, 'entry')}.",
            f"At most {changes.REDRIVEN:,} go at a time.",
        ]
        command = text.command_line([b"XREDRIVE", key, b"COUNT", b"%d" % length])
        return Plan("Redrive all", "" if group else command, facts, [], "Redrive all")


# Where a form leads when it was done, and what it takes to be confirmed again.
CHANGES: Final[dict[str, tuple[Change, str]]] = {
    "claim": (Changes.claim, "group"),
    "release": (Changes.release, "group"),
    "acknowledge": (Changes.acknowledge, "group"),
    "delete": (Changes.delete, "stream"),
    "trim": (Changes.trim, "trim"),
    "drop": (Changes.drop, "trim"),
    "redrive": (Changes.redrive, "letters"),
}


def _place(query: Query, page: str, form: Form) -> str:
    """Return the URL of a page of the same stream and group."""
    key, group = form.one("home_key") or text.to_url(query.bytes("key")), query.bytes("group")
    page = "group" if form.one("home_key") else page
    return f"{page}?key={key}" + (f"&group={text.to_url(group)}" if group else "")


def changing(pages: Pages, name: str) -> Handler:
    """Return the handler of a form of ``CHANGES``."""
    change, home = CHANGES[name]

    async def handle(request: Request) -> Response:
        guard: Guard = request.scope["guard"]
        form = await guard.form(request)
        if pages.options.read_only:
            raise Refused(403, "This console was started with --read-only.")
        pages.catalogue.visited()
        query = Query(request)
        back = _place(query, home, form)
        try:
            done = await change(Changes(pages), query, form)
        except Rejected as why:
            note = pages.note(str(why), is_bad=True)
            return RedirectResponse(f"{back}&note={note}", 303)
        if isinstance(done, Plan):
            hidden = [item for item in form.items if item[0] not in ("token", "confirmed")]
            return pages.confirm(request, done, hidden, back)
        if name == "drop":
            return RedirectResponse(f"./?note={pages.note(done)}", 303)
        await pages.catalogue.again(query.bytes("key"))
        return RedirectResponse(f"{back}&note={pages.note(done)}", 303)

    return handle


async def append(pages: Pages, request: Request) -> Response:
    """Append an entry, or show its form again with what is wrong."""
    if request.method == "GET":
        return await pages.append_form(request)
    guard: Guard = request.scope["guard"]
    form = await guard.form(request)
    if pages.options.read_only:
        raise Refused(403, "This console was started with --read-only.")
    key = Query(request).bytes("key")
    typed = list(zip(form.all("name"), form.all("value"), strict=False))
    try:
        # A row of which nothing was filled in is none.
        fields = [
            (text.unescape(name), text.unescape(value)) for name, value in typed if name or value
        ]
        new_id = await changes.append(pages.link, key, form.one("new_id").strip(), fields)
    except (ValueError, Rejected) as why:
        return await pages.append_form(request, f"{str(why).rstrip('.')}.", typed)
    await pages.catalogue.again(key)
    note = pages.note(f"Appended as {new_id}.")
    return RedirectResponse(f"stream?key={text.to_url(key)}&note={note}", 303)


async def trim(pages: Pages, request: Request) -> Response:
    """Show the forms that trim, or do what they say."""
    return await (
        pages.trim_form(request) if request.method == "GET" else changing(pages, "trim")(request)
    )


async def log_in(pages: Pages, request: Request) -> Response:
    """Ask for the password, or take it."""
    guard: Guard = request.scope["guard"]
    place = place_after_login(request.query_params.get("next", ""))
    if not guard.has_password:
        return RedirectResponse("./", 303)
    problem, status = "", 200
    if request.method == "POST":
        form = await guard.form(request, is_login=True)
        try:
            guard.log_in(request, form.one("password"))
            return RedirectResponse(place or "./", 303)
        except Refused as why:
            problem, status = str(why), why.status
    return pages.render(request, "login.html", status, problem=problem)


async def log_out(pages: Pages, request: Request) -> Response:
    """End the session."""
    guard: Guard = request.scope["guard"]
    await guard.form(request)
    guard.log_out(request)
    return RedirectResponse("login", 303)


def make(pages: Pages, guard: Callable[[ASGIApp], Guard]) -> Guard:
    """Return the application. It asks the server from its start until its end."""

    async def failed(request: Request, why: Exception) -> Response:
        return pages.failure(request, why)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        keeping = asyncio.create_task(pages.catalogue.keep())
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.wait([keeping], timeout=2)
            await pages.link.close()

    shown: dict[str, Handler] = {
        "/": pages.streams,
        "/stream": pages.stream,
        "/entry": pages.entry,
        "/value": pages.value,
        "/rates": pages.rates,
        "/tail": pages.tail,
        "/events": pages.events,
        "/group": pages.group,
        "/letters": pages.letters,
        "/regions": pages.regions,
        "/cluster": pages.cluster,
    }
    both: dict[str, Callable[[Pages, Request], Awaitable[Response]]] = {
        "/append": append,
        "/trim": trim,
        "/login": log_in,
    }
    routes: list[BaseRoute] = [Route(path, handler) for path, handler in shown.items()]
    for path, handler in both.items():
        routes.append(Route(path, functools.partial(handler, pages), methods=["GET", "POST"]))
    for name in CHANGES:
        if name != "trim":
            routes.append(Route(f"/{name}", changing(pages, name), methods=["POST"]))
    routes.append(Route("/logout", functools.partial(log_out, pages), methods=["POST"]))
    routes.append(Mount("/static", Files(directory=HERE / "static")))
    kinds = (Unreachable, Rejected, Refused, Error)
    return guard(
        Starlette(routes=routes, lifespan=lifespan, exception_handlers=dict.fromkeys(kinds, failed))
    )


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the console listens, and for whom.

    Attributes:
        names: by which it may be called besides those of this machine.
        certificate, key: files, for HTTPS; empty for HTTP.
    """

    bind: str
    port: int
    password: str
    root_path: str
    names: list[str]
    certificate: str
    key: str


def run(link: Link, options: Options, listening: Listening) -> int:
    """Serve the console until it is interrupted; return the exit code."""
    pages = Pages(link, Catalogue(link), options)
    names = {*LOOPBACK, listening.bind, *listening.names}
    app = make(
        pages,
        lambda inner: Guard(
            inner,
            listening.password,
            names,
            listening.root_path,
            f"headrace_console_{listening.port}",
        ),
    )
    config = uvicorn.Config(
        app,
        host=listening.bind,
        port=listening.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=2,
        limit_concurrency=200,
        ssl_certfile=listening.certificate or None,
        ssl_keyfile=listening.key or None,
    )
    scheme = "https" if listening.certificate else "http"
    if not listening.certificate and listening.bind not in LOOPBACK:
        print(
            "headrace console: without --tls-cert the password goes over the network as it is; put "
            "a proxy with TLS in front, or use --tls-cert and --tls-key",
            file=sys.stderr,
        )
    place = f"[{listening.bind}]" if ":" in listening.bind else listening.bind
    url = f"{scheme}://{place}:{listening.port}{listening.root_path}/"
    server = uvicorn.Server(config)
    pages.is_ending = lambda: server.should_exit
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        print(f"headrace console: the certificate cannot be used: {error}", file=sys.stderr)
        return 1
    try:
        listener = config.bind_socket()
    except SystemExit:  # it has said why
        return 1
    print(f"headrace console: {url} shows {link.shown}; Ctrl-C ends it", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])
    return 0 if server.started else 1
