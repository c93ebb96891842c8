"""What keeps the data of one server: the append-only file and the snapshot beside it."""

from __future__ import annotations

from typing import Final

from headrace.server.durability.commit import Committer
from headrace.server.durability.files import Files
from headrace.server.durability.rewriting import Rewriting
from headrace.server.durability.saving import Saving
from headrace.server.durability.snapshot_job import SnapshotJob
from headrace.server.state import Server


class Durability:
    """The parts of durability.

    Args:
        files, committer: those that a process has, unless others are given.

    Attributes:
        files: what is open.
        committer: writes the append-only file, and sends what waits for that.
        saving: writes the snapshot.
        rewriting: turns the append-only file on and off, and writes it anew.
        is_on: what the configuration asks for is done; not before loading begins, and not in tools.
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
        """The snapshot or base that is being written."""
        job = self.files.job
        return job if isinstance(job, SnapshotJob) else None

    def begin(self) -> None:
        """Do from now on what the configuration asks for, and when that changes."""
        hooks = self._server.config.on_change
        hooks["save"] = self.saving.settings_changed
        hooks["stop-writes-on-bgsave-error"] = self.saving.settings_changed
        hooks["appendonly"] = self.rewriting.appendonly_changed
        hooks["aof-timestamp-enabled"] = self.rewriting.timestamps_changed
        self.is_on = True
