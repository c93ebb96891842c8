"""The commands of this family: importing this module fills the command table with them."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.sorted_sets import (  # noqa: F401
    adding,
    combining,
    popping,
    ranges,
    reading,
    removing,
    sampling,
    together,
)

documented_in("headrace.server.commands.sorted_sets.docs")
