"""Files from outside, broken at random, under every tool: an exit code and a sentence, always.

``file_fuzz.py SEED ROUNDS [FOLDER]`` tries so many files, in one process, and prints which of them
a tool did not take as it should: an exception, no exit code, too much time or memory, or something
written that the tools themselves refuse. ``SEED`` with the number of a round, such as ``7:123``,
tries that one and leaves its files in ``FOLDER``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path

from msgspec import msgpack
from xxhash import xxh3_64_intdigest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import headrace.server.commands.families  # noqa: F401  (fills the command table)
from headrace.persistence.forms.records import CHECKSUM, RECORD_HEAD
from headrace.persistence.snapshot.file import FRAME_HEAD, PREAMBLE
from headrace.protocol.client import request
from headrace.server.dispatch.rows import TABLE
from headrace.server.tools.cli import run_tool
from support.interchange import length, listpack, rdb, stream, string
from support.random_scripts import LEARNED, recorded
from support.snapshots import odd_databases, snapshot

FOLDER = "appendonlydir"
MANIFEST = "appendonly.aof.manifest"
TIME_S = 20
MEMORY_BYTES = 1 << 30  # more than the process has at its start
EXTREMES = (
    *(0, 1, 63, 64, 127, 128, 255, 256, 2**14, 2**31 - 1, 2**31, 2**32, 2**40),
    *(2**62, 2**63 - 1, 2**63, 2**64 - 1, -1, -2, -(2**31), -(2**63)),
)
WORDS = (
    *(b"k", b"s", b"g", b"c", b"0", b"1", b"-1", b"1-1", b"5-0", b"*", b"$", b">", b"-", b"+"),
    *(b"COUNT", b"BLOCK", b"STREAMS", b"GROUP", b"MAXLEN", b"MINID", b"~", b"=", b"LIMIT"),
    *(b"EX", b"PXAT", b"NX", b"XX", b"GET", b"KEEPTTL", b"IDMP", b"IDS", b"FORCE", b"JUSTID"),
    *(b"9223372036854775807", b"18446744073709551615-18446744073709551615", b"nan", b"1e400"),
    *(b"", b"\0", b"\xff\xfe", b"DELREF", b"ACKED", b"CREATE", b"MKSTREAM", b"RETRYCOUNT", b"f"),
)


class TooLong(Exception):
    """A tool took too much time."""


class Outcome:
    """What a tool did: its exit code, what it wrote, and what is wrong with that."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.code = -1
        self.text = ""
        self.fault = ""


class Tools:
    """Runs tools in this process and takes what they write."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / "written").open("w+", encoding="utf-8", errors="backslashreplace")
        logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=self._file)
        signal.signal(signal.SIGALRM, self._too_long)
        size_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (size_bytes + MEMORY_BYTES, hard))

    @staticmethod
    def _too_long(number: int, frame: object) -> None:
        raise TooLong

    def run(self, *words: str) -> Outcome:
        outcome = Outcome(list(words))
        self._file.seek(0)
        self._file.truncate()
        signal.alarm(TIME_S)
        try:
            with contextlib.redirect_stdout(self._file), contextlib.redirect_stderr(self._file):
                outcome.code = run_tool(outcome.words)
        except TooLong:
            outcome.fault = f"more than {TIME_S} s"
        except BaseException:
            outcome.fault = traceback.format_exc()
        finally:
            signal.alarm(0)
        self._file.flush()
        self._file.seek(0)
        outcome.text = self._file.read()
        if not outcome.fault:
            if outcome.code not in (0, 1):
                outcome.fault = f"exit code {outcome.code}"
            elif "Traceback" in outcome.text or "There is not enough memory" in outcome.text:
                outcome.fault = outcome.text
            elif outcome.code and not outcome.text.strip():
                outcome.fault = "refused without a word"
        return outcome


# Whole files, to be broken


def commands(rng: random.Random) -> bytes:
    """Commands of all kinds, with words that may fit."""
    names = sorted(TABLE)
    # After a command that is left out, others may fail: then the rest is met as well.
    parts = [request([b"LPUSH", b"l", b"1"])] if rng.random() < 0.7 else []
    parts += map(request, LEARNED)
    for _ in range(rng.randrange(1, 40)):
        name = rng.choice(names)
        words = [name]
        children = TABLE[name].subcommands
        if children and rng.random() < 0.9:
            words.append(rng.choice(sorted(children)))
        words += [_word(rng) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4, 5, 8)))]
        made = recorded(rng, words) if rng.random() < 0.3 else [words]
        parts += map(request, made)
        if rng.random() < 0.1:
            parts.append(request([rng.choice((b"MULTI", b"EXEC", b"DISCARD", b"SAVE"))]))
        if rng.random() < 0.1:
            parts.append(b"#TS:%d\r\n" % rng.choice(EXTREMES))
    return b"".join(parts)


def _word(rng: random.Random) -> bytes:
    return b"%d" % rng.choice(EXTREMES) if rng.random() < 0.2 else rng.choice(WORDS)


def plain_commands() -> bytes:
    made = [request([b"SELECT", b"0"]), request([b"SET", b"k", b"v" * 300])]
    made += [request([b"XADD", b"s", b"%d-1" % n, b"f", b"v%d" % n]) for n in range(1, 40)]
    made += map(request, LEARNED)
    made += map(request, recorded(random.Random(0), [b"RPUSH", b"l", b"of a script"]))
    made += [
        request([b"XGROUP", b"CREATE", b"s", b"g", b"0"]),
        request([b"MULTI"]),
        request([b"SET", b"a", b"1"]),
        request([b"SET", b"b", b"2"]),
        request([b"EXEC"]),
    ]
    return b"#TS:1700000000\r\n" + b"".join(made)


def rdb_files() -> list[bytes]:
    """Streams of every form, strings of every form, and values that are passed."""
    idmp = length(60) + length(50) + length(1) + string(b"p") + length(1) + string(b"i")
    idmp += length(15) + length(0) + length(3) + length(1)
    released = length(1) + bytes(16)
    streams = [stream(kind, b"s") for kind in (15, 19, 21)]
    streams.append(stream(26, b"s") + idmp)
    streams.append(stream(27, b"s") + released + idmp)
    packed = b"\xc3\x09\x40\x64\x01xx\xe0\x57\x00\x01xx"
    others = [
        b"\0" + string(b"k") + b"\xc2\x00\x00\x00\x80",
        b"\0" + string(b"lzf") + packed,
        b"\xfc" + bytes(7) + b"\x40" + b"\0" + string(b"mortal") + string(b"v"),
        b"\x01" + string(b"list") + length(2) + string(b"a") + string(b"b"),
        b"\x18" + string(b"hash") + bytes(8) + length(1) + length(3) + string(b"a") * 2,
        b"\x12" + string(b"list 2") + length(1) + length(2) + string(listpack([b"a", 1])),
        b"\x1c" + string(b"array") + length(2) + b"\0\0\x03" + string(b"x") + b"\1\1" + bytes(8),
        b"\x07" + string(b"module") + length(2**60) + b"\x02\x01\x05" + string(b"x") + b"\0",
        b"\xf5" + string(b"#!lua name=lib\nreturn"),
        b"\xf2\x01\x02" + string(b"f") * 2 + b"\x20" + string(b"shaped") + b"\1" + string(b"v") * 2,
    ]
    note = b"\xfa" + string(b"valkey-ver") + string(b"9.1.2")
    valkey = b"\x16" + string(b"hash") + length(1) + string(b"a") * 2 + bytes(8)
    files = [rdb(15, one, *others) for one in streams]
    files.append(b"VALKEY080" + note + b"\xfe\0" + streams[2] + valkey + b"\xff" + bytes(8))
    return files


# Breaking them


def broken(rng: random.Random, data: bytes) -> bytes:
    """Some bytes changed, left out, put in or twice there; or cut off."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(made) + 1)
        way = rng.randrange(9)
        if way == 0 and at < len(made):
            made[at] ^= 1 << rng.randrange(8)
        elif way == 1 and at < len(made):
            made[at] = rng.choice((0, 0xFF, 0x7F, 0x80, 0x81, 0xC3, rng.randrange(256)))
        elif way == 2:
            number = rng.choice(EXTREMES) % 2**64
            width = rng.choice((1, 2, 4, 8, 8))
            made[at : at + width] = (number % 256**width).to_bytes(
                width, rng.choice(("little", "big"))
            )
        elif way == 3:
            del made[at : at + rng.randrange(1, 20)]
        elif way == 4:
            del made[at:]
        elif way == 5:
            made[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif way == 6:
            made[at:at] = made[at : at + rng.randrange(1, 60)]
        elif way == 7:
            digits = [place for place, byte in enumerate(made) if 0x30 <= byte <= 0x39]
            if digits:
                place = rng.choice(digits)
                made[place : place + 1] = b"%d" % rng.choice(EXTREMES)
        else:
            made[at:at] = length(rng.choice(EXTREMES) % 2**64)
    return bytes(made)


def broken_rdb(rng: random.Random, data: bytes) -> bytes:
    """As ``broken``, with the end that says that there is no checksum."""
    body = broken(rng, data[:-9]) if rng.random() < 0.9 else data[:-9]
    return body + b"\xff" + bytes(8)


def broken_snapshot(rng: random.Random, data: bytes) -> bytes:
    """As ``broken``, with checksums that are right; or one number of one table is another."""
    head, offset = data[: PREAMBLE.size], PREAMBLE.size
    frames: list[bytes] = []
    while offset < len(data):
        size, _ = FRAME_HEAD.unpack_from(data, offset)
        offset += FRAME_HEAD.size
        frames.append(data[offset : offset + size])
        offset += size + CHECKSUM.size
    number = rng.randrange(len(frames))
    change = _broken_record if rng.random() < 0.8 else broken
    frames[number] = change(rng, frames[number])
    made = head
    for number, payload in enumerate(frames):
        frame = FRAME_HEAD.pack(len(payload), number) + payload
        made += frame + CHECKSUM.pack(xxh3_64_intdigest(frame))
    return made


def _broken_record(rng: random.Random, payload: bytes) -> bytes:
    """A frame in which the table of a record is another."""
    at = 0
    places: list[int] = []
    while at + RECORD_HEAD.size <= len(payload):
        places.append(at)
        _, size = RECORD_HEAD.unpack_from(payload, at)
        table = msgpack.decode(payload[at + RECORD_HEAD.size :][:size], type=list[int])
        at += RECORD_HEAD.size + size
        if len(places) > 400 or at >= len(payload):
            break
        # What lies behind a table is not told by the table alone: look for the next head.
        while at < len(payload) and not _is_head(payload, at):
            at += 1
    at = rng.choice(places)
    kind, size = RECORD_HEAD.unpack_from(payload, at)
    start = at + RECORD_HEAD.size
    try:
        table = msgpack.decode(payload[start : start + size], type=list[int])
    except Exception:
        return broken(rng, payload)
    if rng.random() < 0.1:
        kind = rng.randrange(16)
    for _ in range(rng.choice((1, 1, 2))):
        if not table or rng.random() < 0.1:
            table.append(rng.choice(EXTREMES))
            continue
        place = rng.randrange(len(table))
        if rng.random() < 0.1:
            del table[place]
        elif rng.random() < 0.5:
            table[place] += rng.choice((1, -1, 2, -2, 16))
        else:
            table[place] = rng.choice(EXTREMES)
    try:
        packed = msgpack.encode(table)
    except OverflowError:
        return broken(rng, payload)
    return payload[:at] + RECORD_HEAD.pack(kind, len(packed)) + packed + payload[start + size :]


def _is_head(payload: bytes, at: int) -> bool:
    if at + RECORD_HEAD.size >= len(payload) or not 1 <= payload[at] <= 14:
        return False
    _, size = RECORD_HEAD.unpack_from(payload, at)
    packed = payload[at + RECORD_HEAD.size :][:size]
    if len(packed) != size or not size:
        return False
    try:
        msgpack.decode(packed, type=list[int])
    except Exception:
        return False
    return True


# One round


class Round:
    """Files in a folder, and what the tools make of them."""

    def __init__(self, tools: Tools, seed: str, folder: Path) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.tools = tools
        self.faults: list[Outcome] = []

    def run(self) -> list[Outcome]:
        """Make files, and let one or two tools look at them."""
        rng = self.rng
        make = rng.choice((self._file, self._file, self._folder, self._folder, self._oddity))
        path = str(make())
        for _ in range(rng.choice((1, 2))):
            tool = rng.choice((self._check, self._check_snapshot, self._import, self._export))
            tool(path)
        return self.faults

    def _try(self, *words: str) -> bool:
        outcome = self.tools.run(*words)
        if outcome.fault:
            self.faults.append(outcome)
        return not outcome.fault and outcome.code == 0

    def _must(self, *words: str) -> None:
        """What a tool has written, no tool refuses."""
        outcome = self.tools.run(*words)
        if not outcome.fault and outcome.code:
            outcome.fault = "a tool wrote this: " + outcome.text
        if outcome.fault:
            self.faults.append(outcome)

    # Files

    def _data(self) -> tuple[str, bytes]:
        """The end of a name, and a file for it."""
        rng = self.rng
        way = rng.randrange(6)
        if way == 0:
            return "hrs", broken_snapshot(rng, SNAPSHOT)
        if way == 1:
            return "hrs", broken(rng, SNAPSHOT)
        if way in (2, 3):
            return "rdb", broken_rdb(rng, rng.choice(RDB_FILES))
        if way == 4:
            return "aof", commands(rng)
        joined = rng.choice((b"", b"", rng.choice(RDB_FILES))) + PLAIN
        return "aof", broken(rng, joined)

    def _file(self) -> Path:
        suffix, data = self._data()
        path = self.folder / self.rng.choice((f"dump.{suffix}", "file", f"appendonly.{suffix}"))
        path.write_bytes(data)
        return self.rng.choice((path, path, self.folder))

    def _folder(self) -> Path:
        rng = self.rng
        parts = self.folder / FOLDER
        parts.mkdir()
        lines = b""
        for seq in range(rng.choice((0, 1, 1, 1, 2, 2, 3))):
            suffix, data = self._data() if rng.random() < 0.5 else ("aof", PLAIN)
            kind = "base" if seq == 0 and rng.random() < 0.6 else "incr"
            name = f"appendonly.aof.{seq + 1}.{kind}.{suffix}"
            if rng.random() < 0.95:
                (parts / name).write_bytes(data)
            lines += f"file {name} seq {seq + 1} type {kind[0]}\n".encode()
        (parts / MANIFEST).write_bytes(broken(rng, lines) if rng.random() < 0.3 else lines)
        if rng.random() < 0.05:
            self._odd(parts / rng.choice((MANIFEST, "appendonly.aof.1.base.aof", "x.manifest")))
        return rng.choice((self.folder, parts, parts / MANIFEST))

    def _oddity(self) -> Path:
        path = self.folder / self.rng.choice(
            ("dump.hrs", "dump.rdb", "appendonly.aof", "odd", MANIFEST, "n\udcffme", "x" * 255)
        )
        self._odd(path)
        return self.rng.choice((path, path, self.folder))

    def _odd(self, path: Path) -> None:
        """Something that is no file, or a strange one."""
        rng = self.rng
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        way = rng.randrange(8)
        if way == 0:
            os.mkfifo(path)
        elif way == 1:
            path.mkdir()
        elif way == 2:
            path.symlink_to(rng.choice(("/dev/zero", "/dev/full", "/proc/self/mem", "/dev/null")))
        elif way == 3:
            path.symlink_to(path.name)
        elif way == 4:
            path.write_bytes(b"")
        elif way == 5:
            path.write_bytes(self._data()[1][: rng.randrange(30)])
        elif way == 6:
            path.write_bytes(rng.choice((b"REDIS0011", b"VALKEY080", b"HEADRACE")))
            os.truncate(path, rng.choice((1 << 20, 1 << 36)))  # it takes no room on the disk
        else:
            path.symlink_to("nothing")

    # Tools

    def _check(self, path: str) -> None:
        if self.rng.random() < 0.5:
            self._try("check-aof", path)
        elif self._try("check-aof", "--fix", path):
            self._must("check-aof", path)

    def _check_snapshot(self, path: str) -> None:
        self._try("check-snapshot", path)

    def _import(self, path: str) -> None:
        new = self.folder / "new"
        shutil.rmtree(new, ignore_errors=True)
        words = ["import", path, "--dir", str(new)]
        snapshot = self.rng.random() < 0.5
        words += ["--as", "snapshot"] if snapshot else []
        words += ["--skip-unsupported"] if self.rng.random() < 0.7 else []
        if not self._try(*words):
            return
        if snapshot:
            self._must("check-snapshot", str(new / "dump.hrs"))
        else:
            self._must("check-aof", str(new))
            (base,) = (new / FOLDER).glob("*.base.hrs")
            self._must("check-snapshot", str(base))
        self._must("export", "--to", "resp", "--from", str(new), str(new / "all"))
        self._must("import", str(new / "all"), "--dir", str(new / "again"))

    def _export(self, path: str) -> None:
        out = self.folder / "out"
        if out.is_dir():
            shutil.rmtree(out)
        elif out.exists():
            out.unlink()
        form = self.rng.choice(("resp", "redis-aof"))
        if self._try("export", "--to", form, "--from", path, str(out)):
            self._must("import", str(out), "--dir", str(self.folder / "of export"))
            shutil.rmtree(self.folder / "of export", ignore_errors=True)


SNAPSHOT = snapshot(odd_databases())
RDB_FILES = rdb_files()
PLAIN = plain_commands()


def main() -> int:
    seed, _, only = sys.argv[1].partition(":")
    rounds = [int(only)] if only else list(range(int(sys.argv[2])))
    failed = 0
    with tempfile.TemporaryDirectory(prefix="headrace-fuzz-") as folder:
        tools = Tools(Path(folder))
        for number in rounds:
            place = Path(sys.argv[3] if len(sys.argv) > 3 else f"{folder}/{number}")
            place.mkdir(parents=True, exist_ok=True)
            faults = Round(tools, f"{seed}:{number}", place).run()
            for fault in faults:
                failed += 1
                print(f"{seed}:{number}: {' '.join(fault.words)}\n{fault.fault}", flush=True)
            if len(sys.argv) <= 3:
                shutil.rmtree(place)
    print(f"{len(rounds)} rounds, {failed} faults")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
