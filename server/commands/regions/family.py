"""The commands of this family: importing this module fills the command table with them."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.regions import rows  # noqa: F401

documented_in("headrace.server.commands.regions.docs")
