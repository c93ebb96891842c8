"""What another region asks: taken at ``aa-port`` alone."""

from __future__ import annotations

from headrace.compat import errors
from headrace.compat.errors import CommandError, wrong_arity
from headrace.regions.exchange.regions import Regions, regions_of
from headrace.server.clients.session import NEEDS_AUTH
from headrace.server.commands.regions import answers, of_other_region
from headrace.server.dispatch.call import Call


@answers("AUTH")
def aa_auth(call: Call) -> object:
    """A nonce is answered with one; then the code over both is answered with one.

    Reply: a nonce, or a code.
    Raises: no secret, another secret.
    """
    argv = call.argv
    caller = _asked(call).callers.caller_of(call.session)
    if len(argv) == 3:
        return caller.challenge(argv[2])
    if len(argv) != 4 or argv[2].upper() != b"PROOF":
        raise CommandError(wrong_arity(b"aa|auth"))
    code = caller.prove(argv[3])
    call.session.special &= ~NEEDS_AUTH
    return code


@answers("HELLO")
def aa_hello(call: Call) -> object:
    """The other region introduces itself.

    Reply: list of the same of this one, the nonce that it remembers, the reach of its log, and the
        regions that take part.
    Raises: the two have nothing to do with each other.
    """
    regions = _asked(call)
    if not regions.is_introduced:
        raise CommandError(errors.LOADING)
    regions.publish()
    return regions.callers.greet(call.session, call.argv[2:])


@answers("PULL")
def aa_pull(call: Call) -> object:
    """Reply: list of pieces of records, with END and what is known as the last one at the end.

    Raises: it means nothing, or what it asks for is not there any more.
    """
    return _asked(call).callers.pull(call.session, call.argv)


@answers("COPY")
def aa_copy(call: Call) -> object:
    """Begin a full copy, or go on with one.

    Reply: number, name and length of the copy; then, of each piece, its bytes and their XXH3.
    Raises: there is no base yet, no such copy.
    """
    argv = call.argv
    regions = _asked(call)
    regions.callers.caller_of(call.session).source_or_refuse()
    if len(argv) == 3 and argv[2].upper() == b"BEGIN":
        return regions.giving.begin(call.session)
    if len(argv) != 4:
        raise CommandError(wrong_arity(b"aa|copy"))
    return regions.giving.piece(call.session, argv)


def _asked(call: Call) -> Regions:
    """The regions of a server that another region asks."""
    of_other_region(call)
    return regions_of(call.server)
