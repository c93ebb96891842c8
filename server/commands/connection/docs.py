"""Documentation of the commands that concern a client's own connection."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "connection"
_ON_OFF: Final = "enabled(ON | OFF)"

DOCS: Final[dict[str, Doc]] = {
    "auth": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N passwords that the user has",
        "Logs the connection in, as the default user or as the one named.",
        "[username@6.0.0] password",
        history=(("6.0.0", "Takes a user name."),),
    ),
    "client": Doc(
        _GROUP,
        "2.4.0",
        "Depends on subcommand.",
        "Holds the commands about client connections.",
    ),
    "client|caching": Doc(
        _GROUP,
        "6.0.0",
        "O(1)",
        "Says whether the keys of the next command are tracked.",
        "mode(YES | NO)",
    ),
    "client|getname": Doc(_GROUP, "2.6.9", "O(1)", "Tells the name this connection goes by."),
    "client|getredir": Doc(
        _GROUP,
        "6.0.0",
        "O(1)",
        "Tells which client gets this connection's tracking invalidations.",
    ),
    "client|help": Doc(_GROUP, "5.0.0", "O(1)", "Lists the CLIENT subcommands."),
    "client|id": Doc(_GROUP, "5.0.0", "O(1)", "Tells the number the server gave this connection."),
    "client|info": Doc(_GROUP, "6.2.0", "O(1)", "Describes this connection in one line."),
    "client|kill": Doc(
        _GROUP,
        "2.4.0",
        "O(N) for N connected clients",
        "Closes the connections that match an address or a set of filters.",
        "filter(old-format<ip:port>!2.8.12 | new-format("
        "[ID=client-id:integer@2.8.12]"
        " | [TYPE=client-type(NORMAL | MASTER@3.2.0 | SLAVE | REPLICA@5.0.0 | PUBSUB)"
        "@2.8.12]"
        " | [USER=username] | [ADDR=addr<ip:port>] | [LADDR=laddr<ip:port>@6.2.0]"
        " | [SKIPME=skipme(YES | NO)] | [MAXAGE=maxage:integer@7.4.0])...)",
        history=(
            ("2.8.12", "Takes filters, among them ID."),
            ("3.2.0", "TYPE knows master."),
            ("5.0.0", "TYPE knows replica, for which slave stays another word."),
            ("6.2.0", "LADDR filter."),
            ("7.4.0", "MAXAGE filter."),
        ),
    ),
    "client|list": Doc(
        _GROUP,
        "2.4.0",
        "O(N) for N connected clients",
        "Describes the connected clients, one line each.",
        "[TYPE=client-type(NORMAL | MASTER | REPLICA | PUBSUB)@5.0.0]"
        " [ID=client-id:integer@6.2.0...]",
        history=(
            ("2.8.12", "A line tells the client's id."),
            ("5.0.0", "TYPE filter."),
            ("6.0.0", "A line tells the user."),
            ("6.2.0", "ID filter; a line tells argv-mem, tot-mem, laddr and redir."),
            ("7.0.0", "A line tells resp, multi-mem, rbs and rbp."),
            ("7.0.3", "A line tells ssub."),
        ),
    ),
    "client|no-evict": Doc(
        _GROUP,
        "7.0.0",
        "O(1)",
        "Says whether this connection may be closed to free memory.",
        _ON_OFF,
    ),
    "client|no-touch": Doc(
        _GROUP,
        "7.2.0",
        "O(1)",
        "Says whether this connection's reads count as uses of the keys.",
        _ON_OFF,
    ),
    "client|pause": Doc(
        _GROUP,
        "3.0.0",
        "O(1)",
        "Holds back the commands of all clients, or only the writes, for some milliseconds.",
        "timeout:integer [mode(WRITE | ALL)@6.2.0]",
        history=(("6.2.0", "Can hold back writes alone."),),
    ),
    "client|reply": Doc(
        _GROUP,
        "3.2.0",
        "O(1)",
        "Says whether the server answers this connection.",
        "action(ON | OFF | SKIP)",
    ),
    "client|setinfo": Doc(
        _GROUP,
        "7.2.0",
        "O(1)",
        "Notes which client library, in which version, uses this connection.",
        "attr(LIB-NAME=libname | LIB-VER=libver)",
    ),
    "client|setname": Doc(
        _GROUP, "2.6.9", "O(1)", "Gives this connection a name.", "connection-name"
    ),
    "client|tracking": Doc(
        _GROUP,
        "6.0.0",
        "O(1)",
        "Says whether this connection is told when what it has read changes.",
        "status(ON | OFF) [REDIRECT=client-id:integer] [PREFIX=prefix...+] [BCAST]"
        " [OPTIN] [OPTOUT] [NOLOOP]",
    ),
    "client|trackinginfo": Doc(
        _GROUP, "6.2.0", "O(1)", "Describes how this connection tracks the keys it reads."
    ),
    "client|unblock": Doc(
        _GROUP,
        "5.0.0",
        "O(log N) for N connected clients",
        "Ends the wait of a client that a blocking command holds.",
        "client-id:integer [unblock-type(TIMEOUT | ERROR)]",
    ),
    "client|unpause": Doc(
        _GROUP, "6.2.0", "O(N) for N paused clients", "Lets paused clients go on."
    ),
    "echo": Doc(_GROUP, "1.0.0", "O(1)", "Answers with the text it was given.", "message"),
    "hello": Doc(
        _GROUP,
        "6.0.0",
        "O(1)",
        "Introduces client and server and chooses the protocol version.",
        "[arguments(protover:integer [AUTH=auth(username password)] [SETNAME=clientname])]",
        history=(("6.2.0", "Works without a protocol version."),),
    ),
    "ping": Doc(_GROUP, "1.0.0", "O(1)", "Answers PONG, or with the text given.", "[message]"),
    "quit": Doc(
        _GROUP,
        "1.0.0",
        "O(1)",
        "Closes the connection.",
        deprecated_since="7.2.0",
        replaced_by="just closing the connection",
    ),
    "reset": Doc(_GROUP, "6.2.0", "O(1)", "Puts the connection back to how it began."),
    "select": Doc(
        _GROUP, "1.0.0", "O(1)", "Makes another database the one to work in.", "index:integer"
    ),
}
