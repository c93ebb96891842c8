"""Jobs on streams: what ``headrace-pipeline`` runs, as functions from frame to frame."""

from __future__ import annotations

from pyspark_headrace.jobs.archive import (
    archive_batches,
    read_archive,
    read_manifest,
    trim_archived,
    verify,
)
from pyspark_headrace.jobs.lag import GroupLag, group_lags
from pyspark_headrace.jobs.reconcile import (
    corrections,
    database_side,
    entries_side,
    reconcile,
    totals_side,
)
from pyspark_headrace.jobs.replay import append_new, between, restore
from pyspark_headrace.jobs.totals import append_changes, latest_totals, totals
from pyspark_headrace.jobs.windows import top, windows

__all__ = [
    "GroupLag",
    "append_changes",
    "append_new",
    "archive_batches",
    "between",
    "corrections",
    "database_side",
    "entries_side",
    "group_lags",
    "latest_totals",
    "read_archive",
    "read_manifest",
    "reconcile",
    "restore",
    "top",
    "totals",
    "totals_side",
    "trim_archived",
    "verify",
    "windows",
]
