"""CONFIG: read and change the configuration of the running server."""

from __future__ import annotations

import logging
from typing import Final

from headrace.compat.errors import CONFIG_NO_FILE, SYNTAX, CommandError, config_rewrite_failed
from headrace.protocol.replies import OK, Map
from headrace.server.clients.origin import allowed_by
from headrace.server.commands.help import show_help
from headrace.server.config.parameters import is_sensitive
from headrace.server.config.rewrite import rewrite
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.redaction import REDACTED
from headrace.server.dispatch.rows import TABLE
from headrace.server.gate import LOADING_DATA
from headrace.server.loading.users import user_lines
from headrace.server.state import PARAMETERS

log: Final = logging.getLogger("headrace")


def config_get(call: Call) -> object:
    """Reply: map of name to value."""
    found = call.server.config.get(call.argv[2:])
    pairs: list[tuple[object, object]] = [(name, value) for name, value in found]
    return Map(pairs)


def config_set(call: Call) -> object:
    """Change all of the parameters named, or none.

    Reply: OK.
    Raises: unknown or immutable parameters, values that do not fit, a change that was refused.
    """
    argv = call.argv
    # What is logged of this call from here on must not hold a password.
    call.argv = _redacted(argv)
    if len(argv) % 2:
        raise CommandError(SYNTAX)
    pairs = [(argv[at], argv[at + 1]) for at in range(2, len(argv), 2)]
    server = call.server
    allowed = allowed_by(server.config.enable_protected_configs, call.session)
    server.config.set_many(pairs, allowed, bool(server.gate.reasons & LOADING_DATA))
    server.unsaved.add(PARAMETERS)
    return OK


def config_resetstat(call: Call) -> object:
    """Set the counters that INFO shows to zero. Reply: OK."""
    server = call.server
    server.statistics.counters.reset()
    server.statistics.rates.reset()
    server.statistics.slowlog.reset_counters()
    server.statistics.keyspace_hits = 0
    server.statistics.keyspace_misses = 0
    server.changes.expired_keys = 0
    server.changes.expired_parts = 0
    server.data.freed = 0
    for row in TABLE.values():
        row.reset_counters()
        for child in row.subcommands.values():
            child.reset_counters()
    return OK


def config_rewrite(call: Call) -> object:
    """Write what is set now into the configuration file.

    Reply: OK.
    Raises: the server was started without a file, or the file cannot be written.
    """
    config = call.server.config
    if not config.file:
        raise CommandError(CONFIG_NO_FILE)
    try:
        rewrite(config, user_lines(call.server))
    except OSError as error:
        reason = error.strerror or str(error)
        log.warning("CONFIG REWRITE failed: %s", reason)
        raise CommandError(config_rewrite_failed(reason.encode())) from None
    log.info("CONFIG REWRITE executed with success.")
    return OK


def config_help(call: Call) -> object:
    """Reply: list of lines."""
    return show_help(call)


def _redacted(argv: list[bytes]) -> list[bytes]:
    """The words of CONFIG SET without the values of sensitive parameters."""
    words = list(argv)
    for at in range(2, len(words) - 1, 2):
        if is_sensitive(words[at]):
            words[at + 1] = REDACTED
    return words
