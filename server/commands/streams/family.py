"""The commands of this family: importing this module fills the command table with them."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.streams import (  # noqa: F401
    deleting,
    dialect,
    group_mode,
    group_reading,
    groups,
    idmp,
    info,
    looking,
    nack,
    pending,
    ranks,
    reading,
    writing,
)

documented_in("headrace.server.commands.streams.docs")
