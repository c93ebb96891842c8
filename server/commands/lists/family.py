"""The commands of this family: importing this module fills the command table with them."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.lists import (  # noqa: F401
    blocking,
    editing,
    moving,
    popping,
    pushing,
    reading,
    together,
)

documented_in("headrace.server.commands.lists.docs")
