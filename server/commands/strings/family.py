"""The commands of this family: importing this module fills the command table with them."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.strings import (  # noqa: F401
    conditional,
    editing,
    increx,
    lcs,
    many,
    strings,
    together,
)

documented_in("headrace.server.commands.strings.docs")
