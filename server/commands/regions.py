"""The commands of regions, as they are known to every server.

The wing of regions, which is not there without ``aa-region-id``, implements them: see ``answers``.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.server.clients.session import OF_REGION
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ORIGINALS, Handler


def of_other_region(call: Call) -> None:
    """Raise CommandError to a client: requests of other regions are taken at ``aa-port`` alone."""
    if not call.session.special & OF_REGION:
        raise CommandError(errors.AA_OTHER_PORT)


def asked(call: Call) -> object:
    """Answer the request of another region. Raises: as ``of_other_region``, then ``operated``."""
    of_other_region(call)
    return operated(call)


def operated(call: Call) -> object:
    """Raises: this server is no region."""
    raise CommandError(errors.AA_NO_REGION)


def answers(name: str) -> Callable[[Handler], Handler]:
    """Declare the function of the command ``AA name`` where a server is a region."""

    def declare(run: Handler) -> Handler:
        ORIGINALS[b"aa"].subcommands[name.lower().encode()].run = run
        return run

    return declare
