"""Section ``activeactive`` of INFO: this region among the others. It is there with regions only."""

from __future__ import annotations

from headrace.compat.errors import LOADING, READ_ONLY_REPLICA
from headrace.persistence.errors import shown
from headrace.regions.exchange.peers import Peer
from headrace.regions.exchange.regions import Regions
from headrace.regions.exchange.retention import log_of
from headrace.regions.knowledge.records import newest_version
from headrace.regions.knowledge.region import Region
from headrace.server.dispatch.call import Call
from headrace.server.durability.files import Files
from headrace.server.gate import FOLLOWS, LOADING_DATA, REGION_REFUSES, WRITES_REFUSED
from headrace.server.info.sections import add_section
from headrace.server.state import Server
from headrace.storage.sharing import MODES
from headrace.storage.vectors import encode_numbers


def active_active(call: Call) -> list[bytes]:
    """Return the lines of the section: this region, what it knows, and the state of the others."""
    server = call.server
    files = call.durability.files
    regions = server.neighbours
    if server.data.region is None or not isinstance(regions, Regions):
        return []
    region = regions.region
    asked = [] if server.role.follows else sorted(regions.peers)  # a standby asks nobody
    return [
        *_identity(server, region, files),
        *_knowledge(server, region),
        *_intake(regions),
        *_log(files),
        *_checks(regions),
        *[_peer(regions, files, regions.peers[number]) for number in asked],
        *_warnings(regions),
    ]


add_section(b"activeactive", b"Activeactive", active_active)


def _identity(server: Server, region: Region, files: Files) -> list[bytes]:
    reasons = server.gate.reasons
    refusal = b""
    if reasons & LOADING_DATA:
        refusal = LOADING
    elif reasons & REGION_REFUSES:
        refusal = region.refusal
    elif reasons & WRITES_REFUSED:
        refusal = files.write_error
    elif reasons & FOLLOWS:
        refusal = READ_ONLY_REPLICA
    modes = {mode: name for name, mode in MODES.items()}
    return [
        b"aa_region:%d" % region.id,
        b"aa_database:" + region.database,
        b"aa_epoch:%d" % region.epoch,
        b"aa_generation:%d" % region.generation,
        b"aa_mode:" + modes[region.mode],
        b"aa_version:%d" % newest_version(),
        b"aa_writable:%d" % (not refusal),
        b"aa_not_writable_because:" + refusal,
        b"aa_members:" + b",".join([b"%d" % member for member in region.members()]),
    ]


def _knowledge(server: Server, region: Region) -> list[bytes]:
    return [
        b"aa_numbers:" + encode_numbers(region.known()),
        b"aa_synced_numbers:" + encode_numbers(region.synced),
        b"aa_stable_numbers:" + encode_numbers(region.stable()),
        b"aa_promise_ms:%d" % region.promise_ms,
        b"aa_graves:%d" % len(server.data.tombstones),
        b"aa_graves_bytes:%d" % server.account.tombstones_bytes(),
        b"aa_garbage_keys:%d" % (len(region.garbage) + len(server.data.tombstones)),
        b"aa_pairs_merged:%d" % region.pairs_merged,
        b"aa_other_keys_lost:%d" % region.others_lost,
    ]


def _intake(regions: Regions) -> list[bytes]:
    waiting = 0
    for peer in regions.peers.values():
        puller = peer.puller
        waiting += 0 if puller is None else puller.waiting_bytes
    return [
        b"aa_resting_because:" + regions.resting.encode(),
        b"aa_waiting_bytes:%d" % waiting,
        b"aa_callers:%d" % regions.peer_sessions.count,
    ]


def _log(files: Files) -> list[bytes]:
    log = log_of(files)
    if log is None:
        return []
    return [
        b"aa_backlog_bytes:%d" % log.backlog.size_bytes,
        b"aa_log_bytes:%d" % log.size_bytes(),
        b"aa_log_max_bytes:%d" % log.most_bytes,
        b"aa_kept_for_others:%d" % log.is_kept,
    ]


def _checks(regions: Regions) -> list[bytes]:
    checks = regions.checks
    return [
        b"aa_checks:%d" % checks.made,
        b"aa_check_mismatches:%d" % checks.mismatches,
        b"aa_check_mismatch_key:" + shown(checks.key).encode(),
    ]


def _peer(regions: Regions, files: Files, peer: Peer) -> bytes:
    """Return one line; the state comes last, because it is text for people."""
    acknowledged = regions.peer_sessions.acknowledged.get(peer.region, {})
    own = regions.region.origin
    unacknowledged = regions.region.count - acknowledged.get(own, 0)
    log = log_of(files)
    held = 0 if log is None else log.backlog.bytes_after(own, acknowledged.get(own, 0))
    statistics = peer.statistics
    return (
        b"aa_peer%d:host=%b,port=%d,version=%d,lag_ms=%d,answered_ms_ago=%d,missing_records=%d,"
        b"unacknowledged_records=%d,unacknowledged_bytes=%d,received_records=%d,received_bytes=%d,doubled_records=%d,"
        b"gaps=%d,damaged=%d,connections=%d,full_copies=%d,clock_ahead_ms=%d,state=%b"
    ) % (
        peer.region,
        peer.address.host,
        peer.address.port,
        regions.region.versions.get(peer.region, 0),
        regions.lag_ms(peer),
        regions.answered_ms_ago(peer),
        peer.missing(regions.region.known()),
        unacknowledged,
        held,
        statistics.records,
        statistics.received_bytes,
        statistics.doubled,
        statistics.gaps,
        statistics.damaged,
        statistics.connections,
        peer.copies,
        statistics.clock_ahead_ms,
        regions.state_of(peer),
    )


def _warnings(regions: Regions) -> list[bytes]:
    """Return a line for each region that knows of other members than this one does."""
    lines: list[bytes] = []
    for number in sorted(regions.peers):
        peer = regions.peers[number]
        hello = peer.hello
        if hello is not None and regions.members_differ(peer):
            theirs = b",".join([b"%d" % member for member in hello.members])
            lines.append(b"aa_warning:region %d has the members %b" % (number, theirs))
    return lines
