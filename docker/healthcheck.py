"""Ask the container's server for a PONG; exit 0 when it answers and 1 when it does not.

The port is ``HEADRACE_PORT``, or what ``--port`` said when process 1 was started, or 6379.
"""

import os
import socket
import sys
from itertools import pairwise
from pathlib import Path


def port() -> int:
    """The port the server was told to listen on."""
    if "HEADRACE_PORT" in os.environ:
        return int(os.environ["HEADRACE_PORT"])
    words = Path(f"/proc/{os.environ.get('HEADRACE_PID', '1')}/cmdline").read_bytes().split(b"\0")
    chosen = [value for name, value in pairwise(words) if name == b"--port"]
    return int(chosen[-1]) if chosen else 6379


def healthy() -> bool:
    """Whether PING is answered; a server that wants a password is healthy, one loading is not."""
    with socket.create_connection(("127.0.0.1", port()), timeout=3) as connection:
        connection.sendall(b"PING\r\n")
        return connection.recv(64).startswith((b"+PONG", b"-NOAUTH"))


if __name__ == "__main__":
    try:
        sys.exit(0 if healthy() else 1)
    except OSError as error:
        sys.exit(f"no answer: {error}")
