"""CLIENT TRACKING and what belongs to it: clients that keep copies of what they read."""

from __future__ import annotations

from headrace.compat.errors import (
    CACHING_WITHOUT_OPTIN,
    CACHING_WITHOUT_OPTOUT,
    CACHING_WITHOUT_TRACKING,
    NO_REDIRECT_CLIENT,
    OPT_WITH_BCAST,
    OPTIN_AND_OPTOUT,
    PREFIX_WITHOUT_BCAST,
    SWITCHING_BCAST,
    SWITCHING_OPT,
    SYNTAX,
    TWO_REDIRECTS,
    CommandError,
    overlapping_prefixes,
)
from headrace.protocol.replies import OK, Map, Set
from headrace.server.clients.client_line import redirect_of, tracking_of
from headrace.server.clients.session import CACHING, Session
from headrace.server.clients.tracking import Tracking
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call


def client_tracking(call: Call) -> object:
    """Be notified when what this client has read changes, or no longer. Reply: OK.

    Raises: options that exclude each other, or what holds already.
    Source: networking.c, clientCommand; tracking.c.
    """
    session = call.session
    asked, prefixes = _parse(call)
    word = call.argv[2].lower()
    if word == b"on":
        _check(session, asked, prefixes)
        for prefix in prefixes or ([b""] if asked.broadcast else []):
            asked.prefixes[prefix] = None
        call.server.tracking.turn_on(session, asked)
    elif word == b"off":
        call.server.tracking.turn_off(session)
    else:
        raise CommandError(SYNTAX)
    return OK


def _parse(call: Call) -> tuple[Tracking, list[bytes]]:
    """What a request asks for, and the prefixes that it names."""
    args = Args(call.argv, 3)
    asked = Tracking(call.session.id)
    prefixes: list[bytes] = []
    while args.left:
        if args.left > 1 and args.flag(b"REDIRECT"):
            if asked.redirect:
                raise CommandError(TWO_REDIRECTS)
            asked.redirect = args.integer()
            if asked.redirect not in call.server.clients.sessions:
                raise CommandError(NO_REDIRECT_CLIENT)
        elif args.left > 1 and args.flag(b"PREFIX"):
            prefixes.append(args.word())
        elif args.flag(b"BCAST"):
            asked.broadcast = True
        elif args.flag(b"OPTIN"):
            asked.opt_in = True
        elif args.flag(b"OPTOUT"):
            asked.opt_out = True
        elif args.flag(b"NOLOOP"):
            asked.no_loop = True
        else:
            raise CommandError(SYNTAX)
    return asked, prefixes


def _check(session: Session, asked: Tracking, prefixes: list[bytes]) -> None:
    """Refuse what does not go together, or not with what holds."""
    if prefixes and not asked.broadcast:
        raise CommandError(PREFIX_WITHOUT_BCAST)
    present = tracking_of(session)
    if present is not None and present.broadcast != asked.broadcast:
        raise CommandError(SWITCHING_BCAST)
    if asked.broadcast and (asked.opt_in or asked.opt_out):
        raise CommandError(OPT_WITH_BCAST)
    if asked.opt_in and asked.opt_out:
        raise CommandError(OPTIN_AND_OPTOUT)
    if present is not None and (
        (asked.opt_in and present.opt_out) or (asked.opt_out and present.opt_in)
    ):
        raise CommandError(SWITCHING_OPT)
    there = [] if present is None else sorted(present.prefixes)
    for number, prefix in enumerate(prefixes):
        for other in there:
            if _overlap(prefix, other):
                raise CommandError(overlapping_prefixes(prefix, other, True))
        for other in prefixes[number + 1 :]:
            if _overlap(prefix, other):
                raise CommandError(overlapping_prefixes(prefix, other, False))


def _overlap(one: bytes, other: bytes) -> bool:
    return one.startswith(other) or other.startswith(one)


def client_caching(call: Call) -> object:
    """Say whether what the next request or transaction reads counts. Reply: OK."""
    session = call.session
    tracking = tracking_of(session)
    if tracking is None:
        raise CommandError(CACHING_WITHOUT_TRACKING)
    word = call.argv[2].lower()
    if word not in (b"yes", b"no"):
        raise CommandError(SYNTAX)
    if word == b"yes" and not tracking.opt_in:
        raise CommandError(CACHING_WITHOUT_OPTIN)
    if word == b"no" and not tracking.opt_out:
        raise CommandError(CACHING_WITHOUT_OPTOUT)
    session.special |= CACHING
    return OK


def client_getredir(call: Call) -> object:
    """Reply: the ID of the client that gets the messages, 0 for this one, -1 for nobody."""
    return redirect_of(call.session)


def client_trackinginfo(call: Call) -> object:
    """Reply: map of flags, who gets the messages, and prefixes."""
    session = call.session
    tracking = tracking_of(session)
    flags: list[object] = [b"off" if tracking is None else b"on"]
    prefixes: list[bytes] = []
    if tracking is not None:
        prefixes = sorted(tracking.prefixes)
        if tracking.broadcast:
            flags.append(b"bcast")
        if tracking.opt_in:
            flags.append(b"optin")
        if tracking.opt_out:
            flags.append(b"optout")
        if session.special & CACHING and (tracking.opt_in or tracking.opt_out):
            flags.append(b"caching-yes" if tracking.opt_in else b"caching-no")
        if tracking.no_loop:
            flags.append(b"noloop")
        if tracking.broken:
            flags.append(b"broken_redirect")
    return Map(
        [(b"flags", Set(flags)), (b"redirect", redirect_of(session)), (b"prefixes", prefixes)]
    )
