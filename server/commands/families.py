"""Every family of commands: importing this module fills the command table.

A family is a folder here. Its ``family`` imports the modules that declare its rows, and its
``docs`` holds what COMMAND DOCS says of them.
"""

# These are modules, not the folders' ``__init__``: compiled ones import one another without
# looking for files.

import headrace.server.commands.acl.family
import headrace.server.commands.arrays.family
import headrace.server.commands.bitmaps.family
import headrace.server.commands.connection.family
import headrace.server.commands.geo.family
import headrace.server.commands.hashes.family
import headrace.server.commands.hyperloglog.family
import headrace.server.commands.keys.family
import headrace.server.commands.lists.family
import headrace.server.commands.pubsub.family
import headrace.server.commands.regions.family
import headrace.server.commands.replication.family
import headrace.server.commands.scripting.family
import headrace.server.commands.server.family
import headrace.server.commands.sets.family
import headrace.server.commands.sorted_sets.family
import headrace.server.commands.sorting.family
import headrace.server.commands.streams.family
import headrace.server.commands.strings.family
import headrace.server.commands.transactions.family  # noqa: F401
