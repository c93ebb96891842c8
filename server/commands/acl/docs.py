"""Documentation of the commands about users and their rights."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "server"

DOCS: Final[dict[str, Doc]] = {
    "acl": Doc(
        _GROUP,
        "6.0.0",
        "Depends on subcommand.",
        "Holds the commands about users and their rights.",
    ),
    "acl|cat": Doc(
        _GROUP,
        "6.0.0",
        "O(1), as there are few commands",
        "Lists the categories of commands, or the commands of one.",
        "[category]",
    ),
    "acl|deluser": Doc(
        _GROUP,
        "6.0.0",
        "O(1) for each user",
        "Forgets users, and closes their connections.",
        "username...",
    ),
    "acl|dryrun": Doc(
        _GROUP,
        "7.0.0",
        "O(1)",
        "Tells whether a user may run a command, without running it.",
        "username command [arg...]",
    ),
    "acl|genpass": Doc(
        _GROUP, "6.0.0", "O(1)", "Makes a password that nobody can guess.", "[bits:integer]"
    ),
    "acl|getuser": Doc(
        _GROUP,
        "6.0.0",
        "O(N) for N rules",
        "Shows what a user is and may do.",
        "username",
        history=(
            ("6.2.0", "Channels."),
            ("7.0.0", "Selectors; keys and channels are shown as rules."),
        ),
    ),
    "acl|help": Doc(_GROUP, "6.0.0", "O(1)", "Lists the ACL subcommands."),
    "acl|list": Doc(
        _GROUP, "6.0.0", "O(N) for N users", "Shows all users, each as a line of a file."
    ),
    "acl|load": Doc(
        _GROUP, "6.0.0", "O(N) for N users", "Reads the users from the file of users again."
    ),
    "acl|log": Doc(
        _GROUP,
        "6.0.0",
        "O(N) for N entries shown",
        "Shows what was refused lately, or forgets it.",
        "[operation(count:integer | RESET)]",
        history=(("7.2.0", "Number and times of each entry."),),
    ),
    "acl|save": Doc(_GROUP, "6.0.0", "O(N) for N users", "Writes the users into their file."),
    "acl|setuser": Doc(
        _GROUP,
        "6.0.0",
        "O(N) for N rules",
        "Makes a user, or changes one.",
        "username [rule...]",
        history=(("6.2.0", "Channels."), ("7.0.0", "Selectors, and reading or writing of keys.")),
    ),
    "acl|users": Doc(_GROUP, "6.0.0", "O(N) for N users", "Lists the names of all users."),
    "acl|whoami": Doc(_GROUP, "6.0.0", "O(1)", "Tells which user this connection acts as."),
}
