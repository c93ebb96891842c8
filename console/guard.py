"""Guards every page: host names, sessions, passwords, forged forms, headers.

- *Host*. Without a password only the names of this machine are answered, so that no page of another
  site can be pointed here by its name (DNS rebinding).
- *Session*. A cookie holds a random ID, signed with a key that lives as long as this process. With
  a password there is a list of those that gave it, which ends with ``SESSION_S`` or a logout. The
  ID is a new one after the password.
- *Forgery*. What changes something is a POST, carries a token that belongs to the session, and
  comes from a page of this host, as the browser says.
- *Guesses*. After ``TRIES`` wrong passwords from one address it has to wait.
- *Headers*. A Content-Security-Policy allows scripts, styles and connections of this host alone,
  none of them inside a page.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from itsdangerous import BadSignature, TimestampSigner
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SESSION_S: Final = 12 * 3600
TRIES: Final = 5
WAIT_S: Final = 30.0
ADDRESSES: Final = 10_000
FORM_BYTES: Final = 8_000_000
FORM_FIELDS: Final = 20_000
OPEN: Final = ("/login", "/static/")
_CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": _CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "clipboard-write=(self), camera=(), geolocation=(), microphone=()",
}
_PLACE: Final = re.compile(r"[a-z]*(\?[\w%=&.~()+:-]*)?", re.ASCII)


class Refused(Exception):
    """A request that is not answered as it wished."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status: Final = status


@dataclass(frozen=True, slots=True)
class Form:
    """Holds what a form sent: names and values, in order."""

    items: list[tuple[str, str]]

    def one(self, name: str) -> str:
        """Return the last value of a name; empty if there is none."""
        return dict(self.items).get(name, "")

    def all(self, name: str) -> list[str]:
        """Return all values of a name."""
        return [value for key, value in self.items if key == name]


class Guard:
    """The outermost layer of the console.

    Args:
        password: that visitors have to give; empty for none.
        hosts: names by which the console may be called where it has no password.
        root_path: the prefix of a proxy.
        cookie: the name of the cookie.
    """

    def __init__(
        self, app: ASGIApp, password: str, hosts: set[str], root_path: str, cookie: str
    ) -> None:
        self._app: Final = app
        self._password: Final = password.encode()
        self._hosts: Final = hosts
        self._root_path: Final = root_path
        self._cookie: Final = cookie
        self._signer: Final = TimestampSigner(secrets.token_bytes(32), salt="session")
        self._known: Final[dict[str, float]] = {}  # sessions that gave the password, until when
        self._wrong: Final[OrderedDict[str, tuple[int, float]]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        if self._root_path and f"{path}/".startswith(f"{self._root_path}/"):
            path = path.removeprefix(self._root_path)
            if not path:  # links are relative to a folder
                await RedirectResponse(f"{self._root_path}/", 308)(scope, receive, send)
                return
        scope = {**scope, "path": path, "root_path": "", "guard": self}
        session = self._session(Request(scope))
        scope["session_id"] = session or (secrets.token_urlsafe(18) if not self._password else "")

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add_headers(scope, message, session)
            await send(message)

        answer = self._instead(Request(scope), path)
        await (answer or self._app)(scope, receive, with_headers)

    def _instead(self, request: Request, path: str) -> Response | None:
        """Return the answer to what goes no further, or None."""
        host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
        if not self._password and host not in self._hosts:
            return PlainTextResponse(
                f"This console is not called {host!r}. --allow-host gives it another name.\n", 421
            )
        if request.method == "POST" and not self._is_own(request.headers, host):
            return PlainTextResponse("This form is not of a page of the console.\n", 403)
        if not self._password or path.startswith(OPEN) or self.knows(request):
            return None
        if request.method != "GET" or path == "/events":
            return PlainTextResponse("The session has ended: log in again.\n", 401)
        if request.headers.get("hx-request"):
            return PlainTextResponse("", 401, {"HX-Redirect": "login"})
        query = request.scope["query_string"].decode("ascii", "replace")
        place = f"{path.removeprefix('/')}?{query}" if query else path.removeprefix("/")
        return RedirectResponse(f"login?next={quote(place, safe='')}", 303)

    def _is_own(self, headers: Headers, host: str) -> bool:
        site = headers.get("sec-fetch-site")
        if site is not None:
            return site in ("same-origin", "none")
        origin = headers.get("origin")
        if origin is None:
            return True  # no browser of today; the token is asked for all the same
        return (urlsplit(origin).hostname or "") in {host, *self._hosts}

    def _session(self, request: Request) -> str:
        """Return the ID of a valid session; empty if there is none."""
        try:
            cookie = request.cookies.get(self._cookie, "")
            found = self._signer.unsign(cookie, max_age=SESSION_S).decode()
        except (BadSignature, UnicodeError):
            return ""
        if self._password and self._known.get(found, 0.0) < time.monotonic():
            self._known.pop(found, None)
            return ""
        return found

    def _add_headers(self, scope: Scope, message: Message, session: str) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in HEADERS.items():
            headers[name] = value
        if "cache-control" not in headers:
            headers["Cache-Control"] = "no-store"
        ended = scope.get("session_ended", False)
        if scope["session_id"] != session or ended:
            value = "" if ended else self._signer.sign(scope["session_id"]).decode()
            secure = "; Secure" if scope["scheme"] == "https" else ""
            headers.append(
                "Set-Cookie",
                f"{self._cookie}={value}; Path={self._root_path or '/'}; HttpOnly; SameSite=Lax; "
                f"Max-Age={0 if ended else SESSION_S}{secure}",
            )

    # For pages

    @property
    def has_password(self) -> bool:
        """Return whether visitors have to log in."""
        return bool(self._password)

    def knows(self, request: Request) -> bool:
        """Return whether a request may be answered, now and while its answer goes on."""
        if not self._password:
            return True
        return self._known.get(request.scope["session_id"], 0.0) > time.monotonic()

    def token(self, request: Request) -> str:
        """Return what forms of this session have to send."""
        session: str = request.scope["session_id"]
        return self._signer.get_signature(f"form {session}").decode() if session else ""

    def log_in(self, request: Request, password: str) -> None:
        """Begin a new session for who knows the password. Raises Refused."""
        address = request.client.host if request.client else ""
        now_s = time.monotonic()
        tries, since_s = self._wrong.get(address, (0, now_s))
        if tries >= TRIES:
            if now_s - since_s < WAIT_S:
                raise Refused(429, "Too many wrong passwords: wait half a minute.")
            tries = 0
        if not hmac.compare_digest(password.encode("utf-8", "replace"), self._password):
            self._wrong[address] = (tries + 1, now_s)
            self._wrong.move_to_end(address)
            if len(self._wrong) > ADDRESSES:
                self._wrong.popitem(last=False)
            raise Refused(401, "That is not the password.")
        self._wrong.pop(address, None)
        for session in [each for each, until_s in self._known.items() if until_s < now_s]:
            del self._known[session]
        request.scope["session_id"] = session = secrets.token_urlsafe(18)
        self._known[session] = now_s + SESSION_S

    def log_out(self, request: Request) -> None:
        """End the session, here and in the browser."""
        self._known.pop(request.scope["session_id"], None)
        request.scope["session_ended"] = True

    async def form(self, request: Request, is_login: bool = False) -> Form:
        """Return the form that was sent. Raises Refused where it is too large, or forged."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > FORM_BYTES:
                raise Refused(413, "That is more than a form may have.")
        try:
            items = parse_qsl(
                body.decode("ascii"), keep_blank_values=True, max_num_fields=FORM_FIELDS
            )
        except (UnicodeError, ValueError):
            raise Refused(400, "That is no form.") from None
        form = Form(items)
        wanted = self.token(request)
        if not is_login and not (wanted and hmac.compare_digest(form.one("token"), wanted)):
            raise Refused(403, "This page is of another session: load it again.")
        return form


def place_after_login(text: str) -> str:
    """Return where to go after the password, which is always a page of the console."""
    return text if _PLACE.fullmatch(text) and text != "login" else ""
