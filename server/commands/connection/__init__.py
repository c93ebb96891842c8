"""The connection, and other connections. Importing this fills the command table."""

from headrace.server.commands.connection import (  # noqa: F401
    client_kill,
    clients,
    connection,
)
from headrace.server.commands.documentation import documented_in

documented_in("headrace.server.commands.connection.docs")
