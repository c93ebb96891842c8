"""The commands of this family: importing this module fills the command table with them."""

import headrace.server.info.regions_section  # noqa: F401  (a section of INFO)
from headrace.server.commands.documentation import documented_in
from headrace.server.commands.regions import (  # noqa: F401
    asking,
    operating,
    rows,
)

documented_in("headrace.server.commands.regions.docs")
