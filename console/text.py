"""Bytes, times and numbers as people read them, and what people type as bytes and IDs.

Nothing here makes HTML: what is returned is text, and templates escape it. Characters that nobody
would see, or that turn text around, are written as ``\\x00`` or ``\\u202e``, and bytes that are no
UTF-8 as ``\\xff``. A form shows a value in the same notation, with ``\\\\`` for a backslash, and
``unescape`` makes the same bytes of it again.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

Fields = Sequence[tuple[bytes, bytes]]

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_ESCAPE: Final = re.compile(r"\\(\\|r|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})?")
_ID: Final = re.compile(r"(\d{1,20})(?:-(\d{1,20}))?")
_AGO: Final = re.compile(r"-?(\d{1,9})\s*(s|m|min|h|d)(?:\s+ago)?")
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_SIMPLE_WORD: Final = re.compile(rb"[\w.:/@%+=,~-]+", re.ASCII)
_LARGEST_ID_PART: Final = (1 << 64) - 1
_JSON_BYTES: Final = 256 * 1024  # a value that is longer is not looked at as JSON
_EARLIEST_MS: Final = 946_684_800_000  # 2000: an ID below is no time
_LATEST_MS: Final = 7_258_118_400_000  # 2200: nor is one above
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
HEX_WIDTH: Final = 16
UNKNOWN: Final = "\u2013"  # a dash


def shown(data: bytes, limit: int = 0) -> str:
    """Return bytes as text of which every character can be seen; of the first ``limit`` bytes."""
    cut = data[:limit] if limit else data
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    return _UNSEEN.sub(_visible, decoder.decode(cut, final=len(cut) == len(data)))


def _visible(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x80 else f"\\u{number:04x}"


def escape(data: bytes) -> str:
    """Return bytes as the text that ``unescape`` reads."""
    return shown(data.replace(b"\\", b"\\\\"))


def unescape(text: str) -> bytes:
    """Return the bytes that text from a form stands for; its line ends are those of a browser.

    Raises ValueError where a backslash begins nothing that is known.
    """
    parts: list[bytes] = []
    at = 0
    text = text.replace("\r\n", "\n")
    for found in _ESCAPE.finditer(text):
        parts += [text[at : found.start()].encode(), _unescaped(found[1])]
        at = found.end()
    return b"".join([*parts, text[at:].encode()])


def _unescaped(code: str | None) -> bytes:
    if code is None:
        raise ValueError("a backslash stands before \\, r, xNN or uNNNN; write \\\\ for one")
    if code in ("\\", "r"):
        return code.replace("r", "\r").encode()
    number = int(code[1:], 16)
    return bytes([number]) if code[0] == "x" else chr(number).encode("utf-8", "surrogatepass")


def to_url(data: bytes) -> str:
    """Return bytes as a part of a URL."""
    return quote_from_bytes(data, safe="")


def from_url(text: str) -> bytes:
    """Return the bytes that a part of a URL stands for."""
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape"))


def command_line(words: Iterable[bytes]) -> str:
    """Return a command as redis-cli takes it, in ASCII and in one line."""
    return " ".join(_word(word) for word in words)


def _word(word: bytes) -> str:
    if _SIMPLE_WORD.fullmatch(word):
        return word.decode()
    inner = "".join(
        f"\\{chr(byte)}" if byte in b'"\\' else chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}"
        for byte in word
    )
    return f'"{inner}"'


def point(text: str, now_ms: int) -> str:
    """Return the stream ID that a person means: an ID, a time in UTC, or a time ago.

    Numbers of ten digits are seconds since 1970. A time without a day is the last one that was.
    Raises ValueError if it is none of these.
    """
    text = text.strip()
    if found := _ID.fullmatch(text):
        if any(int(part) > _LARGEST_ID_PART for part in found.groups("0")):
            raise ValueError(f"{text} is larger than any ID")
        if found[2] is None and len(found[1]) == 10:
            return f"{found[1]}000"
        return text
    if found := _AGO.fullmatch(text.lower()):
        return str(max(now_ms - int(found[1]) * _SECONDS[found[2]] * 1000, 0))
    if re.fullmatch(r"\d\d?:\d\d(:\d\d)?", text):
        now = datetime.fromtimestamp(now_ms / 1000, UTC)
        hour, _, rest = text.partition(":")
        text = f"{hour:0>2}:{rest}"
        day = now if text <= now.strftime("%H:%M:%S") else now - timedelta(days=1)
        text = f"{day.date()}T{text}"
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no ID, and no time such as 2026-01-31 12:30, 12:30 or 5m ago"
        ) from None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return str(max(int(when.timestamp() * 1000), 0))


def ms_of(entry_id: str) -> int | None:
    """Return the time of an ID, in milliseconds since 1970; None if it does not look like one."""
    ms = int(entry_id.partition("-")[0] or 0)
    return ms if _EARLIEST_MS <= ms <= _LATEST_MS else None


def time_of(entry_id: str) -> str:
    """Return the time of an ID in UTC, to the millisecond; empty if it does not look like one."""
    ms = ms_of(entry_id)
    if ms is None:
        return ""
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    return when.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")


def age(ms: float) -> str:
    """Return a length of time in the unit that people would use: ``12 s``, ``5 min``."""
    seconds = max(ms, 0) / 1000
    if seconds < 1:
        return "now" if ms < 100 else f"{seconds:.1f} s"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def size(count: float) -> str:
    """Return a number of bytes in three digits or so, in powers of 1000."""
    power = 0
    while count >= 1000 and power < len(_UNITS) - 1:
        count /= 1000
        power += 1
    return (
        f"{count:.0f} {_UNITS[power]}"
        if not power or count >= 100
        else f"{count:.1f} {_UNITS[power]}"
    )


def rate(per_second: float | None) -> str:
    """Return how often something happens in a second; a dash if that is not known."""
    if per_second is None:
        return UNKNOWN
    return f"{per_second:,.0f}" if per_second >= 10 or per_second == 0 else f"{per_second:.1f}"


def hex_lines(data: bytes, start: int, length: int) -> str:
    """Return a part of bytes as a hex dump: offset, bytes, and what of them is ASCII."""
    lines: list[str] = []
    for at in range(start, min(start + length, len(data)), HEX_WIDTH):
        row = data[at : at + HEX_WIDTH]
        digits = f"{row[:8].hex(' ')}  {row[8:].hex(' ')}"
        ascii_part = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:08x}  {digits:<49} {ascii_part}")
    return "\n".join(lines)


def as_json(fields: Fields, limit: int) -> tuple[str, bool]:
    """Return fields as JSON, values that are objects or lists as such, and whether that is all.

    Pairs in a list where a name comes twice, since an object would lose one. What is beyond
    ``limit`` bytes is left out.
    """
    names: list[str] = []
    values: list[object] = []
    taken = 0
    for name, value in fields:
        taken += len(name) + len(value)
        names.append(shown(name, limit))
        values.append(_json_value(value, limit) if taken <= limit else shown(value, limit))
        if taken > limit:
            break
    text = _dumped(names, values)
    if text is None:
        text = _dumped(names, [shown(value, limit) for _, value in fields[: len(names)]]) or ""
    return text[:limit], taken <= limit and len(text) <= limit


def _dumped(names: list[str], values: list[object]) -> str | None:
    """Return JSON with all its characters to be seen; None where it is too deep."""
    whole: object = dict(zip(names, values, strict=True))
    if len(set(names)) < len(names):
        whole = [{name: value} for name, value in zip(names, values, strict=True)]
    try:
        text = json.dumps(whole, indent=2, ensure_ascii=False)
    except RecursionError:
        return None
    return _UNSEEN.sub(_visible, text)


def _json_value(value: bytes, limit: int) -> object:
    if value[:1] in (b"{", b"[") and len(value) <= _JSON_BYTES:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            pass
    return shown(value, limit)
