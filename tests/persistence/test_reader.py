"""Reading files of commands: torn ends are told apart from damage, to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.persistence.aof.reader import CHUNK_BYTES, AofReader
from headrace.persistence.errors import CorruptAOF
from headrace.protocol.client import request

COMMANDS = [
    [b"SELECT", b"0"],
    [b"SET", b"k", b"v" * 12],
    [b"XADD", b"s", b"1-1", b"", b"a\r\n$1\r\nb"],
    [b"DEL", b"k"],
]
WHOLE = b"".join(request(command) for command in COMMANDS)


def read(path: Path, data: bytes) -> tuple[list[list[bytes]], int, bool]:
    """The commands of a file, the offset behind them, and whether its end is torn."""
    path.write_bytes(data)
    reader = AofReader(bytes(path), b"x.aof")
    found = []
    try:
        while (command := reader.next()) is not None:
            found.append(command)
        return found, reader.offset, reader.torn
    finally:
        reader.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.aof"


def test_commands_come_in_order(path: Path) -> None:
    assert read(path, WHOLE) == (COMMANDS, len(WHOLE), False)
    assert read(path, b"") == ([], 0, False)


def test_comments_are_passed_over(path: Path) -> None:
    first, rest = request(COMMANDS[0]), WHOLE[len(request(COMMANDS[0])) :]
    data = b"#TS:1700000000\r\n" + first + b"#\r\n#TS:1700000001\r\n" + rest + b"#TS:1\r\n"
    assert read(path, data) == (COMMANDS, len(data), False)


def test_torn_at_every_byte(path: Path) -> None:
    ends = [0]
    for command in COMMANDS:
        ends.append(ends[-1] + len(request(command)))
    for size in range(len(WHOLE) + 1):
        whole = max(index for index, end in enumerate(ends) if end <= size)
        expected = (COMMANDS[:whole], ends[whole], size not in ends)
        assert read(path, WHOLE[:size]) == expected, size


def test_a_torn_comment_is_torn(path: Path) -> None:
    assert read(path, WHOLE + b"#TS:17") == (COMMANDS, len(WHOLE), True)


def test_every_flipped_bit_outside_of_values_is_found(path: Path) -> None:
    """No flip goes unseen, except those that leave another whole file of commands."""
    for index in range(len(WHOLE)):
        for bit in range(8):
            data = bytearray(WHOLE)
            data[index] ^= 1 << bit
            try:
                found, offset, torn = read(path, bytes(data))
            except CorruptAOF:
                continue
            if torn:
                # Only a damaged last command can look like a torn one.
                assert offset <= index
                assert index >= len(WHOLE) - len(request(COMMANDS[-1])), (index, bit)
            else:
                assert b"".join(request(command) for command in found) == data


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (b"+OK\r\n", "'*' before a command"),
        (b"\r\n", "'*' before a command"),
        (b"\0\0\0\0", "'*' before a command"),
        (b"*0\r\n", "at least one word"),
        (b"*-1\r\n", "a number"),
        (b"*01\r\n$4\r\nPING\r\n", "leading zeros"),
        (b"*\r\n$4\r\nPING\r\n", "a number"),
        (b"*1\n$4\r\nPING\r\n", "a number"),
        (b"*1\r\r$4\r\nPING\r\n", "a line end"),
        (b"*1\r\n:4\r\n", "'$' before a word"),
        (b"*1\r\n$-1\r\n", "a number"),
        (b"*1\r\n$4x\r\nPING\r\n", "a number"),
        (b"*1\r\n$4\r\nPINGxx", "a line end behind"),
        (b"*1\r\n$4\r\nPING\rx", "a line end behind"),
        (b"*1\r\n$400\r\nPING\r\n", "before the next one"),
        (b"*7\r\n$4\r\nPING\r\n", "'$' before a word"),
    ],
)
def test_damage_in_the_middle_is_named(path: Path, damage: bytes, expected: str) -> None:
    with pytest.raises(CorruptAOF, match="damaged at offset") as caught:
        read(path, WHOLE + damage + WHOLE)
    assert caught.value.offset == len(WHOLE)
    assert expected in caught.value.expected


def test_large_words_and_many_words(path: Path) -> None:
    commands = [
        [b"SET", b"k", b"x" * (3 * CHUNK_BYTES + 7)],
        [b"DEL", *[b"%d" % number for number in range(30_000)]],
        [b"SET", b"k", b"y" * (CHUNK_BYTES - 30)],
    ] * 2
    data = b"".join(request(command) for command in commands)
    assert read(path, data) == (commands, len(data), False)
    assert read(path, data[:-1])[1:] == (len(data) - len(request(commands[-1])), True)


def test_a_damaged_length_does_not_swallow_the_rest(path: Path) -> None:
    """Not even when the rest is long, and its words hold what looks like commands."""
    rest = b"".join(request([b"SET", b"k", WHOLE]) for _ in range(2000))
    with pytest.raises(CorruptAOF) as caught:
        read(path, WHOLE + b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$99999999\r\nx\r\n" + rest)
    assert caught.value.offset == len(WHOLE)


def test_a_torn_value_that_looks_like_commands_is_torn(path: Path) -> None:
    data = WHOLE + request([b"SET", b"k", WHOLE * 5])
    for cut in (1, 3, len(WHOLE) // 2, len(WHOLE) + 3):
        assert read(path, data[:-cut]) == (COMMANDS, len(WHOLE), True)
    with pytest.raises(CorruptAOF):  # cut just behind a command inside: it cannot be told apart
        read(path, data[:-2])


@settings(max_examples=200)
@given(st.lists(st.lists(st.binary(max_size=30), min_size=1, max_size=6), max_size=20), st.data())
def test_any_commands_cut_anywhere(commands: list[list[bytes]], data: st.DataObject) -> None:
    import tempfile

    whole = b"".join(request(command) for command in commands)
    cut = data.draw(st.integers(0, len(whole)))
    with tempfile.TemporaryDirectory() as folder:
        found, offset, torn = read(Path(folder) / "x", whole[:cut])
    assert found == commands[: len(found)]
    assert offset == sum(len(request(command)) for command in found)
    assert torn == (offset != cut)
