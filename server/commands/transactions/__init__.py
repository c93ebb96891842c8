"""MULTI, EXEC and WATCH. Importing this fills the command table."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.transactions import (  # noqa: F401
    transactions,
)

documented_in("headrace.server.commands.transactions.docs")
