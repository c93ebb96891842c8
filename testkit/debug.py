"""DEBUG, for tests and for the curious; ``enable-debug-command`` allows it.

DIGEST is a fingerprint of the data, the same that Redis computes for the same data. The order of
keys does not matter, while that of a stream's entries does: see ``storage.digest``. LISTPACK,
QUICKLIST and HTSTATS-KEY show how a value is laid out in memory. The first two print it on the
standard output, as in Redis. Source: debug.c, computeDatasetDigest and xorObjectDigest.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.glob import matches
from headrace.compat.numbers import parse_integer
from headrace.compat.parameters import memory_size
from headrace.persistence.errors import PersistenceError
from headrace.protocol.doubles import in_digits
from headrace.protocol.packing import packed_replies
from headrace.protocol.replies import (
    OK,
    Attributed,
    BigNumber,
    ErrorReply,
    Map,
    Push,
    Set,
    Status,
    Verbatim,
)
from headrace.server.clients.session import allowed_by
from headrace.server.config.files import rewrite
from headrace.server.dispatch.args import at_least
from headrace.server.dispatch.call import Call
from headrace.server.eviction import last_ms
from headrace.server.loading.starting import reload_aof, reload_snapshot, user_lines
from headrace.storage.digest import DIGEST_BYTES, Digest
from headrace.storage.entry import NO_EXPIRY, Entry
from headrace.storage.faces import face
from headrace.storage.hash.hash import Hash
from headrace.storage.hash.timed import TimedTable
from headrace.storage.keyspace import Databases
from headrace.storage.list.list import List
from headrace.storage.list.piece import PLAIN_THRESHOLD
from headrace.storage.list.row import Row
from headrace.storage.packed.strings import EMPTY_BYTES, text_bytes, unpack
from headrace.storage.packed.table import Table, elements
from headrace.storage.set.set import Set as SetValue
from headrace.storage.sorted_set.sorted_set import Large, SortedSet, pairs_of
from headrace.storage.string.string import string_bytes
from headrace.testkit.tools import CLOCKS, FAULTS, clean_tool, clock_tool, fault_tool

_EXPIRES: Final = b"!!expire!!"


def _add_value(digest: Digest, entry: Entry) -> None:
    """Add the value of a key, and that it expires where it does."""
    face(entry.value).add_to(digest)
    if entry.expire_ms != NO_EXPIRY:
        digest.toggle(_EXPIRES)


def value_digest(entry: Entry | None) -> bytes:
    """Return the digest of one value, as DEBUG DIGEST-VALUE shows it; all zeros without a value."""
    digest = Digest(in_digits)
    if entry is not None:
        _add_value(digest, entry)
    return digest.hexadecimal()


def data_digest(databases: Databases) -> bytes:
    """Return the digest of all data."""
    total = Digest()
    for db in databases:
        if not len(db):
            continue
        total.mix(db.index.to_bytes(4, "big"))
        for entry in db.every():
            digest = Digest(in_digits)
            digest.mix(entry.key)
            _add_value(digest, entry)
            total.toggle(digest.value.to_bytes(DIGEST_BYTES, "big"))
    return total.hexadecimal()


_AFTER_ATTRIBUTE = b"Some real reply following the attribute"
_BESIDE_PUSH = b"Some real reply following the push reply"


def _sample_reply(kind: bytes, resp3: bool) -> object:
    """Return the values that Redis uses, so that a client's tests can run against either.

    Raises: CommandError for a type that there is not, and for a push in RESP2.
    """
    if kind == b"attrib":
        return Attributed([(b"key-popularity", [b"key:123", 90])], _AFTER_ATTRIBUTE)
    if kind == b"push":
        if not resp3:
            raise CommandError(errors.PUSH_NEEDS_RESP3)
        # What is pushed while a command runs follows its reply.
        return packed_replies([_BESIDE_PUSH, Push([b"server-cpu-usage", 42])], True)
    if kind not in _SAMPLES:
        raise CommandError(errors.BAD_PROTOCOL_TYPE)
    return _SAMPLES[kind]


_SAMPLES: dict[bytes, object] = {
    b"string": b"Hello World",
    b"integer": 12345,
    b"double": 3.141,
    b"bignum": BigNumber(1234567999999999999999999999999999999),
    b"null": None,
    b"array": [0, 1, 2],
    b"set": Set([0, 1, 2]),
    b"map": Map([(0, False), (1, True), (2, False)]),
    b"verbatim": Verbatim(b"This is a verbatim\nstring"),
    b"true": True,
    b"false": False,
}


_LISTPACKS: Final = (b"listpack", b"listpackex")
_HEAD_BYTES: Final = EMPTY_BYTES - 1  # of a _listpack, before its first entry


def _listpack(call: Call) -> object:
    """Print the entries of the listpack that Redis has in the place of a small value."""
    value = _entry(call, call.argv[2]).value
    if face(value).encoding(call.argv[2]) not in _LISTPACKS:
        raise CommandError(errors.NOT_A_LISTPACK)
    texts = _texts(value)
    sizes = [int(text_bytes(text)) for text in texts]
    print(f"{{total bytes {EMPTY_BYTES + sum(sizes)}}} {{num entries {len(texts)}}}")
    offset = _HEAD_BYTES
    for index, text in enumerate(texts):
        print(f"{{index {index}, offset {offset}, entry bytes {sizes[index]}}} [{text!r}]")
        offset += sizes[index]
    sys.stdout.flush()
    return Status(b"Listpack structure printed on stdout")


def _texts(value: object) -> list[bytes]:
    """Return the entries of a small value in order, all as text."""
    if isinstance(value, List):
        return value.strings()
    if isinstance(value, SetValue):
        return value.members()
    texts: list[bytes] = []
    if isinstance(value, SortedSet):
        for run in value.runs(0, value.size()):
            for member, score in pairs_of(run):
                texts += [member, in_digits(score)]
    elif isinstance(value, Hash):
        for pair in value.elements():
            texts += unpack(pair)
            if value.is_timed():
                texts.append(b"%d" % value.deadline_ms(texts[-2]))
    return texts


def _nodes(call: Call) -> object:
    """Print the nodes of the quicklist that Redis has for a large list; ``1`` adds the elements."""
    value = _entry(call, call.argv[2]).value
    rep = value.rep if isinstance(value, List) else None
    if not isinstance(rep, Row) or rep.is_listpack:
        raise CommandError(errors.NOT_A_QUICKLIST)
    strings = value.strings() if isinstance(value, List) and call.argv[3:] == [b"1"] else []
    print(f"{{count {rep.count}}} {{nodes {rep.nodes()}}} {{fill {rep.limits.fill}}}")
    at = 0
    for number in range(rep.nodes()):
        place = int(rep.low) + number
        count = rep.node_count(place)
        print(f"{{node {number}, bytes {rep.node_bytes(place)}, count {count}}}")
        for text in strings[at : at + count]:
            print(f"    [{text!r}]")
        at += count
    sys.stdout.flush()
    return Status(b"Quicklist structure printed on stdout")


def _table_statistics(call: Call) -> object:
    """Return how a large value is spread over the buckets of its table; FULL looks at them all."""
    value = _entry(call, call.argv[2]).value
    table = _table(value)
    if table is None:
        raise CommandError(errors.NOT_A_HASH_TABLE)
    lines = [
        b"Hash table 0 stats (main hash table):",
        b" table size: %d" % table.buckets,
        b" number of elements: %d" % table.count,
    ]
    if call.argv[3:] and call.argv[3].lower() == b"full":
        lines += _distribution(table)
    return Verbatim(b"\n".join(lines) + b"\n")


def _table(value: object) -> Table | None:
    rep: object = value.rep if isinstance(value, (Hash, SetValue, SortedSet)) else None
    if isinstance(rep, (TimedTable, Large)):
        return rep.table
    return rep if isinstance(rep, Table) else None


def _distribution(table: Table) -> list[bytes]:
    """Return how many buckets have how many elements."""
    buckets_of: dict[int, int] = {}
    for directory in table.directories:
        for bucket in directory:
            length = int(elements(bucket, table.kind))
            buckets_of[length] = buckets_of.get(length, 0) + 1
    total = int(table.buckets)
    used = total - buckets_of.get(0, 0)
    mean = b"%.2f" % (int(table.count) / used if used else 0.0)
    lines = [
        b" different slots: %d" % used,
        b" max chain length: %d" % max(buckets_of),
        b" avg chain length (counted): " + mean,
        b" avg chain length (computed): " + mean,
        b" Chain length distribution:",
    ]
    for length in sorted(buckets_of):
        count = buckets_of[length]
        lines.append(b"   %d: %d (%.2f%%)" % (length, count, 100 * count / total))
    return lines


log: Final = logging.getLogger("headrace")

_PACKED_MAX: Final = (4 << 30) - (1 << 20)
_LRU_MASK: Final = 0xFFFFFF


def debug(call: Call) -> object:
    """HELP lists the subcommands. Raises: ``enable-debug-command`` does not allow this client."""
    if not allowed_by(call.server.config.enable_debug_command, call.session):
        raise CommandError(errors.DEBUG_NOT_ALLOWED)
    argv = call.argv
    tool = TOOLS.get(argv[1].lower())
    if tool is None or not tool.least <= len(argv) <= tool.most:
        raise CommandError(errors.bad_subcommand(b"debug", argv[1]))
    return tool.run(call)


class Tool:
    """A subcommand with ``least`` to ``most`` words; HELP shows its ``syntax`` and ``summary``."""

    def __init__(
        self, run: Callable[[Call], object], least: int, most: int, syntax: str, summary: str
    ) -> None:
        self.run: Final = run
        self.least: Final = least
        self.most: Final = most
        self.syntax: Final = syntax
        self.summary: Final = summary


def _help(call: Call) -> object:
    lines: list[object] = [
        Status(b"DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
    ]
    for name in sorted(TOOLS):
        tool = TOOLS[name]
        lines.append(Status(b"%b %b" % (name.upper(), tool.syntax.encode())))
        lines.append(Status(b"    " + tool.summary.encode()))
    return lines


# Time


def _sleep(call: Call) -> object:
    try:
        seconds = float(call.argv[2])
    except ValueError:
        seconds = 0.0
    if 0 < seconds < 1e9:
        time.sleep(seconds)
    return OK


def _set_active_expire(call: Call) -> object:
    call.server.data.active_expire = _loose(call.argv[2]) != 0
    return OK


def _allow_access_expired(call: Call) -> object:
    data = call.server.data
    data.shows_expired = _loose(call.argv[2]) != 0
    data.enable_expiry(True)
    return OK


def _pause_cron(call: Call) -> object:
    call.server.cron_paused = _loose(call.argv[2]) != 0
    return OK


def _loose(word: bytes) -> int:
    return parse_integer(word) or 0


# Data


def _entry(call: Call, key: bytes) -> Entry:
    found = call.db.peek(key)
    if found is None:
        raise CommandError(errors.NO_SUCH_KEY)
    return found


def _object(call: Call) -> object:
    found = _entry(call, call.argv[2])
    text = string_bytes(found.value)
    used_ms = last_ms(found.usage)
    idle_s = max(0, call.now_ms - used_ms) // 1000
    line = b"Value at:%#x refcount:1 encoding:%b serializedlength:%d lru:%d lru_seconds_idle:%d" % (
        id(found.value),
        face(found.value).encoding(found.key),
        face(found.value).used_bytes(0) if text is None else len(text) + 1,
        used_ms // 1000 & _LRU_MASK,
        idle_s,
    )
    if isinstance(found.value, List):
        line += _quicklist(call, found.value)
    return Status(line)


def _quicklist(call: Call, value: List) -> bytes:
    nodes, fill, size = value.quicklist()
    if not nodes:
        return b""
    depth = call.server.config.text(b"list-compress-depth")
    return (
        b" ql_nodes:%d ql_avg_node:%.2f ql_listpack_max:%d ql_compressed:%d ql_uncompressed_size:%d"
        % (nodes, value.size() / nodes, fill, depth != b"0", size)
    )


def _digest(call: Call) -> object:
    return Status(data_digest(call.server.data.dbs))


def _digest_value(call: Call) -> object:
    return [Status(value_digest(call.db.peek(key))) for key in call.argv[2:]]


def _populate(call: Call) -> object:
    argv = call.argv
    count = at_least(argv[2], 0, errors.NOT_POSITIVE)
    prefix = argv[3] if len(argv) > 3 else b"key"
    size = at_least(argv[4], 0, errors.NOT_POSITIVE) if len(argv) > 4 else 0
    db = call.db
    for number in range(count):
        key = b"%b:%d" % (prefix, number)
        if db.lives(key, call.now_ms):
            continue
        value = b"value:%d" % number
        db.put(key, value[:size].ljust(size, b"\0") if size else value, call.now_ms)
    return OK


def _reload(call: Call) -> object:
    options = {word.upper() for word in call.argv[2:]}
    if options - {b"MERGE", b"NOFLUSH", b"NOSAVE"}:
        raise CommandError(errors.BAD_RELOAD_OPTION)
    server = call.server
    saving = call.durability.saving
    if b"NOSAVE" not in options:
        saving.cancel()  # it would take the place of the newer one
        if not saving.save_now():
            raise CommandError(errors.SAVE_FAILED)
    try:
        reload_snapshot(server, saving.path, b"NOFLUSH" not in options, b"MERGE" in options)
    except PersistenceError as error:
        log.warning("DEBUG RELOAD failed: %s", error)
        raise CommandError(errors.RELOAD_FAILED) from None
    log.info("Data reloaded by DEBUG RELOAD")
    return OK


def _loadaof(call: Call) -> object:
    try:
        reload_aof(call.server, call.durability)
    except PersistenceError as error:
        log.warning("DEBUG LOADAOF failed: %s", error)
        raise CommandError(errors.LOADAOF_FAILED) from None
    log.info("Append-only file loaded by DEBUG LOADAOF")
    return OK


# The rest


def _protocol(call: Call) -> object:
    return _sample_reply(call.argv[2].lower(), call.session.resp3)


def _change_repl_id(call: Call) -> object:
    call.server.role.change_id()
    log.info("Replication ID changed by DEBUG CHANGE-REPL-ID")
    return OK


def _stringmatch_len(call: Call) -> object:
    return int(matches(call.argv[2], call.argv[3]))


def _packed_threshold(call: Call) -> object:
    size = memory_size(call.argv[2])
    if size is None or size > _PACKED_MAX:
        raise CommandError(errors.BAD_PACKED_THRESHOLD)
    PLAIN_THRESHOLD.string_bytes = size
    return OK


def _reply_buffer(call: Call) -> object:
    option = call.argv[2].lower()
    value = call.argv[3].lower()
    if option == b"peak-reset-time":
        if value not in (b"never", b"reset") and parse_integer(value) is None:
            raise CommandError(errors.NOT_AN_INTEGER)
    elif option != b"resizing":
        raise CommandError(errors.bad_subcommand(b"debug", call.argv[1]))
    return OK


def _allow_all_to_scripts(call: Call) -> object:
    scripting = call.server.scripting
    if scripting is not None:
        scripting.allows_all = _loose(call.argv[2]) != 0
    return OK


def _rewrite_config(call: Call) -> object:
    try:
        rewrite(call.server.config, user_lines(call.server))
    except OSError as error:
        reason = (error.strerror or str(error)).encode()
        raise CommandError(b"ERR CONFIG-REWRITE-FORCE-ALL failed: " + reason) from None
    return OK


def _log(call: Call) -> object:
    log.warning("DEBUG LOG: %s", call.argv[2].decode("utf-8", "backslashreplace"))
    return OK


def _error(call: Call) -> object:
    return ErrorReply(call.argv[2])


def _nothing(call: Call) -> object:
    return OK


TOOLS: Final[dict[bytes, Tool]] = {
    b"clean": Tool(clean_tool, 2, 2, "", "Brings the server back to its start, for the next test."),
    b"clock": Tool(clock_tool, 3, 4, CLOCKS, "Freezes, moves or shows the server's time."),
    b"fault": Tool(
        *(fault_tool, 3, 1 << 10, FAULTS),
        "Delays or refuses requests, or loses replies.",
    ),
    b"help": Tool(_help, 2, 2, "", "Lists the subcommands."),
    b"sleep": Tool(_sleep, 3, 3, "<seconds>", "Stops the whole server for a while."),
    b"set-active-expire": Tool(
        _set_active_expire, 3, 3, "<0|1>", "Whether keys expire before anybody asks for them."
    ),
    b"set-allow-access-expired": Tool(
        _allow_access_expired, 3, 3, "<0|1>", "Whether what has expired can be read while it stays."
    ),
    b"pause-cron": Tool(_pause_cron, 3, 3, "<0|1>", "Whether periodic work rests."),
    b"object": Tool(_object, 3, 3, "<key>", "How a value is kept."),
    b"listpack": Tool(_listpack, 3, 3, "<key>", "Prints the entries of a small value."),
    b"quicklist": Tool(
        _nodes, 3, 4, "<key> [<0|1>]", "Prints the nodes of a large list; 1: its elements, too."
    ),
    b"htstats-key": Tool(
        _table_statistics, 3, 4, "<key> [full]", "How a large value is spread over its table."
    ),
    b"digest": Tool(_digest, 2, 2, "", "A fingerprint of all data, equal to Redis's."),
    b"digest-value": Tool(
        _digest_value, 2, 1 << 20, "[<key> ...]", "The fingerprints of some values."
    ),
    b"populate": Tool(
        _populate, 3, 5, "<count> [<prefix>] [<size>]", "Makes that many strings, unrecorded."
    ),
    b"reload": Tool(
        _reload, 2, 5, "[NOSAVE] [NOFLUSH] [MERGE]", "Saves a snapshot and loads it again."
    ),
    b"loadaof": Tool(_loadaof, 2, 2, "", "Loads the append-only file again."),
    b"protocol": Tool(_protocol, 3, 3, "<type>", "Replies with a value of the type named."),
    b"change-repl-id": Tool(_change_repl_id, 2, 2, "", "Draws a new replication ID."),
    b"stringmatch-len": Tool(
        _stringmatch_len, 4, 4, "<pattern> <string>", "Whether a glob pattern fits a string."
    ),
    b"quicklist-packed-threshold": Tool(
        _packed_threshold, 3, 3, "<size>", "Cuts lists as if longer strings stood alone."
    ),
    b"replybuffer": Tool(
        _reply_buffer, 4, 4, "<option> <value>", "Checked, without effect on our buffers."
    ),
    b"config-rewrite-force-all": Tool(
        _rewrite_config, 2, 2, "", "Writes the configuration file as CONFIG REWRITE does."
    ),
    b"log": Tool(_log, 3, 3, "<message>", "Writes a line to the log."),
    b"error": Tool(_error, 3, 3, "<text>", "Replies with that error."),
    b"leak": Tool(_nothing, 3, 3, "<string>", "Without effect: memory does not leak."),
    b"dict-resizing": Tool(_nothing, 3, 3, "<0|1>", "Without effect on Python's dicts."),
    b"set-skip-checksum-validation": Tool(
        _nothing, 3, 3, "<0|1>", "Without effect: there are no RDB payloads."
    ),
    b"keysizes-hist-assert": Tool(
        _nothing, 3, 3, "<0|1>", "Without effect: sizes are looked at when they are asked for."
    ),
    b"set-disable-deny-scripts": Tool(
        _allow_all_to_scripts, 3, 3, "<0|1>", "Whether scripts may call what is not for scripts."
    ),
}
