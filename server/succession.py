"""Another build of the server takes the place of this one, at the same sockets.

``make run`` serves as Python at once and has the compiled build made meanwhile. HEADRACE_SUCCESSOR
names the program that will be there in the end. When it is there, and while no client is connected,
this process becomes that program: it ends as after SHUTDOWN, but keeps its listening sockets, and
runs the program with the words of its own command line. A client that comes meanwhile waits in the
queue of a socket, and is served by the successor.

State that is in no file would be lost. So where a client has changed parameters, has changed users
and not saved them, or has loaded a script, or the server has a replica, a master or other regions,
the server stays and logs how to start the successor.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import socket
import sys
from typing import Final

from headrace.server.log import log
from headrace.server.net.listeners import Listeners
from headrace.server.process.system import FIRST_INHERITED, INHERITED, INHERITOR
from headrace.server.state import Server, ShutdownOptions

NAMED_BY: Final = "HEADRACE_SUCCESSOR"
LOOK_S: Final = 0.5  # between two looks for the program
ALONE_S: Final = 0.02  # and then for a moment without clients, which may be short
TURNS: Final = 3  # of the event loop, after which a client that was accepted is known
ABOVE: Final = 100  # descriptors from here on are free for a moment


class Succession:
    """Looks for the successor of one process, which was started in the folder ``place``.

    ``sockets`` are those that the successor gets; none until it takes over.
    """

    def __init__(self, server: Server, listeners: Listeners, place: str) -> None:
        self._server: Final = server
        self._listeners: Final = listeners
        self._place: Final = place
        self._program: Final = os.environ.get(NAMED_BY, "")
        self._said = False
        self._task: asyncio.Task[None] | None = None
        self.sockets: list[socket.socket] = []

    def start(self) -> None:
        """Look from now on, where a successor is named."""
        if self._program:
            self._task = asyncio.get_running_loop().create_task(self._await_it())

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def _await_it(self) -> None:
        while not self.sockets:
            if not os.access(self._program, os.X_OK) or self._server.stopping:
                await asyncio.sleep(LOOK_S)
                continue
            await asyncio.sleep(ALONE_S)
            if self._is_alone():
                await self._give_way()
            elif not self._said:
                self._said = True
                log.info(
                    "The installed build is ready. It takes over when no client is connected and "
                    "no file lacks what CONFIG SET, ACL SETUSER or SCRIPT LOAD have set; or end "
                    "this server and start it again"
                )

    def _is_alone(self) -> bool:
        server = self._server
        if server.clients.sessions or self._listeners.shaking():
            return False
        if server.role.following is not None or server.config.aa_region_id:
            return False
        scripting = server.scripting
        return not server.unsaved and (scripting is None or not scripting.holds_scripts())

    async def _give_way(self) -> None:
        sockets = self._listeners.hold()
        for _ in range(TURNS):
            await asyncio.sleep(0)
        shutdown = self._server.shutdown
        if self._is_alone() and shutdown is not None:
            log.info("The installed build takes over")
            options = [b"nosave"] if self._server.config.appendonly else [b"save"]
            shutdown.begin(ShutdownOptions(options))
        if self._server.stopping:
            self.sockets = sockets
        else:
            await self._listeners.resume(sockets)

    def become(self) -> None:
        """Run the successor in this process."""
        for ignored in (signal.SIGINT, signal.SIGTERM):
            signal.signal(ignored, signal.SIG_DFL)
        kept = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, ABOVE) for each in self.sockets]
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, FIRST_INHERITED + number)  # stays open in the successor
        variables = {**os.environ, INHERITED: str(len(kept)), INHERITOR: str(os.getpid())}
        for name in (NAMED_BY, "PYTHONPATH"):
            variables.pop(name, None)
        os.chdir(self._place)
        sys.stdout.flush()
        os.execve(self._program, [self._program, *sys.argv[1:]], variables)
