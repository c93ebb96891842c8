"""Every family of commands: importing this module fills the command table."""

import server.commands.command
import server.commands.config
import server.commands.connection
import server.commands.streams
import server.commands.streams_read  # noqa: F401
import server.commands.pubsub  # noqa: F401
import server.commands.transactions  # noqa: F401
import server.commands.clients  # noqa: F401
import server.commands.client_kill  # noqa: F401
import server.commands.databases  # noqa: F401
import server.commands.expire  # noqa: F401
import server.commands.keys  # noqa: F401
import server.commands.scan  # noqa: F401
import server.commands.strings  # noqa: F401
import server.commands.strings_conditional  # noqa: F401
import server.commands.strings_edit  # noqa: F401
import server.commands.strings_many  # noqa: F401
