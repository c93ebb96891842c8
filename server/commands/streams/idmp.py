"""The commands around idempotent production: XCFGSET, XIDMPRECORD and XIDMP.

XIDMP is the container that the feature's first design had. CFGSET and CFGGET are its spellings of
XCFGSET and of a getter; PRODUCERS is ours.

Source: t_stream.c.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.glob import Glob
from headrace.compat.stream_ids import format_id
from headrace.protocol.replies import OK, Map
from headrace.server.commands.streams.args import PRODUCERS_CHANGED, integer, strict_id
from headrace.server.commands.streams.shared import shared_streams
from headrace.server.commands.streams.writing import EVER, record_iid
from headrace.server.commands.typed_keys import stream_at, stream_to_change
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.storage.stream.contents import IDMP_DURATION_S_MAX, IDMP_MAXSIZE_MAX
from headrace.storage.stream.producer import iid_of
from headrace.storage.stream.stream import Stream

_SAME: Final = -1  # leave a limit as it is


class Limits:
    """The limits of an IDMP map that a request gives."""

    def __init__(self) -> None:
        self.duration_s = _SAME
        self.maxsize = _SAME

    def read(self, argv: list[bytes], at: int, duration: bytes, maxsize: bytes) -> None:
        """Read the limits from ``at`` on.

        Args:
            duration, maxsize: the words that stand before them, in lower case.
        """
        while at < len(argv):
            word = argv[at].lower()
            if word not in (duration, maxsize) or at + 1 == len(argv):
                raise CommandError(errors.SYNTAX)
            if word == duration:
                if self.duration_s != _SAME:
                    raise CommandError(errors.IDMP_DURATION_TWICE)
                self.duration_s = integer(argv[at + 1])
                if not 1 <= self.duration_s <= IDMP_DURATION_S_MAX:
                    raise CommandError(errors.IDMP_DURATION_RANGE)
            else:
                if self.maxsize != _SAME:
                    raise CommandError(errors.IDMP_MAXSIZE_TWICE)
                self.maxsize = integer(argv[at + 1])
                if not 1 <= self.maxsize <= IDMP_MAXSIZE_MAX:
                    raise CommandError(errors.IDMP_MAXSIZE_RANGE)
            at += 2
        if self.duration_s == _SAME and self.maxsize == _SAME:
            raise CommandError(errors.IDMP_NOTHING_SET)

    def record(self, key: bytes) -> list[bytes]:
        """XCFGSET with what was given."""
        words = [b"XCFGSET", key]
        if self.duration_s != _SAME:
            words += [b"IDMP-DURATION", b"%d" % self.duration_s]
        if self.maxsize != _SAME:
            words += [b"IDMP-MAXSIZE", b"%d" % self.maxsize]
        return words

    def apply(self, call: Call, key: bytes, stream: Stream) -> None:
        """Set the limits; where one has changed, all iids are forgotten."""
        duration_s = stream.idmp_duration_s if self.duration_s == _SAME else self.duration_s
        maxsize = stream.idmp_maxsize if self.maxsize == _SAME else self.maxsize
        if duration_s == stream.idmp_duration_s and maxsize == stream.idmp_maxsize:
            return
        if call.server.data.region is not None:
            shared_streams().set_limits(call, key, stream, duration_s, maxsize)
            return
        call.server.data.free_later(stream.limit_idmp(duration_s, maxsize))
        call.changed(key, PRODUCERS_CHANGED, self.record(key))


def _stream_to_write(call: Call, key: bytes) -> Stream:
    stream = stream_to_change(call, key)
    if stream is None:
        raise CommandError(errors.NO_SUCH_KEY)
    return stream


def _stream_to_read(call: Call, key: bytes) -> Stream:
    stream = stream_at(call, key)
    if stream is None:
        raise CommandError(errors.NO_SUCH_KEY)
    return stream


def xcfgset(call: Call) -> object:
    """A value that has changed makes the stream forget all iids.

    Reply: OK. Source: xcfgsetCommand.
    """
    key = call.argv[1]
    stream = _stream_to_write(call, key)
    limits = Limits()
    limits.read(call.argv, 2, b"idmp-duration", b"idmp-maxsize")
    limits.apply(call, key, stream)
    return OK


def xidmprecord(call: Call) -> object:
    """Make an iid known for an entry.

    The append-only file's base is made of these. Its entry may have been deleted since: the iid is
    known all the same. It counts as added now.

    Reply: OK, also where the iid is known already. Source: xidmprecordCommand.
    """
    argv = call.argv
    key, pid, iid = argv[1], argv[2], argv[3]
    entry_id = strict_id(argv[4])
    if not pid:
        raise CommandError(errors.RECORD_NO_PID)
    if not iid:
        raise CommandError(errors.RECORD_NO_IID)
    stream = _stream_to_write(call, key)
    if not call.replaying:
        if not stream.contains(entry_id[0], entry_id[1]):
            raise CommandError(errors.NO_SUCH_MESSAGE)
        known = stream.known_id(pid, iid, call.now_ms)
        if known == entry_id:
            return OK
        if known is not None:
            raise CommandError(errors.IID_ELSEWHERE)
    elif stream.known_id(pid, iid, EVER) == entry_id:
        return OK
    record_iid(call, stream, pid, iid_of(iid), entry_id)
    call.changed(key, PRODUCERS_CHANGED, argv)
    return OK


def xidmp_cfgset(call: Call) -> object:
    """As XCFGSET. Reply: OK."""
    key = call.argv[2]
    stream = _stream_to_write(call, key)
    limits = Limits()
    limits.read(call.argv, 3, b"duration", b"maxsize")
    limits.apply(call, key, stream)
    return OK


def xidmp_cfgget(call: Call) -> object:
    """Reply: map of the limits asked for, in that order; of both when none is named."""
    stream = _stream_to_read(call, call.argv[2])
    wanted: list[bytes] = []
    for word in call.argv[3:]:
        name = word.lower()
        if name not in (b"duration", b"maxsize"):
            raise CommandError(errors.SYNTAX)
        if name not in wanted:
            wanted.append(name)
    pairs: list[tuple[object, object]] = []
    for name in wanted or [b"duration", b"maxsize"]:
        limit = stream.idmp_duration_s if name == b"duration" else stream.idmp_maxsize
        pairs.append((name, limit))
    return Map(pairs)


def xidmp_producers(call: Call) -> object:
    """Reply: list of (pid, iids held, ID of the oldest one's entry, ID of the newest one's), in
    byte order of the pids; at most ``n`` of them.
    """
    args = Args(call.argv, 3)
    pattern: Glob | None = None
    most = 0
    while args.left:
        option = args.option()
        if option == b"MATCH":
            pattern = Glob(args.word())
        elif option == b"COUNT":
            most = args.integer()
            if most <= 0:
                raise CommandError(errors.COUNT_NOT_POSITIVE)
        else:
            raise CommandError(errors.SYNTAX)
    stream = _stream_to_read(call, call.argv[2])
    if stream.idmp is None:
        return []
    producers = stream.idmp.producers
    pids = list(producers)
    if pattern is not None:
        pids = [pid for pid in pids if pattern.matches(pid)]
    rows: list[object] = []
    for pid in nsmallest(most, pids) if 0 < most < len(pids) else sorted(pids):
        producer = producers[pid]
        oldest = format_id(*producer.entry_id(producer.oldest()))
        newest = format_id(*producer.entry_id(producer.newest()))
        rows.append([pid, int(producer.count), oldest, newest])
    return rows
