"""The commands of this family: importing this module fills the command table with them."""

from headrace.server.commands.arrays import (  # noqa: F401
    computing,
    elements,
    inserting,
    ranges,
    searching,
    telling,
)
from headrace.server.commands.documentation import documented_in

documented_in("headrace.server.commands.arrays.docs")
