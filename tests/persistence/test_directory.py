"""The append-only folder: its lock, what it refuses, and the steps of a rewrite."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.persistence.aof.directory import AofDirectory
from headrace.persistence.errors import PersistenceError

PREFIX = b"appendonly.aof"


def opened(parent: Path) -> AofDirectory:
    directory = AofDirectory(bytes(parent), b"appendonlydir", PREFIX)
    directory.open()
    return directory


def names(parent: Path) -> list[str]:
    found = sorted(path.name for path in (parent / "appendonlydir").iterdir())
    return [name for name in found if not name.endswith(".lock")]


def test_a_new_folder_gets_an_incr_file(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    assert names(tmp_path) == []
    directory.open_last().close()
    assert names(tmp_path) == ["appendonly.aof.1.incr.aof", "appendonly.aof.manifest"]
    directory.close()
    again = opened(tmp_path)
    again.open_last().close()
    assert len(names(tmp_path)) == 2
    again.close()


def test_one_server_at_a_time(tmp_path: Path) -> None:
    first = opened(tmp_path)
    with pytest.raises(PersistenceError, match=r"Another server \(pid \d+\) uses"):
        opened(tmp_path)
    first.close()
    opened(tmp_path).close()


def test_data_without_a_manifest_is_not_an_empty_folder(tmp_path: Path) -> None:
    folder = tmp_path / "appendonlydir"
    folder.mkdir()
    (folder / "appendonly.aof.1.incr.aof").touch()
    opened(tmp_path).close()
    (folder / "appendonly.aof.1.incr.aof").write_bytes(b"*1\r\n$4\r\nPING\r\n")
    with pytest.raises(PersistenceError, match=r"1\.incr\.aof and no appendonly\.aof\.manifest"):
        opened(tmp_path)


def test_the_folder_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").write_text("a file")
    with pytest.raises(PersistenceError, match="cannot be used: Not a directory"):
        opened(tmp_path)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    directory.open_last().close()
    (tmp_path / "appendonlydir" / "appendonly.aof.1.incr.aof").unlink()
    with pytest.raises(PersistenceError, match="which the manifest names"):
        directory.size_of(directory.manifest.to_load())
    directory.close()


def test_a_rewrite_replaces_everything_before_its_incr_file(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    directory.open_last().close()
    folder = tmp_path / "appendonlydir"
    (folder / "temp-rewriteaof-1.aof").write_text("left by a crash")
    for turn in (1, 2):
        directory.add_incr()
        temporary = directory.temporary_base()
        Path(temporary.decode()).write_bytes(b"base %d" % turn)
        directory.adopt_base(temporary, b"aof", 1)
        assert names(tmp_path) == [
            f"appendonly.aof.{turn}.base.aof",
            f"appendonly.aof.{turn + 1}.incr.aof",
            "appendonly.aof.manifest",
        ]
    directory.close()
    again = opened(tmp_path)
    assert [file.name for file in again.manifest.to_load()] == [
        b"appendonly.aof.2.base.aof",
        b"appendonly.aof.3.incr.aof",
    ]
    again.close()


def test_the_single_file_of_older_servers_becomes_the_base(tmp_path: Path) -> None:
    (tmp_path / "appendonly.aof").write_bytes(b"old data")
    directory = opened(tmp_path)
    directory.open_last().close()
    assert not (tmp_path / "appendonly.aof").exists()
    assert (tmp_path / "appendonlydir" / "appendonly.aof").read_bytes() == b"old data"
    assert (tmp_path / "appendonlydir" / "appendonly.aof.manifest").read_text() == (
        "file appendonly.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n"
    )
    directory.close()


def test_an_upgrade_that_was_interrupted_is_finished(tmp_path: Path) -> None:
    folder = tmp_path / "appendonlydir"
    folder.mkdir()
    (folder / "appendonly.aof.manifest").write_text("file appendonly.aof seq 1 type b\n")
    (tmp_path / "appendonly.aof").write_bytes(b"old data")
    opened(tmp_path).close()
    assert (folder / "appendonly.aof").read_bytes() == b"old data"
