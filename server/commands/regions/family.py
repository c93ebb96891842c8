"""The commands of this family: importing this module fills the command table with them."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.regions import (  # noqa: F401
    asking,
    operating,
)

documented_in("headrace.server.commands.regions.docs")
