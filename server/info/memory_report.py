"""MEMORY DOCTOR: what is odd about the memory in use. Redis's cases and limits, in our words."""

from __future__ import annotations

from typing import Final

from headrace.server.clients.session import REPLICA
from headrace.server.durability.files import Files
from headrace.server.info.sections import MemoryFigures
from headrace.server.state import Server
from headrace.server.statistics.memory import anonymous_huge_bytes, human

_LEAST_BYTES: Final = 5 << 20  # of an instance that is worth a look
_NOT_DATA_BYTES: Final = 64 << 20  # what the interpreter and its code take, at most
_LARGE_CLIENT_BYTES: Final = 200 << 10
_LARGE_REPLICA_BYTES: Final = 10 << 20
_MANY_SCRIPTS: Final = 1000


def doctor(server: Server, files: Files) -> bytes:
    """What is odd, and what may help."""
    figures = MemoryFigures(server, files)
    if figures.used < _LEAST_BYTES:
        return b"There is too little data here to say anything about its memory.\n"
    reports: list[bytes] = []
    if figures.peak > figures.used * 3 // 2:
        reports.append(
            b"Peak memory: up to %b were in use once, much more than now. New data will use what "
            b"the allocator kept; MEMORY PURGE gives some of it back." % human(figures.peak)
        )
    if figures.resident > _NOT_DATA_BYTES + figures.used * 7 // 5:
        reports.append(
            b"High total RSS: the process has %b, and uses %b. MEMORY PURGE gives back what the "
            b"allocator holds free." % (human(figures.resident), human(figures.used))
        )
    replicas = server.clients.count(REPLICA)
    clients = len(server.clients.sessions) - replicas
    if clients and figures.clients // clients > _LARGE_CLIENT_BYTES:
        reports.append(
            b"Big client buffers: clients hold %b, mostly replies that they do not read. CLIENT "
            b"LIST shows them by tot-mem; client-output-buffer-limit and maxmemory-clients bound "
            b"them." % human(figures.clients)
        )
    if replicas and figures.unread_by_replicas // replicas > _LARGE_REPLICA_BYTES:
        reports.append(
            b"Big replica buffers: %b wait for replicas, which are slower than the writes. "
            b"INFO replication shows how far each of them is." % human(figures.unread_by_replicas)
        )
    if figures.scripts.scripts > _MANY_SCRIPTS:
        reports.append(
            b"Many scripts: %d of them are kept. A script that takes what changes as KEYS and ARGV "
            b"is kept once; SCRIPT FLUSH forgets all." % figures.scripts.scripts
        )
    if anonymous_huge_bytes() > figures.resident // 2:
        reports.append(
            b"Huge pages: most of the memory lies in transparent huge pages, which wastes some "
            b"and makes latency uneven. They can be turned off for the whole machine."
        )
    if not reports:
        return b"Nothing looks odd about the memory in use.\n"
    lines = [b" * %b\n" % report for report in reports]
    return b"This is what looks odd:\n\n" + b"\n".join(lines)
