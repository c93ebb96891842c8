"""The commands of this family: importing this module fills the command table with them."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.hyperloglog import counting, testing, together  # noqa: F401

documented_in("headrace.server.commands.hyperloglog.docs")
