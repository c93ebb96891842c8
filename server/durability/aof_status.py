"""What INFO shows of the append-only file, besides the file's own sizes."""

from __future__ import annotations

import time


class AofStatus:
    """Figures that outlive an open file.

    Attributes:
        write_ok, sync_ok: how the last write and the last sync went.
        lost: why writes are refused until everything has been written anew; mostly empty.
        delayed_syncs: how often a sync was due while one had been running for two seconds.
        syncing: a sync runs in the background.
        rewriting: the data is being written anew.
        rewrite_scheduled: a rewrite starts when nothing else is being written.
        rewrite_started_s: when the rewrite under way started, in seconds since 1970.
        last_rewrite_s: how long the last rewrite took; -1 before the first one.
        last_rewrite_ok: how it went.
        rewrites: rewrites started; failures_in_a_row: failed ones since the last good one.
        last_copied_bytes: what was kept for the last one that changed meanwhile, about.
        keys_loaded, keys_expired: keys of the last snapshot that was loaded, and those of it that
            were left out because their time had come.
        loading_started_s: when loading started; total_bytes and loaded_bytes: how far it is.
    """

    def __init__(self) -> None:
        self.write_ok = True
        self.sync_ok = True
        self.lost = b""
        self.delayed_syncs = 0
        self.syncing = False
        self.rewriting = False
        self.rewrite_scheduled = False
        self.rewrite_started_s = 0
        self.last_rewrite_s = -1
        self.last_rewrite_ok = True
        self.rewrites = 0
        self.failures_in_a_row = 0
        self.last_copied_bytes = 0
        self.keys_loaded = 0
        self.keys_expired = 0
        self.loading_started_s = 0
        self.total_bytes = 0
        self.loaded_bytes = 0

    def loaded_share(self) -> float:
        """How much has been loaded, in per cent."""
        return 100.0 * self.loaded_bytes / self.total_bytes if self.total_bytes else 100.0

    def loading_eta_s(self) -> int:
        """How many seconds loading will still take, as far as is known."""
        elapsed_s = int(time.time()) - self.loading_started_s
        if elapsed_s <= 0:
            return 1
        return elapsed_s * (self.total_bytes - self.loaded_bytes) // (self.loaded_bytes + 1)
