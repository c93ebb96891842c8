"""Documentation of the commands for regions."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "server"
_SINCE: Final = "0.2.0"

DOCS: Final[dict[str, Doc]] = {
    "aa": Doc(
        _GROUP,
        _SINCE,
        "Depends on subcommand.",
        "Holds the commands about the regions that share a database.",
    ),
    "aa|auth": Doc(
        _GROUP,
        _SINCE,
        "O(1)",
        "Shows that another region has the secret, and that this one has it.",
        "what(nonce | PROOF=code)",
        internal=True,
    ),
    "aa|copy": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N bytes",
        "Gives another region a full copy, piece by piece.",
        "what(BEGIN | piece(number:integer offset:integer))",
        internal=True,
    ),
    "aa|count": Doc(
        _GROUP,
        _SINCE,
        "O(1)",
        "Counts the effects of a kind, such as ACK, that this region has made since its start.",
        "effect",
    ),
    "aa|digest": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N entries, or for those that NEWEST names in each of the stream's lanes",
        "Tells a fingerprint of a stream, or of all, that is equal where regions agree.",
        "[which(key [NEWEST=count:integer])]",
    ),
    "aa|forget": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N regions",
        "Lets a region take part no more, so that nothing is kept for it. It comes back as a new "
        "one only.",
        "region:integer",
    ),
    "aa|hello": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N origins",
        "Introduces another region, and answers with who this one is.",
        "version database region:integer epoch:integer generation:integer nonce mode numbers "
        "[process]",
        internal=True,
    ),
    "aa|help": Doc(_GROUP, _SINCE, "O(1)", "Lists the AA subcommands."),
    "aa|join": Doc(
        _GROUP,
        _SINCE,
        "O(1)",
        "Lets a region take part that aa-peers does not name.",
        "region:integer",
    ),
    "aa|move": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N pending entries",
        "Has a group read in another region, where its readers go on without reading anything "
        "twice, or with * in all regions.",
        "key group region [FORCE]",
    ),
    "aa|pause": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N peers",
        "Takes nothing more from a peer, or from ALL.",
        "peer",
    ),
    "aa|peers": Doc(
        _GROUP, _SINCE, "O(N) for N peers", "Tells how the other regions are, seen from here."
    ),
    "aa|pull": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N bytes",
        "Answers with records, or waits until there are some.",
        "bytes:integer [FROM=from] [ACK=ack] [ALSO=origin...]",
        internal=True,
    ),
    "aa|resume": Doc(
        _GROUP, _SINCE, "O(N) for N peers", "Takes from a peer, or from ALL, again.", "peer"
    ),
    "aa|stream": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N entries",
        "Tells all that regions have to agree on about a stream.",
        "key",
    ),
    "aa|sync": Doc(
        _GROUP,
        _SINCE,
        "Depends on what is missing",
        "Waits until all is here that each peer has answered so far, also while links are paused.",
        "[milliseconds:integer]",
    ),
    "aa|token": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N origins",
        "Tells what stands for all that is here now, for AA WAIT in another region.",
    ),
    "aa|wait": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N origins",
        "Waits until all is here that a token stands for.",
        "token milliseconds:integer",
    ),
}
