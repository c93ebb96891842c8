"""The arguments of ``headrace console``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Tools = argparse._SubParsersAction[argparse.ArgumentParser]

PASSWORD = "HEADRACE_CONSOLE_PASSWORD"
URL = "HEADRACE_CONSOLE_URL"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def add_tool(tools: Tools) -> None:
    """Add ``headrace console`` to the tools."""
    console = tools.add_parser(
        "console",
        help="show streams, groups and what is stuck in a browser",
        description="Serves pages that show the streams of a server, Headrace, Redis or Valkey "
        "from 7.0 on, and put right what is stuck. Needs pip install 'headrace[console]'.",
        epilog="Exit codes: 0 it was interrupted; 1 it could not start; 2 wrong arguments.",
    )
    console.add_argument(
        "--url",
        default=os.environ.get(URL, "redis://127.0.0.1:6379"),
        help="redis://[[user]:password@]host[:port][/database], rediss:// with TLS, or "
        f"unix://path; default: {URL}, else redis://127.0.0.1:6379",
    )
    console.add_argument("--port", type=int, default=8380, help="of the pages; default: 8380")
    console.add_argument(
        "--bind",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="default: 127.0.0.1; any other needs a password",
    )
    console.add_argument(
        "--password-file",
        default="",
        metavar="FILE",
        help=f"its first line is what visitors have to know; default: {PASSWORD}, else none",
    )
    console.add_argument("--read-only", action="store_true", help="change nothing")
    console.add_argument("--hide-values", action="store_true", help="show no value of any entry")
    console.add_argument(
        "--root-path", default="", metavar="/PREFIX", help="under which a proxy shows the pages"
    )
    console.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="by which browsers may call it besides localhost, where it has no password",
    )
    https = console.add_argument_group("HTTPS, for browsers")
    https.add_argument("--tls-cert", default="", metavar="FILE", help="the certificate to show")
    https.add_argument("--tls-key", default="", metavar="FILE", help="its private key")
    tls = console.add_argument_group("TLS, to the server, with rediss://")
    tls.add_argument("--cacert", default="", metavar="FILE", help="authorities that are trusted")
    tls.add_argument("--cert", default="", metavar="FILE", help="the certificate to show")
    tls.add_argument("--key", default="", metavar="FILE", help="its private key")
    tls.add_argument("--insecure", action="store_true", help="trust every server")


def run_tool(arguments: argparse.Namespace) -> int:
    """Run it until it is interrupted. Return the exit code."""
    password = os.environ.get(PASSWORD, "")
    if arguments.password_file:
        try:
            password = (Path(arguments.password_file).read_text().splitlines() or [""])[0]
        except (OSError, UnicodeError) as unread:
            return _wrong(f"the password cannot be read: {unread}")
        if not password:
            return _wrong(f"{arguments.password_file} has no password in its first line")
    if arguments.bind not in _LOOPBACK and not password:
        return _wrong(f"--bind {arguments.bind} needs a password: --password-file, or {PASSWORD}")
    if bool(arguments.tls_cert) != bool(arguments.tls_key):
        return _wrong("--tls-cert and --tls-key go together")
    try:
        from headrace.console.app import Listening, run
        from headrace.console.link import Link
        from headrace.console.pages import Options
    except ModuleNotFoundError as missing:
        print(
            f"headrace console: there is no {missing.name} here; "
            "pip install 'headrace[console]' brings it",
            file=sys.stderr,
        )
        return 1
    try:
        link = Link(arguments.url, **_encryption(arguments))
    except (ValueError, TypeError) as error:
        return _wrong(f"--url: {error}")
    root_path = f"/{arguments.root_path.strip('/')}" if arguments.root_path.strip("/") else ""
    return run(
        link,
        Options(arguments.read_only, arguments.hide_values),
        Listening(
            arguments.bind,
            arguments.port,
            password,
            root_path,
            arguments.allow_host,
            arguments.tls_cert,
            arguments.tls_key,
        ),
    )


def _encryption(arguments: argparse.Namespace) -> dict[str, Any]:
    if not arguments.url.startswith("rediss://"):
        return {}
    found = {
        "ssl_ca_certs": arguments.cacert or None,
        "ssl_certfile": arguments.cert or None,
        "ssl_keyfile": arguments.key or None,
    }
    if arguments.insecure:
        return {**found, "ssl_cert_reqs": "none", "ssl_check_hostname": False}
    return found


def _wrong(text: str) -> int:
    print(f"headrace console: {text}", file=sys.stderr)
    return 2
