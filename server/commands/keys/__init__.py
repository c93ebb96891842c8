"""Keys of any type, their deadlines, and databases. Importing this fills the command table."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.keys import (  # noqa: F401
    dump,
    expire,
    keys,
    scan,
)

documented_in("headrace.server.commands.keys.docs")
