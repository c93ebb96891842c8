"""A server of a later version of the exchange, in which regions can share notes: ``AA NOTE text``.

It is started as ``python -P later_version.py`` with what ``headrace`` takes. ``AA|NOTES`` answers
with all notes that the process has heard of, loaded ones included.
"""

import sys

from headrace.protocol.replies import OK
from headrace.regions.exchange.effects import Effect, effect, emit
from headrace.regions.knowledge.records import EFFECTS
from headrace.server.cli import main
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ADMIN, WRITE, Command, Handler, add_row
from headrace.storage.sharing import AA


def declare(name: bytes, arity: int, flags: int, run: Handler) -> None:
    row = Command(name, "", arity, flags, (), (), ())
    row.run = run
    add_row(row)


EFFECTS[b"NOTE"] = 2
notes: list[bytes] = []


@effect(b"NOTE")
def apply_note(found: Effect) -> None:
    notes.append(found.words[2])


def aa_note(call: Call) -> object:
    emit(call.server, [AA, b"NOTE", call.argv[2]])
    return OK


def aa_notes(call: Call) -> object:
    return sorted(notes)


declare(b"aa|note", 3, ADMIN | WRITE, aa_note)
declare(b"aa|notes", 2, ADMIN, aa_notes)


if __name__ == "__main__":
    sys.exit(main())
