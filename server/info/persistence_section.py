"""Section ``persistence`` of INFO."""

from __future__ import annotations

from server.state import LOADING_DATA, Server


def persistence(server: Server) -> list[bytes]:
    """The lines of the section: loading, snapshots (there are none), the append-only file."""
    status = server.aof_status
    loading = bool(server.special & LOADING_DATA)
    now_s = server.clock_ns // 1_000_000_000
    lines = [
        b"loading:%d" % loading,
        b"async_loading:0",
        b"current_cow_peak:0",
        b"current_cow_size:0",
        b"current_cow_size_age:0",
        b"current_fork_perc:0.00",
        b"current_save_keys_processed:0",
        b"current_save_keys_total:0",
        b"rdb_changes_since_last_save:%d" % server.dirty,
        b"rdb_bgsave_in_progress:0",
        b"rdb_last_save_time:%d" % server.last_save_s,
        b"rdb_last_bgsave_status:ok",
        b"rdb_last_bgsave_time_sec:-1",
        b"rdb_current_bgsave_time_sec:-1",
        b"rdb_saves:0",
        b"rdb_last_cow_size:0",
        b"rdb_last_load_keys_expired:%d" % status.keys_expired,
        b"rdb_last_load_keys_loaded:%d" % status.keys_loaded,
        b"aof_enabled:%d" % (server.aof is not None),
        b"aof_rewrite_in_progress:%d" % status.rewriting,
        b"aof_rewrite_scheduled:%d" % status.rewrite_scheduled,
        b"aof_last_rewrite_time_sec:%d" % status.last_rewrite_s,
        b"aof_current_rewrite_time_sec:%d"
        % (now_s - status.rewrite_started_s if status.rewriting else -1),
        b"aof_last_bgrewrite_status:" + _word(status.last_rewrite_ok),
        b"aof_rewrites:%d" % status.rewrites,
        b"aof_rewrites_consecutive_failures:%d" % status.failures_in_a_row,
        b"aof_last_write_status:" + _word(status.write_ok and status.sync_ok),
        b"aof_last_cow_size:0",
        b"module_fork_in_progress:0",
        b"module_fork_last_cow_size:0",
    ]
    aof = server.aof
    if aof is not None:
        lines += [
            b"aof_current_size:%d" % aof.total_bytes,
            b"aof_base_size:%d" % aof.base_bytes,
            b"aof_pending_rewrite:%d" % status.rewrite_scheduled,
            b"aof_buffer_length:%d" % aof.buffer_bytes,
            b"aof_pending_bio_fsync:%d" % status.syncing,
            b"aof_delayed_fsync:%d" % status.delayed_syncs,
        ]
    if loading:
        lines += [
            b"loading_start_time:%d" % status.loading_started_s,
            b"loading_total_bytes:%d" % status.total_bytes,
            b"loading_rdb_used_mem:0",
            b"loading_loaded_bytes:%d" % status.loaded_bytes,
            b"loading_loaded_perc:%.2f" % status.loaded_share(),
            b"loading_eta_seconds:%d" % status.loading_eta_s(),
        ]
    return lines


def _word(ok: bool) -> bytes:
    return b"ok" if ok else b"err"
