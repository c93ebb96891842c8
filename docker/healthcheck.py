"""Ask the container's server for a PONG; exit 0 when it answers and 1 when it does not.

The server is process 1. The system knows where it listens, whatever file, option or CONFIG SET
said so. ``HEADRACE_PORT`` names another port of this machine.
"""

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

TIMEOUT_S = 3
LISTENING = "0A"  # in /proc/net/tcp
ACCEPTS = 0x10000  # among the flags in /proc/net/unix
ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
# It lives: what it answers to those who have no password, come from elsewhere, or cannot know PING.
ALIVE = (b"+PONG", b"-NOAUTH", b"-DENIED", b"-ERR unknown command")


def addresses() -> Iterator[str | tuple[str, int]]:
    """Return where to ask: hosts with ports, and paths of sockets."""
    if "HEADRACE_PORT" in os.environ:
        yield "127.0.0.1", int(os.environ["HEADRACE_PORT"])
        return
    process = Path(f"/proc/{os.environ.get('HEADRACE_PID', '1')}")
    own = set()
    try:
        owner = process.stat()
        if os.geteuid() == 0 and owner.st_uid:  # root in a container may not look at its files
            os.setgid(owner.st_gid)
            os.setuid(owner.st_uid)
        for file in (process / "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                own.add(os.readlink(file))
    except PermissionError:  # another user's: ask where a server listens by default
        yield "127.0.0.1", 6379
        return
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for fields in table(process / "net" / name, 10):
            if fields[3] == LISTENING and f"socket:[{fields[9]}]" in own:
                digits, _, port = fields[1].partition(":")
                host = socket.inet_ntop(family, in_words(bytes.fromhex(digits)))
                yield ANYWHERE.get(host, host), int(port, 16)
    for fields in table(process / "net" / "unix", 7):  # a path may have blanks
        if len(fields) > 7 and int(fields[3], 16) & ACCEPTS and f"socket:[{fields[6]}]" in own:
            yield str(process / "cwd" / fields[7])  # an absolute path stays as it is


def table(path: Path, most: int) -> Iterator[list[str]]:
    """Each line of a table of sockets, if it is there: so many fields, and the rest."""
    if path.exists():
        for line in path.read_text(errors="surrogateescape").splitlines()[1:]:
            yield line.split(None, most)


def in_words(address: bytes) -> bytes:
    """An address as it goes over the net, of words that are in this machine's order."""
    words = [address[at : at + 4] for at in range(0, len(address), 4)]
    return b"".join(int.from_bytes(word, sys.byteorder).to_bytes(4, "big") for word in words)


def is_healthy(address: str | tuple[str, int]) -> bool:
    """Whether PING is answered there; a server that wants a password is healthy, one that loads
    is not."""
    family = socket.AF_UNIX
    if not isinstance(address, str):
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(address)
        connection.sendall(b"PING\r\n")
        return connection.recv(64).startswith(ALIVE)


def main() -> int:
    """0 where the server answers at any of its addresses."""
    reason = "the server listens nowhere"
    try:
        for address in addresses():
            reason = f"no PONG at {address}"
            try:
                if is_healthy(address):
                    return 0
            except OSError as error:
                reason = f"no answer at {address}: {error}"
    except OSError as error:
        reason = f"no server: {error}"
    print(reason, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
