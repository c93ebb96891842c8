"""The commands of this family: importing this module fills the command table with them."""

from headrace.server.commands.connection import (  # noqa: F401
    client_kill,
    clients,
    connection,
    tracking,
)
from headrace.server.commands.documentation import documented_in

documented_in("headrace.server.commands.connection.docs")
