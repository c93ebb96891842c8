"""The commands of this family: importing this module fills the command table with them."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.keys import (  # noqa: F401
    dump,
    expire,
    keys,
    migrate,
    scan,
)

documented_in("headrace.server.commands.keys.docs")
