"""The arguments of ``headrace regions``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

from headrace.server.tools.client import Address, Encryption

if TYPE_CHECKING:
    Tools = argparse._SubParsersAction[argparse.ArgumentParser]


ACTIONS: Final = ("check", "add", "remove")


def add_tool(tools: Tools) -> None:
    """Add ``headrace regions`` to the tools."""
    regions = tools.add_parser(
        "regions",
        help="show how regions are, let one join or go",
        description="check, or nothing: asks regions how they and the links between them are, and "
        "compares fingerprints of their streams where they know the same changes. add: sets "
        "aa-peers in all regions that are named, new ones among them, and waits until they are "
        "level. remove NUMBER: lets a region go for good; if it is named, too, it is stopped when "
        "the others have all that it knows.",
        epilog="Exit codes: 0 all is well; 1 something needs a person; 2 wrong arguments.",
    )
    regions.add_argument("action", nargs="?", choices=ACTIONS, default=ACTIONS[0])
    regions.add_argument("number", nargs="?", type=int, default=0, help="with remove: which region")
    regions.add_argument(
        "--url",
        dest="urls",
        action="append",
        required=True,
        type=_address,
        metavar="URL",
        help="redis://[[user]:password@]host[:port] of a region; once for each of them. With "
        "rediss:// all connections are encrypted",
    )
    regions.add_argument("--watch", action="store_true", help="go on until it is interrupted")
    regions.add_argument(
        "--every", type=float, default=2.0, metavar="SECONDS", help="with --watch; default: 2"
    )
    _add_encryption(regions)


def _add_encryption(tool: argparse.ArgumentParser) -> None:
    group = tool.add_argument_group("encrypted connections, as redis-cli makes them")
    group.add_argument("--tls", action="store_true", help="encrypt")
    group.add_argument("--sni", default="", metavar="HOST", help="what the server is called")
    group.add_argument("--cacert", default="", metavar="FILE", help="authorities that are trusted")
    group.add_argument("--cacertdir", default="", metavar="DIR", help="a folder of such files")
    group.add_argument("--insecure", action="store_true", help="trust every server")
    group.add_argument("--cert", default="", metavar="FILE", help="the certificate to show")
    group.add_argument("--key", default="", metavar="FILE", help="its private key")


def _address(text: str) -> Address:
    try:
        return Address(text)
    except ValueError:
        raise argparse.ArgumentTypeError("a URL such as redis://:password@host:6379") from None


def run_tool(arguments: argparse.Namespace) -> int:
    """Run it. Return the exit code."""
    from headrace.regions.tools.members import change_members
    from headrace.regions.tools.overview import show_regions

    action: str = arguments.action
    if (action == "remove") != (arguments.number > 0):
        print("remove, and nothing else, needs the number of a region", file=sys.stderr)
        return 2
    try:
        is_encrypted = arguments.tls or any(url.encrypted for url in arguments.urls)
        encryption = Encryption(arguments) if is_encrypted else None
    except OSError as error:
        print(f"A certificate cannot be used: {error.strerror or error}", file=sys.stderr)
        return 2
    if action != ACTIONS[0]:
        return change_members(action, arguments.number, arguments.urls, encryption)
    return show_regions(arguments.urls, encryption, arguments.watch, arguments.every)
