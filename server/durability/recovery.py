"""Recovery when the append-only folder vanishes or is replaced while the server runs.

The folder, or one of its files, may be deleted, moved away or replaced, or a file cut or added to.
Later records then go to a file that no start will ever read. So names and lengths are looked at in
each tick of the cron, and before the server ends. Where one is missing or different, everything is
written anew from memory, as when the file is turned on: a base, and an incr file for what comes
after it. Until both are in their place an acknowledgement could not be kept, so writes are refused,
whatever the policy; reads go on. Where the folder cannot be made again it is tried again and again,
and the server does not end by itself, because it has the only copy of the data.

Files that others put into the folder stay there, and none of them is loaded.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import Final

from headrace.persistence.aof.directory import AofDirectory
from headrace.persistence.aof.file import AppendOnlyFile
from headrace.server.durability.commit import Committer
from headrace.server.durability.files import Files, Rewriter
from headrace.server.durability.worker import failure_text
from headrace.server.state import Server

log: Final = logging.getLogger("headrace")

RETRY_S: Final = 2.0
REASON: Final = b"a file of the append-only folder was removed, replaced or changed"


class Recovery:
    """Refills a folder that has vanished, ``directory``; None while all is well."""

    def __init__(
        self, server: Server, files: Files, committer: Committer, rewriter: Rewriter
    ) -> None:
        self.directory: AofDirectory | None = None
        self._server: Final = server
        self._files: Final = files
        self._committer: Final = committer
        self._rewriter: Final = rewriter
        self._left: AppendOnlyFile | None = None  # the file that was written to
        self._next_try_s = 0.0
        self._asked_to_end = 0  # the signal that came while it was at work

    def recover_if_needed(self) -> bool:
        """Write everything anew if a file is missing, or try that again; return whether it is."""
        if self.directory is not None:
            self._try_again()
            return True
        rewriter = self._rewriter
        aof = self._files.aof
        directory = self._files.directory
        if aof is None or directory is None or not aof.named:
            return False
        committer = self._committer
        missing = aof.path
        if aof.is_in_place() and aof.is_whole(not committer.busy):
            missing = b""
            if not rewriter.is_running():  # which changes the others
                missing = directory.missing(aof.path)
        if not missing:
            return False
        log.warning(
            "%s was removed, replaced or changed from outside while the server runs. "
            "Everything is written anew from memory; writes are refused until that is done",
            os.fsdecode(missing),
        )
        self._begin(directory)
        return True

    def _begin(self, directory: AofDirectory) -> None:
        committer = self._committer
        rewriter = self._rewriter
        assert self._files.aof is not None
        if rewriter.is_running() and self._files.job is not None:
            self._files.job.cancel()
        self._files.aof.named = False  # what waits for its syncs waits for the new base
        self._files.status.lost = REASON
        self.directory = directory
        self._left = self._files.aof
        self._next_try_s = 0.0
        committer.settle()  # sends replies; what cannot be written is in memory
        if not committer.failed:
            committer.close_files()
            self._try_again()

    def _try_again(self) -> None:
        rewriter = self._rewriter
        directory = self.directory
        left = self._left
        assert directory is not None
        assert left is not None
        now_s = time.monotonic()
        if (
            rewriter.first_folder is not None
            or self._files.job is not None
            or now_s < self._next_try_s
        ):
            return
        self._next_try_s = now_s + RETRY_S
        self._asked_to_end = 0
        try:
            directory.take_over(left.is_in_place())  # then the other files are ours, too
        except Exception as error:
            log.warning("The append-only folder cannot be made anew: %s", failure_text(error))
            return
        rewriter.first_folder = directory
        rewriter.rewrite_soon()

    def will_end(self, number: int) -> bool:
        """Send a signal again when all is in its place; False where nothing is under way.

        An attempt that fails drops it: the server does not end by itself some hours later.
        """
        rewriter = self._rewriter
        if self.directory is None or rewriter.first_folder is None:
            return False
        self._asked_to_end = number
        return True

    def done(self) -> None:
        """Accept writes again, because all is in its place or no longer wanted."""
        if self.directory is not None:
            self.directory = None
            self._left = None
            self._files.status.lost = b""
            self._committer.show_trouble(b"")
            if self._asked_to_end:
                loop = asyncio.get_running_loop()
                loop.call_soon(self._server.host.ask_to_end, self._asked_to_end)
                self._asked_to_end = 0
