"""The payloads of DUMP and FUNCTION DUMP, which RESTORE and FUNCTION RESTORE take.

A payload of DUMP is one value as Redis packs it: the number of its type, the value as it stands in
an RDB file, then a footer: the version of that form in two bytes, and CRC-64 of all before in
eight. Notes of ours may stand behind the value, as in a file: other servers do not look there. A
payload of Valkey has a version of its own. One of FUNCTION DUMP has for each library a mark and its
code, and the same footer.

RESTORE also takes the answers of our servers in earlier versions: the records of one key without a
name and without a deadline, and a footer: the version of the format in two bytes and XXH3-64 of all
before in eight.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from xxhash import xxh3_64_intdigest

from headrace.persistence.errors import CorruptRDB
from headrace.persistence.forms.form import Unsound
from headrace.persistence.forms.records import CHECKSUM, NO_DEADLINE, OLDEST_VERSION, Malformed
from headrace.persistence.forms.records import VERSION as RECORDS_VERSION
from headrace.persistence.forms.table import RecordDecoder, check, form_of, forms
from headrace.persistence.rdb.crc64 import crc64
from headrace.persistence.rdb.kinds import FUNCTIONS, NOTE, VERSION, is_valkey_version, known_number
from headrace.persistence.rdb.primitives import RdbOutput, RdbSource
from headrace.persistence.rdb.values import RdbValues, whole
from headrace.storage.faces import frozen

_OWN_VERSION: Final = Struct("<H")
OWN_FOOTER_BYTES: Final = _OWN_VERSION.size + CHECKSUM.size


class BadFooter(Exception):
    """The bytes were damaged, or come from a server that is newer or of another kind."""


class BadPayload(Exception):
    """The footer is right, but there is no value in front of it."""


class _OneValue(RecordDecoder):
    def __init__(self, now_ms: int) -> None:
        super().__init__(now_ms)
        self.value: object = None

    def finish(self) -> None:
        """End the records. Raises Malformed if something is missing, or there was more."""
        self._start = self.end
        self.finish_value()
        if self.keys != 1:
            raise self.malformed("the records of one key")

    def place(self, key: bytes, value: object, expire_ms: int) -> None:
        self.keys += 1
        if key or expire_ms != NO_DEADLINE:
            raise self.malformed("a key without name and deadline")
        self.value = value


def has_own_footer(data: bytes) -> bool:
    """Return whether the bytes end as a payload of this form, with the right checksum."""
    body_bytes = len(data) - CHECKSUM.size
    if body_bytes < _OWN_VERSION.size:
        return False
    (version,) = _OWN_VERSION.unpack_from(data, body_bytes - _OWN_VERSION.size)
    (checksum,) = CHECKSUM.unpack_from(data, body_bytes)
    known = OLDEST_VERSION <= version <= RECORDS_VERSION
    return bool(known and xxh3_64_intdigest(memoryview(data)[:body_bytes]) == checksum)


def load_own(data: bytes, now_ms: int) -> object:
    """Return the value of a payload whose footer is right. Raises BadPayload if there is none.

    Complexity: O(its size), because every entry is looked at.
    """
    decoder = _OneValue(now_ms)
    decoder.take(data, len(data) - OWN_FOOTER_BYTES)
    try:
        while decoder.step():
            pass
        decoder.finish()
        value = decoder.value
        check(value)
    except (Malformed, Unsound) as error:
        raise BadPayload(str(error)) from error
    finally:
        decoder.close()
    return value


_VERSION_BYTES: Final = 2
_CHECKSUM_BYTES: Final = 8
_FOOTER_BYTES: Final = _VERSION_BYTES + _CHECKSUM_BYTES
_NAME: Final = b"payload"
_values: Final[dict[int, RdbValues]] = {}  # by RDB's numbers of their types, when one was needed


def dump_value(value: object) -> bytes:
    """Return the payload of a value as a keyspace holds it. Complexity: O(its size)."""
    output = RdbOutput(VERSION)
    content = frozen(value)
    form = form_of(content)
    output.byte(form.rdb_type(content, VERSION))
    walk = form.write_rdb(output, content)
    while walk is not None and walk.step():
        pass
    output.end_value()
    return sealed(output)


def sealed(output: RdbOutput) -> bytes:
    """Return a payload of the bytes written, with its footer."""
    output.little(VERSION, _VERSION_BYTES)
    body = b"".join(output.take())
    return body + crc64(body, 0).to_bytes(_CHECKSUM_BYTES, "little")


def body_of(data: bytes) -> bytes | None:
    """Return a payload of Redis or Valkey without its footer; None where that is not right."""
    return data[:-_FOOTER_BYTES] if _version(data) >= 0 else None


def load_value(data: bytes, defaults: dict[str, int], now_ms: int) -> object:
    """Return the value that a payload holds; what it dates later counts as having happened now.

    Complexity: O(its size), because every element is looked at.

    Raises:
        BadFooter: it was damaged, or comes from a server that is newer or of another kind.
        BadPayload: there is no value in it.
    """
    version = _version(data)
    if version < 0:
        if has_own_footer(data):
            return load_own(data, now_ms)
        raise BadFooter
    body = data[:-_FOOTER_BYTES]
    if not body:
        raise BadPayload("nothing in front of the footer")
    source = RdbSource(_NAME, body, len(body), now_ms)
    number = known_number(source.byte(), is_valkey_version(version))
    known = _known(number)
    if known is None:
        raise BadPayload(f"a value of type {number}")
    try:
        value = whole(known.read_rdb(source, number, defaults))
        _take_notes(known, value, source)
        return value
    except CorruptRDB as error:
        raise BadPayload(str(error)) from error


def _take_notes(known: RdbValues, value: object, source: RdbSource) -> None:
    """Read the notes behind a value; as in Redis, anything else may stand there."""
    while source.left and source.byte() == NOTE:
        try:
            name = source.string()
            text = source.string()
        except CorruptRDB:
            return  # it is no note
        known.take_note(value, name, RdbSource(_NAME, text, len(text), source.now_ms))


def _version(data: bytes) -> int:
    """Return the version in a right footer of Redis or Valkey; -1 where there is none."""
    end = len(data) - _CHECKSUM_BYTES
    if end < _VERSION_BYTES:
        return -1
    version = int.from_bytes(data[end - _VERSION_BYTES : end], "little")
    if version > VERSION and not is_valkey_version(version):
        return -1
    checksum = int.from_bytes(data[end:], "little")
    if checksum and checksum != crc64(data[:end], 0):  # 0: the server makes no checksums
        return -1
    return version


def _known(number: int) -> RdbValues | None:
    if not _values:
        for known in forms():
            for each in known.rdb_types:
                _values[each] = known
    return _values.get(number)


def dump_libraries(codes: list[bytes]) -> bytes:
    """Return the payload of libraries."""
    output = RdbOutput(VERSION)
    for code in codes:
        output.byte(FUNCTIONS)
        output.string(code)
    return sealed(output)


def libraries_of(data: bytes) -> list[bytes] | None:
    """Return the code of each library in a payload; None where it is damaged.

    Raises CorruptRDB if there is something else in it.
    """
    body = body_of(data)
    if body is None:
        return None
    source = RdbSource(_NAME, body, len(body), 0)
    codes: list[bytes] = []
    while source.left:
        if source.byte() != FUNCTIONS:
            raise CorruptRDB(_NAME, source.offset, "a library")
        codes.append(source.string())
    return codes
