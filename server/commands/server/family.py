"""The commands of this family: importing this module fills the command table with them."""

from headrace.server.commands.documentation import documented_in
from headrace.server.commands.server import (  # noqa: F401
    admin,
    cluster,
    command,
    config,
    databases,
    debug,
    hotkeys,
    latency,
    lolwut,
    memory,
    modules,
    rewrite,
    saving,
    slowlog,
    wait,
)

documented_in("headrace.server.commands.server.docs")
