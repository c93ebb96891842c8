"""The commands of this family: importing this module fills the command table with them."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.transactions import (  # noqa: F401
    transactions,
)

documented_in("headrace.server.commands.transactions.docs")
