"""Where a server is, as options say it.

A password is never an option's value, because Spark shows options in plans, logs and its web page.
Its place is an environment variable (``passwordEnv``) or a file (``passwordFile``) of whoever
connects: the driver and every executor.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from pyspark_headrace.errors import OptionError
from pyspark_headrace.given import Given

DEFAULT_PORT: Final = 6379
SENTINEL_PORT: Final = 26_379
MOST_PORT: Final = 65_535
# Where a server and its password are looked for when no option names them.
URL_VARIABLE: Final = "HEADRACE_URL"
PASSWORD_VARIABLE: Final = "HEADRACE_PASSWORD"


@dataclass(frozen=True)
class Connection:
    """Where the server is and how to talk to it. Holds the name of a secret, never the secret."""

    host: str = "localhost"
    port: int = DEFAULT_PORT
    unix_path: str = ""
    db: int = 0
    username: str = ""
    password_env: str = ""
    password_file: str = ""
    cluster_nodes: tuple[tuple[str, int], ...] = ()  # to be asked where the address is away
    sentinels: tuple[tuple[str, int], ...] = ()
    master: str = ""  # what they call the server that is wanted
    tls: bool = False
    tls_ca_file: str = ""
    tls_cert_file: str = ""
    tls_key_file: str = ""
    timeout_ms: int = 10_000
    retries: int = 5
    retry_ms: int = 500
    secret: bool = True  # whether a password is to be shown
    source: str = field(default="", compare=False)  # of the address: an option, or a variable

    @property
    def host_option(self) -> str:
        """Return where the host was given, for messages."""
        return self.source or "option host"

    @property
    def tls_option(self) -> str:
        """Return what asked for TLS, for messages."""
        return f"{self.source} (rediss://)" if self.source else "option tls"

    def password(self) -> str:
        """The password, read where it lies; empty when there is none to send.

        Raises:
            OptionError: the place that the options name holds none.
        """
        if not self.secret:
            return ""
        if self.password_env:
            value = os.environ.get(self.password_env)
            if value is None:
                raise OptionError(f"passwordEnv: there is no variable {self.password_env} here")
            return value
        if self.password_file:
            try:
                return Path(self.password_file).read_text().strip()
            except UnicodeDecodeError:
                raise OptionError(f"passwordFile: {self.password_file} is not UTF-8") from None
            except (OSError, ValueError) as error:
                raise OptionError(f"passwordFile: {error}") from None
        return os.environ.get(PASSWORD_VARIABLE, "")

    @property
    def password_option(self) -> str:
        """Return where the password is looked for, for messages."""
        if self.password_file:
            return f"passwordFile {self.password_file}"
        return f"passwordEnv {self.password_env}" if self.password_env else PASSWORD_VARIABLE

    def where(self) -> str:
        """The address, for messages."""
        if self.sentinels:
            return f"{self.master} of the sentinels"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.unix_path or f"{host}:{self.port}"

    @property
    def label(self) -> str:
        """The address and the database, for people: no user and no secret."""
        return f"{self.where()}/{self.db}" if self.db else self.where()


def connection_from(given: Given) -> Connection:
    """The connection that the options describe."""
    sentinels = _hosts(given, "sentinels", SENTINEL_PORT)
    if bool(sentinels) != given.has("sentinelMaster"):
        raise OptionError("options sentinels and sentinelMaster go together")
    url = given.text("redis.url")
    apart = [name for name in ("host", "port", "db", "username", "tls") if given.has(name)]
    if url is not None and apart:
        raise OptionError(f"options redis.url and {apart[0]} exclude each other")
    led = [name for name in ("redis.url", "host", "port", "clusterNodes") if given.has(name)]
    if sentinels and led:
        raise OptionError(f"options sentinels and {led[0]} exclude each other")
    if apart and "host" not in apart and not sentinels:
        _refuse_without_host(given, apart[0])
    source = "option redis.url"
    if url is None and not apart and not sentinels:
        url, source = os.environ.get(URL_VARIABLE) or None, URL_VARIABLE
    address = _from_parts(given) if url is None else _from_url(url, source)
    host = address.get("host", "")
    try:
        host.encode("idna")  # as it is looked up
    except UnicodeError:
        raise OptionError(f"{host!r} cannot be the name of a host") from None
    given.only_one_of("passwordEnv", "passwordFile")
    if given.has("tlsKeyFile") and not given.has("tlsCertFile"):
        raise OptionError("option tlsKeyFile wants tlsCertFile too")
    files = [name for name in ("tlsCaFile", "tlsCertFile", "tlsKeyFile") if given.has(name)]
    if files and not address["tls"]:
        raise OptionError(
            f"option {files[0]} means nothing without TLS: tls=true, or redis.url rediss://..."
        )
    return Connection(
        **address,
        source="" if url is None else source,
        cluster_nodes=_hosts(given, "clusterNodes", DEFAULT_PORT),
        sentinels=sentinels,
        master=given.text("sentinelMaster") or "",
        password_env=given.text("passwordEnv") or "",
        password_file=given.text("passwordFile") or "",
        tls_ca_file=given.text("tlsCaFile") or "",
        tls_cert_file=given.text("tlsCertFile") or "",
        tls_key_file=given.text("tlsKeyFile") or "",
        timeout_ms=given.integer("requestTimeoutMs", 10_000),
        retries=given.integer("fetchOffset.numRetries", 5, 0),
        retry_ms=given.integer("fetchOffset.retryIntervalMs", 500),
    )


def _refuse_without_host(given: Given, option: str) -> None:
    """Not in silence to this machine, where another one may be meant.

    Raises:
        OptionError: it may be.
    """
    if given.flag("tls", False):
        raise OptionError("option tls=true wants the option host too, or redis.url rediss://...")
    if os.environ.get(URL_VARIABLE) and not given.has("port"):
        raise OptionError(
            f"option {option} without host: {URL_VARIABLE} does not count beside it; give host "
            "too, or all of it as redis.url"
        )


def _hosts(given: Given, name: str, default_port: int) -> tuple[tuple[str, int], ...]:
    """An option that holds hosts and ports, with commas between."""
    text = given.text(name) or ""
    found = []
    for each in text.split(",") if text else []:
        try:
            parts = urlsplit(f"//{each.strip()}")
            port = parts.port or default_port
        except ValueError as error:
            raise OptionError(f"option {name}: {each.strip()}: {str(error).lower()}") from None
        if not parts.hostname or parts.path or parts.username is not None:
            raise OptionError(f"option {name}: {each.strip()!r} is not host or host:port")
        found.append((parts.hostname, port))
    return tuple(found)


def _from_parts(given: Given) -> dict[str, Any]:
    return {
        "host": given.text("host") or "localhost",
        "port": given.integer("port", DEFAULT_PORT, most=MOST_PORT),
        "db": given.integer("db", 0, 0),
        "username": given.text("username") or "",
        "tls": given.flag("tls", False),
    }


def _from_url(url: str, source: str) -> dict[str, Any]:
    shape = "redis://[user@]host[:port][/db], rediss://... or unix:///path[?db=n]"
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise OptionError(f"{source}: {error}; {shape} is wanted") from None
    if parts.password is not None:
        raise OptionError(
            f"{source} holds a password, which would show in plans and logs; name an environment "
            "variable with passwordEnv, or a file with passwordFile"
        )
    try:
        port = -1 if parts.port == 0 else parts.port
    except ValueError as error:  # "Port out of range 0-65535", or no number
        raise OptionError(f"{source}: {str(error).lower()}; {shape} is wanted") from None
    query = dict(parse_qsl(parts.query))
    db = parts.path.strip("/") if parts.scheme != "unix" else query.pop("db", "")
    fits = parts.scheme in ("redis", "rediss", "unix") and port != -1 and not query
    if not fits or (db and not db.isdecimal()):
        raise OptionError(f"{source}: {shape} is wanted")
    found: dict[str, Any] = {
        "db": int(db or 0),
        "username": unquote(parts.username or ""),
        "tls": parts.scheme == "rediss",
    }
    if parts.scheme == "unix":
        return {**found, "unix_path": parts.path}
    return {**found, "host": parts.hostname or "localhost", "port": port or DEFAULT_PORT}
