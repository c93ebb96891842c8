"""Messages to whoever listens. Importing this fills the command table."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.pubsub import (  # noqa: F401
    pubsub,
)

documented_in("headrace.server.commands.pubsub.docs")
