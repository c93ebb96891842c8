"""Section ``persistence`` of INFO."""

from __future__ import annotations

from headrace.server.durability.aof_status import AofStatus
from headrace.server.durability.durability import Durability
from headrace.server.durability.files import Files
from headrace.server.gate import LOADING_DATA
from headrace.server.state import Server


def persistence(server: Server, durability: Durability) -> list[bytes]:
    """The lines of the section: loading, what is being written, snapshots, the append-only file."""
    loading = bool(server.gate.reasons & LOADING_DATA)
    return [
        b"loading:%d" % loading,
        b"async_loading:0",
        *_job(durability),
        *_snapshots(server, durability),
        *_rewrites(server, durability),
        b"backup_in_progress:0",
        b"module_fork_in_progress:0",
        b"module_fork_last_cow_size:0",
        *_open_file(durability.files),
        *(_loading(durability.files.status) if loading else ()),
    ]


def _job(durability: Durability) -> list[bytes]:
    """The snapshot or base that is being written."""
    job = durability.job()
    copied = 0 if job is None else job.copied_bytes
    return [
        b"current_cow_peak:%d" % copied,
        b"current_cow_size:%d" % copied,
        b"current_cow_size_age:0",
        b"current_fork_perc:%.2f" % (0.0 if job is None else job.share()),
        b"current_save_keys_processed:%d" % (0 if job is None else job.keys_done),
        b"current_save_keys_total:%d" % (0 if job is None else job.keys_total),
    ]


def _snapshots(server: Server, durability: Durability) -> list[bytes]:
    files = durability.files
    saves = durability.saving.status
    job = durability.job()
    saving = durability.saving.is_running()
    now_s = server.clock.now_ns // 1_000_000_000
    return [
        b"rdb_changes_since_last_save:%d" % server.changes.dirty,
        b"rdb_bgsave_in_progress:%d" % saving,
        b"rdb_last_save_time:%d" % files.last_save_s,
        b"rdb_last_bgsave_status:" + _word(saves.last_ok),
        b"rdb_last_bgsave_time_sec:%d" % saves.last_duration_s,
        b"rdb_current_bgsave_time_sec:%d"
        % (max(0, now_s - job.started_s) if saving and job is not None else -1),
        b"rdb_saves:%d" % saves.saves,
        b"rdb_saves_consecutive_failures:%d" % saves.failures_in_a_row,
        b"rdb_last_cow_size:%d" % saves.last_copied_bytes,
        b"rdb_last_load_keys_expired:%d" % files.status.keys_expired,
        b"rdb_last_load_keys_loaded:%d" % files.status.keys_loaded,
    ]


def _rewrites(server: Server, durability: Durability) -> list[bytes]:
    status = durability.files.status
    now_s = server.clock.now_ns // 1_000_000_000
    return [
        b"aof_enabled:%d" % durability.rewriting.is_on,
        b"aof_rewrite_in_progress:%d" % status.rewriting,
        b"aof_rewrite_scheduled:%d" % status.rewrite_scheduled,
        b"aof_last_rewrite_time_sec:%d" % status.last_rewrite_s,
        b"aof_current_rewrite_time_sec:%d"
        % (max(0, now_s - status.rewrite_started_s) if status.rewriting else -1),
        b"aof_last_bgrewrite_status:" + _word(status.last_rewrite_ok),
        b"aof_rewrites:%d" % status.rewrites,
        b"aof_rewrites_consecutive_failures:%d" % status.failures_in_a_row,
        b"aof_last_write_status:" + _word(status.write_ok and status.sync_ok and not status.lost),
        b"aof_last_cow_size:%d" % status.last_copied_bytes,
    ]


def _open_file(files: Files) -> list[bytes]:
    """The append-only file, where there is one."""
    aof = files.aof
    if aof is None:
        return []
    status = files.status
    return [
        b"aof_current_size:%d" % aof.total_bytes,
        b"aof_base_size:%d" % aof.base_bytes,
        b"aof_pending_rewrite:%d" % status.rewrite_scheduled,
        b"aof_buffer_length:%d" % aof.buffer_bytes,
        b"aof_pending_bio_fsync:%d" % status.syncing,
        b"aof_delayed_fsync:%d" % status.delayed_syncs,
    ]


def _loading(status: AofStatus) -> list[bytes]:
    return [
        b"loading_start_time:%d" % status.loading_started_s,
        b"loading_total_bytes:%d" % status.total_bytes,
        b"loading_rdb_used_mem:0",
        b"loading_loaded_bytes:%d" % status.loaded_bytes,
        b"loading_loaded_perc:%.2f" % status.loaded_share(),
        b"loading_eta_seconds:%d" % status.loading_eta_s(),
    ]


def _word(ok: bool) -> bytes:
    return b"ok" if ok else b"err"
