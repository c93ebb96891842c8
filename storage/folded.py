"""Keys with small values, folded: what several slots of a key table hold, in one ``bytes``.

::

    where each record ends, u16 for each slot | records

A record is the kind of its value, the length of its key, its key and its value. It is empty where
the slot's key is too long. ``_NO_VALUE`` says that the value is an object in the table, which is
too large, or was changed since. Packed strings lose what RESP has around them, where all are short:
``_SLIM`` beside the kind says so, and a byte with its length stands before each.

A key in a record costs some four bytes, where a key and a value that are objects cost ninety more.
Reading a string makes one object, as large as the string. All other values are written into where
they are, so the table takes one out of its record before it hands it out.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_le, read_i64_le, write_i64_le
from mypy_extensions import i64, u8

from headrace.storage.hash.hash import Hash
from headrace.storage.hash.small import HEAD as HASH_HEAD
from headrace.storage.list.list import START as LIST_HEAD
from headrace.storage.list.list import List
from headrace.storage.packed.strings import (
    NOWHERE,
    are_short,
    empty_buffer,
    is_same,
    wide,
    write_slim,
)
from headrace.storage.set.set import Set
from headrace.storage.set.small import HEAD as SET_HEAD
from headrace.storage.sorted_set.runs import HEAD_BYTES as RUN_HEAD
from headrace.storage.sorted_set.sorted_set import SortedSet

GROUP: Final = 32  # slots that are folded together
_MOST_KEY: Final[i64] = 255  # bytes of a key; the records of all slots are below 64 KiB
_MOST_VALUE: Final[i64] = 512  # bytes of a value: of a larger one the object's own are a small part

_NO_VALUE: Final[i64] = 0
_BYTES: Final[i64] = 1
_INTEGER: Final[i64] = 2
_HASH: Final[i64] = 3
_LIST: Final[i64] = 4
_SET: Final[i64] = 5
_SORTED_SET: Final[i64] = 6

_SLIM: Final[i64] = 16
_SCORE_BYTES: Final[i64] = 8
_HEAD: Final[i64] = 2 * GROUP
_NO_RECORDS: Final = bytes(2 * GROUP)
_FRONT: Final[i64] = 2  # of a record: what stands in front of its key
_U16: Final[i64] = 0xFFFF
_BYTE: Final[i64] = 0xFF


def fold(items: list[object], piece: bytes) -> bytes:
    """Put all that can be folded into a new piece; None takes its place in ``items``.

    ``items`` has the key and value of each slot; None: it stands in ``piece``.
    """
    out = empty_buffer()
    out.write(_NO_RECORDS)
    place: i64 = 0
    while place < GROUP:
        name = items[place << 1]
        value = items[(place << 1) + 1]
        if isinstance(name, bytes) and len(name) > _MOST_KEY:
            pass
        elif value is None:
            start = _start(piece, place)
            out.write(piece[start : _end(piece, place)])
            items[place << 1] = None
        else:
            key = name if isinstance(name, bytes) else key_at(piece, place)
            kind, text = _form_of(value)
            strings = _strings_of(kind, text, 0) if kind > _INTEGER else NOWHERE
            is_slim = strings != NOWHERE and are_short(text, strings)
            out.append(u8(kind | _SLIM if is_slim else kind))
            out.append(u8(len(key)))
            out.write(key)
            if isinstance(value, int):
                write_i64_le(out, value)
            elif is_slim:
                out.write(text[:strings])
                write_slim(out, text, strings)
            else:
                out.write(text)
            items[place << 1] = None
            if kind != _NO_VALUE:
                items[(place << 1) + 1] = None
        end: i64 = len(out)
        out[place << 1] = u8(end & _BYTE)
        out[(place << 1) + 1] = u8(end >> 8)
        place += 1
    return out.getvalue()


def can_fold(items: list[object]) -> bool:
    """Return whether ``fold`` would take anything."""
    at: i64 = 0
    end: i64 = len(items)
    while at < end:
        name = items[at]
        value = items[at + 1]
        if isinstance(name, bytes):
            if len(name) <= _MOST_KEY:
                return True
        elif value is not None and _form_of(value)[0] != _NO_VALUE:
            return True
        at += 2
    return False


def _form_of(value: object) -> tuple[i64, bytes]:
    """Return the kind of a value, ``_NO_VALUE`` if it is not folded, and its text, if any."""
    kind = _NO_VALUE
    rep: object = None
    if isinstance(value, bytes):
        kind, rep = _BYTES, value
    elif isinstance(value, int):
        return _INTEGER, b""
    elif isinstance(value, Hash):
        kind, rep = _HASH, value.rep
    elif isinstance(value, List):
        kind, rep = _LIST, value.rep
    elif isinstance(value, Set):
        kind, rep = _SET, value.rep
    elif isinstance(value, SortedSet):
        kind, rep = _SORTED_SET, value.rep
    if isinstance(rep, bytes) and len(rep) <= _MOST_VALUE:
        return kind, rep
    return _NO_VALUE, b""


def _strings_of(kind: i64, text: bytes, at: i64) -> i64:
    """Return where packed strings begin in a small form at a place, or ``NOWHERE``."""
    if kind == _HASH:
        return at + HASH_HEAD
    if kind == _LIST:
        return at + LIST_HEAD
    if kind == _SORTED_SET:
        return at + RUN_HEAD + _SCORE_BYTES * (i64(read_i16_le(text, at)) & _U16)
    return at + SET_HEAD if read_i16_le(text, at) >= 0 else NOWHERE  # else it has integers


def is_key(piece: bytes, place: i64, key: bytes) -> bool:
    """Return whether the record of a slot is of this key."""
    start = _start(piece, place)
    size: i64 = len(key)
    if size > _MOST_KEY or piece[start + 1] != size:
        return False
    return is_same(piece, start + _FRONT, key)


def key_at(piece: bytes, place: i64) -> bytes:
    """Return the key of a slot."""
    start = _start(piece, place)
    return piece[start + _FRONT : start + _FRONT + piece[start + 1]]


def value_at(piece: bytes, place: i64) -> object:
    """Return the value of a slot, a new object each time."""
    start = _start(piece, place)
    kind: i64 = piece[start]
    start += _FRONT + piece[start + 1]
    if kind == _BYTES:
        return piece[start : _end(piece, place)]
    if kind == _INTEGER:
        return int(read_i64_le(piece, start))
    if kind & _SLIM:
        kind ^= _SLIM
        strings = _strings_of(kind, piece, start)
        text = piece[start:strings] + wide(piece, strings, _end(piece, place))
    else:
        text = piece[start : _end(piece, place)]
    if kind == _HASH:
        found = Hash()
        found.rep = text
        return found
    if kind == _LIST:
        row = List()
        row.rep = text
        return row
    if kind == _SET:
        return Set(text)
    ranked = SortedSet()
    ranked.rep = text
    return ranked


def touch(piece: bytes, place: i64) -> i64:
    """Have the processor fetch what reading a slot needs."""
    return i64(piece[_start(piece, place)])


def touch_object(value: object) -> i64:
    """Have the processor fetch what reading a value that is not folded needs."""
    if isinstance(value, bytearray):
        return i64(value[0]) if value else 0
    return len(_form_of(value)[1])


def _start(piece: bytes, place: i64) -> i64:
    return _end(piece, place - 1) if place else _HEAD


def _end(piece: bytes, place: i64) -> i64:
    return i64(read_i16_le(piece, place << 1)) & _U16
