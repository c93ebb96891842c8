"""Documentation of the commands that concern the server as a whole."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc
from headrace.server.commands.server import cluster_docs

_GROUP: Final = "server"
_GENERIC: Final = "generic"
_CONTAINER: Final = "Depends on subcommand."
_NO_MODULES: Final = "Is refused: modules cannot be loaded."
_FLUSH: Final = "[flush-type(ASYNC@4.0.0 | SYNC@6.2.0)]"
_FLUSH_HISTORY: Final = (("4.0.0", "ASYNC option."), ("6.2.0", "SYNC option."))

DOCS: Final[dict[str, Doc]] = {
    "bgrewriteaof": Doc(
        _GROUP, "1.0.0", "O(1)", "Starts writing a fresh, compact append-only file."
    ),
    "bgsave": Doc(
        _GROUP,
        "1.0.0",
        "O(1)",
        "Starts writing a snapshot while the server goes on.",
        "[SCHEDULE@3.2.2]",
        history=(("3.2.2", "SCHEDULE option."),),
    ),
    "command": Doc(
        _GROUP,
        "2.8.13",
        "O(N) for N commands in all",
        "Describes all commands, for programs to read.",
    ),
    "command|count": Doc(_GROUP, "2.8.13", "O(1)", "Counts the commands the server has."),
    "command|docs": Doc(
        _GROUP,
        "7.0.0",
        "O(N) for N commands asked for",
        "Documents commands: what they do and which arguments they take.",
        "[command-name...]",
    ),
    "command|getkeys": Doc(
        _GROUP,
        "2.8.13",
        "O(N) for N words of the command",
        "Picks the keys out of a whole command.",
        "command [arg...]",
    ),
    "command|getkeysandflags": Doc(
        _GROUP,
        "7.0.0",
        "O(N) for N words of the command",
        "Picks the keys out of a whole command and tells how each is used.",
        "command [arg...]",
    ),
    "command|help": Doc(_GROUP, "5.0.0", "O(1)", "Lists the COMMAND subcommands."),
    "command|info": Doc(
        _GROUP,
        "2.8.13",
        "O(N) for N commands asked for",
        "Describes some commands, or all, for programs to read.",
        "[command-name...]",
        history=(("7.0.0", "Describes all commands when none is named."),),
    ),
    "command|list": Doc(
        _GROUP,
        "7.0.0",
        "O(N) for N commands in all",
        "Lists the names of the commands, all or those a filter lets through.",
        "[FILTERBY=filterby(MODULE=module-name | ACLCAT=category | PATTERN=pattern)]",
    ),
    "config": Doc(_GROUP, "2.0.0", _CONTAINER, "Holds the commands about configuration."),
    "config|get": Doc(
        _GROUP,
        "2.0.0",
        "O(N) for N parameters or patterns given",
        "Tells the values of the parameters that match.",
        "parameter...",
        history=(("7.0.0", "Takes several patterns."),),
    ),
    "config|help": Doc(_GROUP, "5.0.0", "O(1)", "Lists the CONFIG subcommands."),
    "config|resetstat": Doc(_GROUP, "2.0.0", "O(1)", "Sets the counters that INFO shows to zero."),
    "config|rewrite": Doc(
        _GROUP, "2.8.0", "O(1)", "Writes the configuration in force back to its file."
    ),
    "config|set": Doc(
        _GROUP,
        "2.0.0",
        "O(N) for N parameters given",
        "Changes parameters while the server runs, all of them or none.",
        "data(parameter value)...",
        history=(("7.0.0", "Sets several parameters at once."),),
    ),
    "dbsize": Doc(_GROUP, "1.0.0", "O(1)", "Counts the keys of the database."),
    "debug": Doc(_GROUP, "1.0.0", _CONTAINER, "Holds tools for testing the server.", internal=True),
    "flushall": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N keys in all databases",
        "Deletes every key of every database.",
        _FLUSH,
        history=_FLUSH_HISTORY,
    ),
    "flushdb": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N keys in the database",
        "Deletes every key of the database.",
        _FLUSH,
        history=_FLUSH_HISTORY,
    ),
    "hotkeys": Doc(_GROUP, "8.6.0", _CONTAINER, "Holds the commands that look for hot keys."),
    "hotkeys|get": Doc(
        _GROUP,
        "8.6.0",
        "O(K log K) for K keys that are kept, ten times as many as are shown",
        "Shows the keys that took most since the search began, and what all took together.",
    ),
    "hotkeys|help": Doc(_GROUP, "8.6.1", "O(1)", "Lists the HOTKEYS subcommands."),
    "hotkeys|reset": Doc(_GROUP, "8.6.0", "O(1)", "Forgets what a search has found."),
    "hotkeys|start": Doc(
        _GROUP,
        "8.6.0",
        "O(1)",
        "Begins to look for the keys that take most time (CPU) or bytes (NET).",
        "METRICS=metrics(count:integer [CPU] [NET]) [COUNT=k:integer] [DURATION=seconds:integer] "
        "[SAMPLE=ratio:integer] [SLOTS=slots(count:integer slot:integer...)]",
    ),
    "hotkeys|stop": Doc(_GROUP, "8.6.0", "O(1)", "Ends a search, and keeps what it has found."),
    "info": Doc(
        _GROUP,
        "1.0.0",
        "O(1)",
        "Reports the server's state and counters, by section.",
        "[section...]",
        history=(("7.0.0", "Takes several sections."),),
    ),
    "lastsave": Doc(_GROUP, "1.0.0", "O(1)", "Tells when data was last saved, as a Unix time."),
    "latency": Doc(_GROUP, "2.8.13", _CONTAINER, "Holds the commands about slow events."),
    "latency|doctor": Doc(_GROUP, "2.8.13", "O(1)", "Explains the slow events seen so far."),
    "latency|graph": Doc(_GROUP, "2.8.13", "O(1)", "Draws how an event's delays went.", "event"),
    "latency|help": Doc(_GROUP, "2.8.13", "O(1)", "Lists the LATENCY subcommands."),
    "latency|histogram": Doc(
        _GROUP,
        "7.0.0",
        "O(N) for N commands that have been timed",
        "Tells how the run times of commands are spread.",
        "[command...]",
    ),
    "latency|history": Doc(
        _GROUP, "2.8.13", "O(1)", "Lists the delays noted for an event, with their times.", "event"
    ),
    "latency|latest": Doc(_GROUP, "2.8.13", "O(1)", "Tells each event's last and longest delay."),
    "latency|reset": Doc(
        _GROUP, "2.8.13", "O(1)", "Forgets the delays of some events, or of all.", "[event...]"
    ),
    "lolwut": Doc(
        _GROUP, "5.0.0", "", "Draws a picture and tells the version.", "[VERSION=version:integer]"
    ),
    "memory": Doc(_GROUP, "4.0.0", _CONTAINER, "Holds the commands about memory."),
    "memory|doctor": Doc(_GROUP, "4.0.0", "O(1)", "Reports what is odd about the memory in use."),
    "memory|help": Doc(_GROUP, "4.0.0", "O(1)", "Lists the MEMORY subcommands."),
    "memory|malloc-stats": Doc(
        _GROUP,
        "4.0.0",
        "Grows with the memory in use; may be slow",
        "Shows what the allocator says of itself.",
    ),
    "memory|purge": Doc(
        _GROUP,
        "4.0.0",
        "Grows with the memory in use; may be slow",
        "Gives unused memory back to the system.",
    ),
    "memory|stats": Doc(_GROUP, "4.0.0", "O(1)", "Tells what memory is used for."),
    "memory|usage": Doc(
        _GROUP,
        "4.0.0",
        "O(N) for N samples taken",
        "Estimates how many bytes a key and its value take.",
        "key [SAMPLES=count:integer]",
    ),
    "module": Doc(_GROUP, "4.0.0", _CONTAINER, "Holds the commands about modules."),
    "module|help": Doc(_GROUP, "5.0.0", "O(1)", "Lists the subcommands."),
    "module|list": Doc(
        _GROUP, "4.0.0", "O(1)", "Lists the modules that are loaded; there is none."
    ),
    "module|load": Doc(_GROUP, "4.0.0", "O(1)", _NO_MODULES, "path [arg...]"),
    "module|loadex": Doc(
        _GROUP, "7.0.0", "O(1)", _NO_MODULES, "path [CONFIG=configs(name value)...+] [ARGS=args...]"
    ),
    "module|unload": Doc(_GROUP, "4.0.0", "O(1)", _NO_MODULES, "name"),
    "monitor": Doc(_GROUP, "1.0.0", "", "Shows the commands of all clients as they come in."),
    "save": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N keys in all databases",
        "Writes a snapshot while everybody waits.",
    ),
    "shutdown": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N keys in all databases when they are saved, else O(1)",
        "Writes out what has to be kept and stops the server.",
        "[save-selector(NOSAVE | SAVE)] [NOW@7.0.0] [FORCE@7.0.0] [ABORT@7.0.0]",
        history=(("7.0.0", "NOW, FORCE and ABORT options."),),
    ),
    "slowlog": Doc(_GROUP, "2.2.12", _CONTAINER, "Holds the commands about the slow log."),
    "slowlog|get": Doc(
        _GROUP,
        "2.2.12",
        "O(N) for N entries answered",
        "Shows the commands that ran for longest past the limit, newest first.",
        "[count:integer]",
        history=(("4.0.0", "An entry tells the client's address, port and name."),),
    ),
    "slowlog|help": Doc(_GROUP, "6.2.0", "O(1)", "Lists the SLOWLOG subcommands."),
    "slowlog|len": Doc(_GROUP, "2.2.12", "O(1)", "Counts the entries of the slow log."),
    "slowlog|reset": Doc(
        _GROUP, "2.2.12", "O(N) for N entries in the slow log", "Empties the slow log."
    ),
    "swapdb": Doc(
        _GROUP,
        "4.0.0",
        "O(N) for N clients that watch or wait on a key of either database",
        "Lets two databases change places.",
        "index1:integer index2:integer",
    ),
    "time": Doc(_GROUP, "2.6.0", "O(1)", "Tells the server's time in seconds and microseconds."),
    "wait": Doc(
        _GENERIC,
        "3.0.0",
        "O(1)",
        "Waits until so many replicas have this connection's writes.",
        "numreplicas:integer timeout:integer",
    ),
    "waitaof": Doc(
        _GENERIC,
        "7.2.0",
        "O(1)",
        "Waits until this connection's writes are on disk, here or at so many replicas.",
        "numlocal:integer numreplicas:integer timeout:integer",
    ),
    **cluster_docs.DOCS,
}
