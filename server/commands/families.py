"""Every family of commands: importing this module fills the command table."""

import server.commands.admin
import server.commands.client_kill
import server.commands.clients
import server.commands.command
import server.commands.config
import server.commands.connection
import server.commands.databases
import server.commands.debug
import server.commands.dialect
import server.commands.expire
import server.commands.functions
import server.commands.group_mode
import server.commands.group_read
import server.commands.groups
import server.commands.idempotence
import server.commands.keys
import server.commands.latency
import server.commands.lolwut
import server.commands.memory
import server.commands.nack
import server.commands.pending
import server.commands.pubsub
import server.commands.rewrite
import server.commands.scan
import server.commands.slowlog
import server.commands.streams
import server.commands.streams_delete
import server.commands.streams_info
import server.commands.streams_read
import server.commands.strings
import server.commands.strings_conditional
import server.commands.strings_edit
import server.commands.strings_increx
import server.commands.strings_many
import server.commands.transactions
import server.commands.waiting  # noqa: F401
