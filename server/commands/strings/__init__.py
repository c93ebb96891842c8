"""Strings. Importing this fills the command table."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.strings import (  # noqa: F401
    conditional,
    editing,
    increx,
    many,
    strings,
)

documented_in("headrace.server.commands.strings.docs")
