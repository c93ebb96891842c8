"""The commands of regions, as they are known to every server.

What they do is in the wing of regions, which is not there without ``aa-region-id``: see
``answers``.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.server.clients.session import OF_REGION
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ORIGINALS, Handler


def of_other_region(call: Call) -> None:
    """What another region asks is taken at ``aa-port`` alone.

    Raises:
        CommandError: this is a client.
    """
    if not call.session.special & OF_REGION:
        raise CommandError(errors.AA_OTHER_PORT)


def asked(call: Call) -> object:
    """Answer what another region asks. Raises: as ``of_other_region``, then ``operated``."""
    of_other_region(call)
    return operated(call)


def operated(call: Call) -> object:
    """Raises: this server is no region."""
    raise CommandError(errors.AA_NO_REGION)


def answers(name: str) -> Callable[[Handler], Handler]:
    """Declare what the command ``AA name`` does where a server is a region."""

    def declare(run: Handler) -> Handler:
        ORIGINALS[b"aa"].subcommands[name.lower().encode()].run = run
        return run

    return declare
