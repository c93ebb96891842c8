"""The commands of this family: importing this module fills the command table with them."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.scripting import (  # noqa: F401
    functions,
    scripts,
)

documented_in("headrace.server.commands.scripting.docs")
