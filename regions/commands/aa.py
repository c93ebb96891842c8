"""AA: questions of other regions, at ``aa-port`` alone, and of operators and tests."""

from __future__ import annotations

from typing import Final

from xxhash import xxh3_128_intdigest

from headrace.compat import errors
from headrace.compat.errors import CommandError, wrong_arity
from headrace.compat.numbers import parse_integer
from headrace.protocol.replies import OK, Map
from headrace.regions.exchange.effects import emit, region_of, replication
from headrace.regions.exchange.heartbeats import forget
from headrace.regions.exchange.peers import Peer
from headrace.regions.exchange.regions import Regions, regions_of
from headrace.regions.knowledge.records import EFFECTS, XADD
from headrace.server.clients.session import NEEDS_AUTH
from headrace.server.commands.regions import answers, of_other_region
from headrace.server.dispatch.args import deadline_of
from headrace.server.dispatch.call import Call
from headrace.storage.sharing import AA, REGION_MAX, Replicated
from headrace.storage.vectors import BadVector, decode_numbers, encode_numbers

NEWEST_MOST: Final = 2**32
SYNC_MS: Final = 10_000
SYNC_MOST_MS: Final = 3_600_000
_NOTHING: Final = bytes.fromhex("da39a3ee5e6b4b0d3255bfef95601890afd80709")  # SHA-1 of no line


@answers("AUTH")
def aa_auth(call: Call) -> object:
    """Answer a nonce with one; then the code over both with one.

    Reply: a nonce, or a code.
    Raises: no secret, another secret.
    """
    argv = call.argv
    caller = _asked(call).peer_sessions.of_session(call.session)
    if len(argv) == 3:
        return caller.challenge(argv[2])
    if len(argv) != 4 or argv[2].upper() != b"PROOF":
        raise CommandError(wrong_arity(b"aa|auth"))
    code = caller.prove(argv[3])
    call.session.special &= ~NEEDS_AUTH
    return code


@answers("HELLO")
def aa_hello(call: Call) -> object:
    """Answer the introduction of another region with one.

    Reply: list of the same of this one, the nonce that it remembers, the reach of its log, and the
        regions that take part.
    Raises: the two have nothing to do with each other.
    """
    regions = _asked(call)
    if not regions.is_introduced:
        raise CommandError(errors.LOADING)
    regions.publish()
    reply = regions.peer_sessions.greet(call.session, call.argv[2:])
    regions.keep_met()  # it counts on that, from the reply on: also where this region is killed
    return reply


@answers("PULL")
def aa_pull(call: Call) -> object:
    """Reply: list of pieces of records, with END and what is known as the last one at the end.

    Raises: it means nothing, or what it asks for is not there any more.
    """
    return _asked(call).peer_sessions.pull(call.session, call.argv)


@answers("COPY")
def aa_copy(call: Call) -> object:
    """Begin a full copy, or go on with one.

    Reply: number, name and length of the copy; then, of each piece, its bytes and their XXH3.
    Raises: there is no base yet, no such copy.
    """
    argv = call.argv
    regions = _asked(call)
    regions.peer_sessions.of_session(call.session).source_or_refuse()
    if len(argv) == 3 and argv[2].upper() == b"BEGIN":
        if not regions.full_copy.is_in_base():
            raise CommandError(errors.AA_NO_BASE)
        return regions.copy_source.begin(call.session)
    if len(argv) != 4:
        raise CommandError(wrong_arity(b"aa|copy"))
    return regions.copy_source.piece(call.session, argv)


def _asked(call: Call) -> Regions:
    of_other_region(call)
    return regions_of(call.server)


@answers("PEERS")
def aa_peers(call: Call) -> object:
    """Reply: list of a map for each of the other regions."""
    regions = regions_of(call.server)
    return [_shown(regions, regions.peers[number]) for number in sorted(regions.peers)]


def _shown(regions: Regions, peer: Peer) -> Map:
    hello = peer.hello
    pairs: list[tuple[object, object]] = [
        (b"region", peer.region),
        (b"address", b"%b:%d" % (peer.address.host, peer.address.port)),
        (b"state", regions.state_of(peer)),
        (b"problem", peer.failure.encode()),
        (b"origin", b"" if hello is None else hello.origin),
        (b"answered-ms-ago", regions.answered_ms_ago(peer)),
        (b"lag-ms", regions.lag_ms(peer)),
        (b"missing-records", peer.missing(regions.region.known())),
        (b"received-records", peer.statistics.records),
        (b"knows", encode_numbers(peer.known)),
        (b"has-on-disk", encode_numbers(regions.peer_sessions.acknowledged.get(peer.region, {}))),
    ]
    return Map(pairs)


@answers("PAUSE")
def aa_pause(call: Call) -> object:
    """Pull no more from a peer, or from all, until AA RESUME or AA SYNC. Reply: OK."""
    return regions_of(call.server).pause(call.argv[2], True)


@answers("RESUME")
def aa_resume(call: Call) -> object:
    """Pull from a peer, or from all, again. Reply: OK."""
    return regions_of(call.server).pause(call.argv[2], False)


@answers("SYNC")
def aa_sync(call: Call) -> object:
    """Wait until all is here that each peer has answered so far, paused or not.

    Where it says that all are level, this region takes writes.

    Reply: map of a region to ``level``, ``late``, or why it cannot be asked.
    """
    argv = call.argv
    timeout_ms: int | None = SYNC_MS
    if len(argv) > 3:
        raise CommandError(wrong_arity(b"aa|sync"))
    if len(argv) == 3:
        timeout_ms = parse_integer(argv[2])
    if timeout_ms is None or not 0 < timeout_ms <= SYNC_MOST_MS:
        raise CommandError(errors.NOT_BETWEEN % (1, SYNC_MOST_MS))
    return regions_of(call.server).sync(call.session, argv, timeout_ms)


@answers("TOKEN")
def aa_token(call: Call) -> object:
    """Reply: what stands for all that is here now, to be given to AA WAIT of another region."""
    regions = regions_of(call.server)
    regions.publish()
    return encode_numbers(regions.region.known())


@answers("WAIT")
def aa_wait(call: Call) -> object:
    """Wait until all is here that a token stands for; 0 milliseconds are for ever.

    Reply: 1, or 0 when the time is up.
    """
    regions = regions_of(call.server)
    try:
        numbers = decode_numbers(call.argv[2])
    except BadVector:
        raise CommandError(errors.AA_BAD_TOKEN) from None
    deadline_ms = deadline_of(call.argv[3], call.now_ms)
    return regions.wait(call.session, call.argv, numbers, deadline_ms)


@answers("MOVE")
def aa_move(call: Call) -> object:
    """Have a group read in another region, with its places and what is pending; ``*`` in all.

    Reply: OK. Raises: AAMOVED where it is read elsewhere, unless FORCE is said.
    """
    argv = call.argv
    force = len(argv) == 6 and argv[5].upper() == b"FORCE"
    if len(argv) > 6 or (len(argv) == 6 and not force):
        raise CommandError(errors.SYNTAX)
    if call.server.data.region is None:
        raise CommandError(errors.AA_NO_REGION)
    region = region_of(call.server)
    to = 0
    if argv[4] != b"*":
        number = parse_integer(argv[4])
        if number is None or not 0 < number <= REGION_MAX:
            raise CommandError(errors.NOT_BETWEEN % (1, REGION_MAX))
        if number not in region.members():
            raise CommandError(errors.AA_NO_MEMBER)
        to = number
    replication().move_group(call.server, argv[2], argv[3], to, force)
    return OK


@answers("COUNT")
def aa_count(call: Call) -> object:
    """Reply: how many effects of a kind this region has made since its start."""
    region = regions_of(call.server).region
    name = call.argv[2].upper()
    if name != XADD and name not in EFFECTS:
        raise CommandError(errors.AA_NO_SUCH_EFFECT)
    return region.made(name)


@answers("STREAM")
def aa_stream(call: Call) -> object:
    """Reply: list of lines, all that regions have to agree on about a stream; nil for none."""
    value = _replicated(call, call.argv[2])
    return None if value is None else list(replication().shared_state(value))


@answers("DIGEST")
def aa_digest(call: Call) -> object:
    """Compute a fingerprint that is equal in all regions that know the same.

    What they still remember of gone data does not matter.

    Reply: a fingerprint of a stream, nil where regions share nothing under that key; without a key
        one of all that is there.
    """
    argv = call.argv
    if len(argv) not in (2, 3, 5) or (len(argv) == 5 and argv[3].upper() != b"NEWEST"):
        raise CommandError(errors.SYNTAX)
    newest = parse_integer(argv[4]) if len(argv) == 5 else 0
    if newest is None or not 0 <= newest <= NEWEST_MOST:
        raise CommandError(errors.NOT_BETWEEN % (0, NEWEST_MOST))
    regions_of(call.server)
    if len(argv) > 2:
        value = _replicated(call, argv[2])
        found = _NOTHING if value is None else replication().fingerprint(value, newest)
        return None if found == _NOTHING else found.hex().encode()
    parts: list[bytes] = []
    for key in sorted(call.db.names()):
        each = call.db[key].value
        if isinstance(each, Replicated):
            parts += [b"%d %b" % (len(key), key), replication().fingerprint(each, 0)]
    return b"%032x" % xxh3_128_intdigest(b"".join(parts))


def _replicated(call: Call, key: bytes) -> Replicated | None:
    """Return the value of a key in all regions, or what they remember of it.

    Raises CommandError if the key holds something that other regions do not get.
    """
    regions_of(call.server)
    found = call.db.peek(key)
    if found is None:
        return replication().remembered(call.server, key)
    value = found.value
    if not isinstance(value, Replicated):
        raise CommandError(errors.WRONGTYPE)
    return value


@answers("JOIN")
def aa_join(call: Call) -> object:
    """Let a region take part that ``aa-peers`` does not name. Reply: OK."""
    emit(call.server, [AA, b"JOIN", b"%d" % _other_region(call)])
    return OK


@answers("FORGET")
def aa_forget(call: Call) -> object:
    """Let a region take part no more: it comes back as a new one only.

    Reply: OK. Raises: it has never taken part.
    """
    number = _other_region(call)
    if not regions_of(call.server).region.has_heard_of(number):
        raise CommandError(errors.AA_NEVER_MEMBER)
    forget(call.server, number)
    return OK


def _other_region(call: Call) -> int:
    regions = regions_of(call.server)
    number = parse_integer(call.argv[2])
    if number is None or not 0 < number <= REGION_MAX:
        raise CommandError(errors.NOT_BETWEEN % (1, REGION_MAX))
    if number == regions.region.id:
        raise CommandError(errors.AA_OWN_REGION)
    return number
