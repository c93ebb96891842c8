"""Every family of commands: importing this module fills the command table.

A family is a folder here. Its ``__init__`` imports the modules that declare its rows, and its
``docs`` holds what COMMAND DOCS says of them.
"""

from headrace.server.commands import (  # noqa: F401
    connection,
    keys,
    pubsub,
    server,
    streams,
    strings,
    transactions,
)
