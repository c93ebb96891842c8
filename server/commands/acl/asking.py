"""ACL WHOAMI, CAT, DRYRUN, GENPASS, HELP: what there is to know of rights."""

from __future__ import annotations

from typing import Final

from headrace.compat.acl_errors import BAD_BITS, unknown_category, unknown_command, unknown_user
from headrace.compat.errors import CommandError, bad_subcommand, wrong_arity
from headrace.protocol.replies import OK
from headrace.server.acl.commands import BOOK, CATEGORIES
from headrace.server.commands.help import show_help
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.permission import explained
from headrace.server.dispatch.rows import row_of

_MOST_BITS: Final = 4096
_USUAL_BITS: Final = 256


def acl_whoami(call: Call) -> object:
    """Reply: the name of this connection's user."""
    return call.session.user.name


def acl_cat(call: Call) -> object:
    """Reply: list of the categories, or of the commands in one."""
    argv = call.argv
    if len(argv) == 2:
        return list(CATEGORIES)
    if len(argv) > 3:
        raise CommandError(bad_subcommand(b"acl", argv[1]))
    category = argv[2].lower()
    if category not in CATEGORIES:
        raise CommandError(unknown_category(argv[2]))
    return BOOK.of_category(category)


def acl_genpass(call: Call) -> object:
    """Reply: a password that nobody can guess, in hexadecimal digits."""
    from secrets import token_hex  # late: it loads OpenSSL

    argv = call.argv
    if len(argv) > 3:
        raise CommandError(bad_subcommand(b"acl", argv[1]))
    bits = Args(argv, 2).integer() if len(argv) == 3 else _USUAL_BITS
    if not 0 < bits <= _MOST_BITS:
        raise CommandError(BAD_BITS)
    return token_hex((bits + 7) // 8)[: (bits + 3) // 4].encode()


def acl_dryrun(call: Call) -> object:
    """Say whether a user may run a request. Reply: OK, or what it may not do of it."""
    user = call.server.users.find(call.argv[2])
    if user is None:
        raise CommandError(unknown_user(call.argv[2]))
    argv = call.argv[3:]
    row = row_of(argv)
    if row is None:
        raise CommandError(unknown_command(argv[0]))
    if not row.arity_fits(len(argv)):
        raise CommandError(wrong_arity(row.name))
    return explained(user, row, argv) or OK


def acl_help(call: Call) -> object:
    """Reply: list of lines."""
    return show_help(call)
