"""``aof-load-corrupt-tail-max-size``: a start without the damaged end of the append-only file."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Factory

from headrace.protocol.client import request

FOLDER = "appendonlydir"
GOOD = request([b"SET", b"a", b"1"]) + request([b"SET", b"b", b"2"])
ZEROS = b"\0" * 16


def make_folder(parent: Path, *files: bytes) -> list[Path]:
    folder = parent / FOLDER
    folder.mkdir()
    paths = [folder / f"appendonly.aof.{number}.incr.aof" for number in range(1, len(files) + 1)]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    (folder / "appendonly.aof.manifest").write_text(
        "".join(f"file {path.name} seq {n} type i\n" for n, path in enumerate(paths, 1))
    )
    return paths


def options(size: int) -> tuple[str, ...]:
    return ("--appendonly", "yes", "--aof-load-corrupt-tail-max-size", str(size))


@pytest.mark.parametrize(
    ("end", "size"),
    [
        (ZEROS, len(ZEROS) + 1),
        (b"garbage\r\n" + request([b"SET", b"c", b"3"]), 100),
        (b"*3\r\n$3\r\nSET\r\n$x\r\n", 100),
        (request([b"MULTI"]) + request([b"SET", b"c", b"3"]) + ZEROS, len(ZEROS) + 1),
    ],
)
@pytest.mark.parametrize("truncated", ["yes", "no"])
def test_a_short_damaged_end_is_cut_off(
    fresh_server: Factory, tmp_path: Path, end: bytes, size: int, truncated: str
) -> None:
    (path,) = make_folder(tmp_path, GOOD + end)
    server = fresh_server(
        *options(size), "--aof-load-truncated", truncated, "--appendfsync", "always",
        directory=tmp_path,
    )  # fmt: skip
    assert server.call("DBSIZE") == 2
    assert "aof-load-corrupt-tail-max-size allows" in server.log()
    assert path.read_bytes() == GOOD
    server.call("SET", "c", 4)
    server.restart(crash=True)
    assert server.call("MGET", "a", "b", "c") == [b"1", b"2", b"4"]


@pytest.mark.parametrize(
    ("files", "size"),
    [
        ([GOOD + ZEROS], 0),
        ([GOOD + ZEROS], len(ZEROS)),
        ([GOOD + ZEROS, GOOD], 1000),  # not the last file
        ([GOOD + request([b"XADD", b"a", b"1-1", b"f", b"v"])], 1000),  # well-formed, and fails
    ],
)
def test_other_damage_is_refused(
    fresh_server: Factory, tmp_path: Path, files: list[bytes], size: int
) -> None:
    paths = make_folder(tmp_path, *files)
    server = fresh_server(*options(size), directory=tmp_path, start=False)
    server.spawn()
    assert server.wait() == 1
    assert "is damaged at offset" in server.log()
    assert [path.read_bytes() for path in paths] == files


def test_it_says_nothing_of_an_end_that_is_torn(fresh_server: Factory, tmp_path: Path) -> None:
    make_folder(tmp_path, GOOD + request([b"SET", b"c", b"3"])[:-4])
    server = fresh_server(
        *options(1000), "--aof-load-truncated", "no", directory=tmp_path, start=False
    )
    server.spawn()
    assert server.wait() == 1
    assert "ends in the middle of a command" in server.log()
