"""The commands of this family: importing this module fills the command table with them."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.hashes import (  # noqa: F401
    counting,
    expiring,
    fields,
    importing,
    lifetimes,
    together,
    whole,
)

documented_in("headrace.server.commands.hashes.docs")
