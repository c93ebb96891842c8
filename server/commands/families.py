"""Every family of commands: importing this module fills the command table."""

import server.commands.command
import server.commands.config
import server.commands.connection
import server.commands.streams
import server.commands.streams_read  # noqa: F401
import server.commands.pubsub  # noqa: F401
import server.commands.transactions  # noqa: F401
