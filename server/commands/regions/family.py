"""The commands of this family: importing this module fills the command table with them."""

import headrace.persistence.snapshot.region  # noqa: F401  (registers a form)
from headrace.server.commands.documentation import documented_in
from headrace.server.commands.regions import (  # noqa: F401
    asking,
    operating,
)

documented_in("headrace.server.commands.regions.docs")
