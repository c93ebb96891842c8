"""Documentation of the commands for scripts and functions."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "scripting"
_SCRIPT: Final = "Depends on the script that is executed."
_FUNCTION: Final = "Depends on the function that is executed."
_CONTAINER: Final = "Depends on subcommand."

DOCS: Final[dict[str, Doc]] = {
    "eval": Doc(
        _GROUP, "2.6.0", _SCRIPT, "Runs a Lua script.", "script numkeys:integer [key...] [arg...]"
    ),
    "eval_ro": Doc(
        _GROUP,
        "7.0.0",
        _SCRIPT,
        "Runs a Lua script that only reads.",
        "script numkeys:integer [key...] [arg...]",
    ),
    "evalsha": Doc(
        _GROUP,
        "2.6.0",
        _SCRIPT,
        "Runs a Lua script that the server knows, by its SHA-1.",
        "sha1 numkeys:integer [key...] [arg...]",
    ),
    "evalsha_ro": Doc(
        _GROUP,
        "7.0.0",
        _SCRIPT,
        "Runs a Lua script that the server knows and that only reads, by its SHA-1.",
        "sha1 numkeys:integer [key...] [arg...]",
    ),
    "fcall": Doc(
        _GROUP, "7.0.0", _FUNCTION, "Runs a function.", "function numkeys:integer [key...] [arg...]"
    ),
    "fcall_ro": Doc(
        _GROUP,
        "7.0.0",
        _FUNCTION,
        "Runs a function that only reads.",
        "function numkeys:integer [key...] [arg...]",
    ),
    "function": Doc(_GROUP, "7.0.0", _CONTAINER, "Holds commands for functions."),
    "function|delete": Doc(
        _GROUP, "7.0.0", "O(1)", "Deletes a library and its functions.", "library-name"
    ),
    "function|dump": Doc(
        _GROUP, "7.0.0", "O(N) for N functions", "Answers all libraries in one string."
    ),
    "function|flush": Doc(
        _GROUP,
        "7.0.0",
        "O(N) for N functions deleted",
        "Deletes all libraries.",
        "[flush-type(ASYNC | SYNC)]",
    ),
    "function|help": Doc(_GROUP, "7.0.0", "O(1)", "Lists the FUNCTION subcommands."),
    "function|kill": Doc(_GROUP, "7.0.0", "O(1)", "Ends the function that runs."),
    "function|list": Doc(
        _GROUP,
        "7.0.0",
        "O(N) for N functions",
        "Lists libraries and their functions.",
        "[LIBRARYNAME=library-name-pattern:string] [WITHCODE]",
    ),
    "function|load": Doc(
        _GROUP, "7.0.0", "O(1), besides compiling it", "Takes a library.", "[REPLACE] function-code"
    ),
    "function|restore": Doc(
        _GROUP,
        "7.0.0",
        "O(N) for N functions in the string",
        "Takes the libraries of a string that FUNCTION DUMP answered.",
        "serialized-value [policy(FLUSH | APPEND | REPLACE)]",
    ),
    "function|stats": Doc(
        _GROUP, "7.0.0", "O(1)", "Says which function runs, and how many there are."
    ),
    "script": Doc(_GROUP, "2.6.0", _CONTAINER, "Holds commands for Lua scripts."),
    "script|debug": Doc(
        _GROUP,
        "3.2.0",
        "O(1)",
        "Chooses how scripts are debugged; there is no debugger here.",
        "mode(YES | SYNC | NO)",
    ),
    "script|exists": Doc(
        _GROUP,
        "2.6.0",
        "O(N) for N scripts asked for",
        "Says which scripts the server knows.",
        "sha1...",
    ),
    "script|flush": Doc(
        _GROUP,
        "2.6.0",
        "O(N) for N scripts that are known",
        "Forgets all scripts.",
        "[flush-type(ASYNC | SYNC)@6.2.0]",
        history=(("6.2.0", "Takes ASYNC and SYNC."),),
    ),
    "script|help": Doc(_GROUP, "5.0.0", "O(1)", "Lists the SCRIPT subcommands."),
    "script|kill": Doc(_GROUP, "2.6.0", "O(1)", "Ends the script that runs."),
    "script|load": Doc(
        _GROUP,
        "2.6.0",
        "O(N) for a script of N bytes",
        "Has the server know a script, without running it.",
        "script",
    ),
}
