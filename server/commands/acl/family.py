"""The commands of this family: importing this module fills the command table with them."""

from headrace.server.commands.acl import asking, log, users  # noqa: F401
from headrace.server.commands.documentation import documented_in

documented_in("headrace.server.commands.acl.docs")
