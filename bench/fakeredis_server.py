"""fakeredis's TCP server as a process of its own: ``python bench/fakeredis_server.py PORT``.

Two settings of its sockets are made kinder, lest they be measured instead of it: without
TCP_NODELAY each pipelined reply of a lone client waits 40 ms for an acknowledgement, and a queue
of five for new connections drops most of fifty clients for a second.
"""

from __future__ import annotations

import sys
from socketserver import StreamRequestHandler
from typing import Final

from fakeredis import TcpFakeServer

QUEUE: Final = 1024


def main() -> None:
    """Serve until the process is ended."""
    TcpFakeServer.request_queue_size = QUEUE
    StreamRequestHandler.disable_nagle_algorithm = True  # its handler descends from this one
    TcpFakeServer(("127.0.0.1", int(sys.argv[1]))).serve_forever()


if __name__ == "__main__":
    main()
