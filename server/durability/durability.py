"""The parts that keep the data of one server, the append-only file and the snapshot, to its end."""

from __future__ import annotations

import contextlib
import logging
from typing import Final

from headrace.persistence.files import remove_file
from headrace.server.durability.commit import Committer
from headrace.server.durability.files import Files
from headrace.server.durability.rewriting import Rewriting
from headrace.server.durability.saving import Saving
from headrace.server.durability.snapshot_job import SnapshotJob
from headrace.server.gate import HALF_JOINED, LOADING_DATA
from headrace.server.state import Server


class Durability:
    """The parts of durability: ``committer`` writes the append-only file, ``saving`` the snapshot.

    ``rewriting`` turns the append-only file on and off, and writes it anew. ``is_on``: the
    configuration is followed; not before loading begins, and not in tools.
    """

    def __init__(
        self, server: Server, files: Files | None = None, committer: Committer | None = None
    ) -> None:
        if files is None:
            files = Files(server.changes, server.clock.started_ms // 1000)
        self.files: Final = files
        self.committer: Final = Committer(server, files) if committer is None else committer
        self.saving: Final = Saving(server, files)
        self.rewriting: Final = Rewriting(server, self.files, self.committer)
        self.is_on = False
        self._server: Final = server

    def job(self) -> SnapshotJob | None:
        """Return the snapshot or base that is being written."""
        job = self.files.job
        return job if isinstance(job, SnapshotJob) else None

    def begin(self) -> None:
        """Follow the configuration from now on, and its changes."""
        hooks = self._server.config.on_change
        hooks["save"] = self.saving.settings_changed
        hooks["stop-writes-on-bgsave-error"] = self.saving.settings_changed
        hooks["appendonly"] = self.rewriting.appendonly_changed
        hooks["aof-timestamp-enabled"] = self.rewriting.timestamps_changed
        self.is_on = True


log: Final = logging.getLogger("headrace")


def ready_to_end(
    server: Server, durability: Durability, save: bool, nosave: bool, force: bool
) -> bool:
    """Save what is to be saved; False when the server has to stay, because data would be lost.

    ``save``: with a snapshot in any case; ``nosave``: in none; neither: where there are save
    points. ``force``: return True whatever fails.
    """
    saving = durability.saving
    rewriting = durability.rewriting
    if not durability.is_on or server.gate.reasons & LOADING_DATA:
        return True  # a snapshot of half of the data would take the place of the whole
    server.gate.finish_work()  # a snapshot would have a part of it
    saving.cancel()
    if not force:
        rewriting.recovery.recover_if_needed()  # else missing files are overlooked
    if rewriting.first_folder is not None or rewriting.recovery.directory is not None:
        if not force:
            log.warning("The first append-only file is being written: not ending now")
            server.host.notify_supervisor("The first append-only file is being written, not ending")
            return False
        log.warning("The first append-only file is being written: ending anyway")
    if not force and not _is_recorded(server, durability.committer):
        log.warning("Not all that was answered is in the append-only file: not ending now")
        server.host.notify_supervisor("The append-only file cannot be written, so the server stays")
        return False
    if not save and (nosave or not server.config.save):
        return True
    if server.gate.reasons & HALF_JOINED:
        log.warning("No snapshot is written while a copy is being joined: the files have all")
        return True
    log.info("Saving the final snapshot before exiting")
    server.host.notify_supervisor("Saving the final snapshot")
    if saving.save_now() or force:
        return True
    server.host.notify_supervisor("The snapshot cannot be saved, so the server stays")
    log.warning("The snapshot could not be saved: not ending now")
    return False


def _is_recorded(server: Server, committer: Committer) -> bool:
    """Return whether all answered writes are in the append-only file, where there is one.

    Under ``appendfsync always`` they are, or the server has failed.
    """
    return server.config.appendfsync == b"always" or committer.settle()


def discard_unfinished(durability: Durability) -> None:
    """Remove the snapshot under way, because the process ends at once."""
    with contextlib.suppress(OSError):
        remove_file(durability.saving.temporary_path)
