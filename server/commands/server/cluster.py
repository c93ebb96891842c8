"""CLUSTER, TRIMSLOTS, ASKING, READONLY: the server is the one node of its cluster, or of none.

Without ``cluster-enabled`` each says, as Redis does, that there is no cluster. Clients and proxies
ask to find out what they talk to; "unknown command" would say less.

The node owns all slots, has no replica and knows no other node. What would change that is checked
as Redis checks it, and then refused. Source: cluster_legacy.c, clusterCommandSpecial; the replies
of Redis 8.10.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from headrace.compat import server_errors as errors
from headrace.compat.errors import (
    NO_CLUSTER_SUPPORT,
    NOT_AN_INTEGER,
    SYNTAX,
    CommandError,
    wrong_arity,
)
from headrace.protocol.replies import OK, Map, Status, Verbatim
from headrace.server.cluster import EPOCH, SLOTS, ClusterNode, slot_of, write_node
from headrace.server.commands.documentation import show_help
from headrace.server.dispatch.args import Args, bounded, integer
from headrace.server.dispatch.call import Call

_KEY_COUNT: Final = b"key-count"


def cluster_slot_stats(call: Call) -> object:
    """Run ``SLOTSRANGE first last`` or ``ORDERBY metric [LIMIT n] [ASC | DESC]``.

    Reply: list of (slot, map of its metrics).
    """
    node_of(call)
    argv = call.argv
    kind = argv[2].lower()
    if kind == b"slotsrange" and len(argv) == 5:
        slots = _range(argv[3], argv[4])
        counts = _counts(call)
    elif kind == b"orderby":
        descending, limit = _order(argv)
        counts = _counts(call)
        slots = sorted(range(SLOTS), key=lambda slot: -counts[slot] if descending else counts[slot])
        slots = slots[:limit]
    else:
        raise CommandError(errors.WRONG_WORDS % b"SLOT-STATS")
    return [[slot, Map([(_KEY_COUNT, counts[slot])])] for slot in slots]


def _range(first_word: bytes, last_word: bytes) -> list[int]:
    first, last = _slot(first_word), _slot(last_word)
    if first > last:
        raise CommandError(errors.WRONG_STATISTICS_RANGE % (first, last))
    return list(range(first, last + 1))


def _order(argv: list[bytes]) -> tuple[bool, int]:
    """Return whether the largest come first, and how many of them are asked for."""
    if argv[3].lower() != _KEY_COUNT:
        raise CommandError(errors.NO_METRIC)
    args = Args(argv, 4)
    order = b""
    limit = 0
    while args.left:
        option = args.option()
        if option in (b"ASC", b"DESC"):
            if order:
                raise CommandError(errors.FILTER_TWICE)
            order = option
        elif option == b"LIMIT" and args.left:
            if limit:
                raise CommandError(errors.FILTER_TWICE)
            limit = bounded(args.word(), 1, SLOTS, errors.BAD_LIMIT)
        else:
            raise CommandError(SYNTAX)
    return order != b"ASC", limit or SLOTS


def _counts(call: Call) -> list[int]:
    counts = [0] * SLOTS
    for key in call.db.names():
        counts[slot_of(key)] += 1
    return counts


_PORT_MAX: Final = 65535
_BUS_PORT_ABOVE: Final = 10_000
_MIGRATIONS: Final = (
    *("active_tasks", "active_trim_running", "active_trim_current_job_keys"),
    *("active_trim_current_job_trimmed", "stats_active_trim_started"),
    *("stats_active_trim_completed", "stats_active_trim_cancelled"),
)


def node_of(call: Call) -> ClusterNode:
    """Return the node of this server; raises CommandError as a Redis whose cluster mode is off."""
    node = call.server.cluster
    if node is None:
        raise CommandError(NO_CLUSTER_SUPPORT)
    return node


def accept(call: Call) -> object:
    """Reply: OK, because no request is sent to another node."""
    node_of(call)
    return OK


# The node


def cluster_info(call: Call) -> object:
    """Reply: text, lines of ``name:value``."""
    node_of(call)
    lines = [
        "cluster_state:ok",
        f"cluster_slots_assigned:{SLOTS}",
        f"cluster_slots_ok:{SLOTS}",
        "cluster_slots_pfail:0",
        "cluster_slots_fail:0",
        "cluster_known_nodes:1",
        "cluster_size:1",
        f"cluster_current_epoch:{EPOCH}",
        f"cluster_my_epoch:{EPOCH}",
        "cluster_stats_messages_sent:0",
        "cluster_stats_messages_received:0",
        "total_cluster_links_buffer_limit_exceeded:0",
        *[f"cluster_slot_migration_{name}:0" for name in _MIGRATIONS],
    ]
    return Verbatim("".join([f"{line}\r\n" for line in lines]).encode())


def cluster_myid(call: Call) -> object:
    """Reply: the ID of the node."""
    node = node_of(call)
    return node.id


def cluster_myshardid(call: Call) -> object:
    """Reply: the ID of its shard."""
    node = node_of(call)
    return node.shard_id


def _ip(call: Call, node: ClusterNode) -> bytes:
    """Return the address of the node, as the client of a call sees it."""
    session = call.session
    return node.ip(b"" if session.unix_socket else session.local_address)


def cluster_nodes(call: Call) -> object:
    """Reply: text, a line for each node, of which this is the one."""
    node = node_of(call)
    return Verbatim(node.line(node.address(_ip(call, node))))


def cluster_slots(call: Call) -> object:
    """Reply: list of one range of slots, and its node."""
    node = node_of(call)
    ip = _ip(call, node)
    more: list[tuple[object, object]] = []
    if node.endpoint_kind != b"ip":
        more.append((b"ip", ip))
    if node.hostname and node.endpoint_kind != b"hostname":
        more.append((b"hostname", node.hostname))
    return [[0, SLOTS - 1, [node.endpoint(ip), node.port, node.id, Map(more)]]]


def cluster_shards(call: Call) -> object:
    """Reply: list of one map: the slots, and their nodes."""
    node = node_of(call)
    facts: list[tuple[object, object]] = [(b"id", node.id)]
    if node.port:
        facts.append((b"port", node.port))
    if node.tls_port:
        facts.append((b"tls-port", node.tls_port))
    ip = _ip(call, node)
    facts += [(b"ip", ip), (b"endpoint", node.endpoint(ip) or b"")]
    if node.hostname:
        facts.append((b"hostname", node.hostname))
    facts += [(b"role", b"master"), (b"replication-offset", 0), (b"health", b"online")]
    return [Map([(b"slots", [0, SLOTS - 1]), (b"nodes", [Map(facts)])])]


def cluster_links(call: Call) -> object:
    """Reply: an empty list."""
    node_of(call)
    return []


def cluster_replicas(call: Call) -> object:
    """Reply: an empty list. Raises: another node's ID."""
    node = node_of(call)
    _known(call.argv[2], node)
    return []


def cluster_count_failure_reports(call: Call) -> object:
    """Reply: 0. Raises: another node's ID."""
    node = node_of(call)
    _known(call.argv[2], node)
    return 0


def _known(name: bytes, node: ClusterNode) -> None:
    """Raise unless this is the node's own ID."""
    if name != node.id:
        raise CommandError(errors.UNKNOWN_NODE % name)


# Slots and their keys


def cluster_keyslot(call: Call) -> object:
    """Reply: the slot of a key."""
    node_of(call)
    return slot_of(call.argv[2])


def cluster_countkeysinslot(call: Call) -> object:
    """Reply: how many keys of the database are in a slot."""
    node_of(call)
    slot = Args(call.argv, 2).integer()
    if not 0 <= slot < SLOTS:
        raise CommandError(errors.BAD_SLOT)
    return sum([slot_of(key) == slot for key in call.db.names()])


def cluster_getkeysinslot(call: Call) -> object:
    """Reply: list of keys of a slot, ``count`` at most."""
    node_of(call)
    args = Args(call.argv, 2)
    slot = args.integer()
    count = args.integer()
    if not 0 <= slot < SLOTS or count < 0:
        raise CommandError(errors.BAD_SLOT_OR_COUNT)
    found: list[object] = []
    for key in call.db.names():
        if len(found) >= count:
            break
        if slot_of(key) == slot:
            found.append(key)
    return found


# Requests that would change the node


def _slot(word: bytes) -> int:
    return bounded(word, 0, SLOTS - 1, errors.NO_SUCH_SLOT)


def _ranges(name: bytes, words: list[bytes]) -> list[tuple[int, int]]:
    """Read pairs of a first and a last slot."""
    if len(words) % 2:
        raise CommandError(wrong_arity(name))
    ranges: list[tuple[int, int]] = []
    for at in range(0, len(words), 2):
        first, last = _slot(words[at]), _slot(words[at + 1])
        if first > last:
            raise CommandError(errors.WRONG_RANGE % (first, last))
        ranges.append((first, last))
    return ranges


def _named_slots(call: Call) -> list[tuple[int, int]]:
    if call.name().endswith(b"range"):
        return _ranges(call.name(), call.argv[2:])
    slots = [_slot(word) for word in call.argv[2:]]
    return [(slot, slot) for slot in slots]


def _check_once(ranges: list[tuple[int, int]]) -> None:
    """Raise for a slot that is named twice."""
    seen = bytearray(SLOTS)
    for first, last in ranges:
        for slot in range(first, last + 1):
            if seen[slot]:
                raise CommandError(errors.SLOT_TWICE % slot)
            seen[slot] = 1


def trimslots(call: Call) -> object:
    """Remove the keys of slots that a file or a master has given away. Reply: OK.

    Raises: a client asks for it, because this node owns all slots.
    """
    if not call.replaying:
        node_of(call)
    argv = call.argv
    if argv[1].lower() != b"ranges":
        raise CommandError(errors.NO_RANGES)
    count = Args(argv, 2).integer()
    if count < 1 or len(argv) != 3 + 2 * count:
        raise CommandError(errors.BAD_RANGE_COUNT)
    ranges = _ranges(call.name(), argv[3:])
    _check_once(ranges)
    if not call.replaying:
        raise CommandError(errors.SERVES_SLOT % ranges[0][0])
    trimmed = bytearray(SLOTS)
    for first, last in ranges:
        trimmed[first : last + 1] = b"\1" * (last + 1 - first)
    for key in [key for key in call.db.names() if trimmed[slot_of(key)]]:
        call.delete(key, expired_too=True)
    return OK


def cluster_addslots(call: Call) -> object:
    """Raises: the slots are the node's already."""
    node_of(call)
    raise CommandError(errors.SLOT_BUSY % _named_slots(call)[0][0])


def cluster_delslots(call: Call) -> object:
    """Raises: the node keeps its slots."""
    node_of(call)
    _check_once(_named_slots(call))
    raise CommandError(errors.ONE_NODE)


def cluster_flushslots(call: Call) -> object:
    """Raises: the node keeps its slots."""
    node_of(call)
    raise CommandError(errors.FLUSH_WITH_KEYS if len(call.db) else errors.ONE_NODE)


def cluster_setslot(call: Call) -> object:
    """Reply: OK to what is so already. Raises: anything else."""
    node = node_of(call)
    slot = _slot(call.argv[2])
    action = call.argv[3].lower()
    words = len(call.argv)
    if action == b"stable" and words == 4:
        return OK
    if words != 5 or action not in (b"migrating", b"importing", b"node"):
        raise CommandError(errors.BAD_ACTION)
    name = call.argv[4]
    if action == b"importing":
        raise CommandError(errors.OWNS_SLOT % slot)
    if action == b"migrating":
        is_other = name != node.id
        raise CommandError(errors.STRANGE_NODE % name if is_other else errors.ONE_NODE)
    _known(name, node)
    return OK


def cluster_meet(call: Call) -> object:
    """Raises: there are no other nodes, or the address is none."""
    node_of(call)
    host, word = call.argv[2], call.argv[3]
    if len(call.argv) > 5:
        raise CommandError(errors.WRONG_WORDS % b"MEET")
    port = integer(word, errors.BAD_PORT % word)
    bus_port = port + _BUS_PORT_ABOVE
    if len(call.argv) == 5:
        bus_port = integer(call.argv[4], errors.BAD_BUS_PORT % call.argv[4])
    if not (_is_address(host) and 0 < port <= _PORT_MAX and 0 < bus_port <= _PORT_MAX):
        raise CommandError(errors.BAD_ADDRESS % (host, word))
    raise CommandError(errors.ONE_NODE)


def _is_address(host: bytes) -> bool:
    try:
        ipaddress.ip_address(host.decode("ascii"))
    except ValueError:
        return False
    return True


def cluster_forget(call: Call) -> object:
    """Raises: a node does not forget itself, and knows no other."""
    node = node_of(call)
    _known(call.argv[2], node)
    raise CommandError(errors.CANNOT_FORGET_MYSELF)


def cluster_replicate(call: Call) -> object:
    """Raises: a node does not follow itself, and knows no other."""
    node = node_of(call)
    _known(call.argv[2], node)
    raise CommandError(errors.CANNOT_REPLICATE_MYSELF)


def cluster_failover(call: Call) -> object:
    """Raises: the node is no replica."""
    node_of(call)
    _check_choice(call, b"FAILOVER", (b"force", b"takeover"))
    raise CommandError(errors.FOR_REPLICAS)


def cluster_reset(call: Call) -> object:
    """Raises: the node stays as it is."""
    node_of(call)
    _check_choice(call, b"RESET", (b"hard", b"soft"))
    raise CommandError(errors.RESET_WITH_KEYS if len(call.db) else errors.ONE_NODE)


def _check_choice(call: Call, name: bytes, choices: tuple[bytes, ...]) -> None:
    """Raise unless there is one of these words behind the subcommand, or none."""
    if len(call.argv) > 3:
        raise CommandError(errors.WRONG_WORDS % name)
    if len(call.argv) == 3 and call.argv[2].lower() not in choices:
        raise CommandError(SYNTAX)


def cluster_bumpepoch(call: Call) -> object:
    """Reply: a status, that the epoch is as before."""
    node_of(call)
    return Status(b"STILL %d" % EPOCH)


def cluster_set_config_epoch(call: Call) -> object:
    """Raises: the epoch is set already."""
    node_of(call)
    epoch = Args(call.argv, 2).integer(NOT_AN_INTEGER)
    if epoch < 0:
        raise CommandError(errors.BAD_EPOCH % epoch)
    raise CommandError(errors.EPOCH_IS_SET)


def cluster_saveconfig(call: Call) -> object:
    """Write the node's file. Reply: OK."""
    node = node_of(call)
    try:
        write_node(call.server.config, node)
    except OSError as error:
        reason = (error.strerror or "").encode()
        raise CommandError(errors.NOT_SAVED % reason) from None
    return OK


def cluster_migration(call: Call) -> object:
    """Reply: an empty list to STATUS, 0 to CANCEL. Raises: the slots are the node's already."""
    node_of(call)
    action = call.argv[2].lower()
    words = call.argv[3:]
    if action == b"import":
        ranges = _ranges(call.name(), words)
        _check_once(ranges)
        raise CommandError(errors.OWNS_RANGE)
    if action not in (b"status", b"cancel"):
        raise CommandError(errors.UNKNOWN_ARGUMENT)
    whose = words[0].lower()
    if whose not in (b"id", b"all"):
        raise CommandError(errors.UNKNOWN_ARGUMENT)
    if len(words) != (2 if whose == b"id" else 1):
        raise CommandError(wrong_arity(call.name()))
    return [] if action == b"status" else 0


def cluster_syncslots(call: Call) -> object:
    """Raises: this is no connection of the cluster's own."""
    node_of(call)
    raise CommandError(errors.FOR_INTERNAL_CLIENTS)


def cluster_help(call: Call) -> object:
    """Reply: list of lines."""
    node_of(call)
    return show_help(call)
