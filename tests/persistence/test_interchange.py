"""The same folder under real Redis and under us: equal data, both ways."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Factory

from support.process import Process

from .test_serving import FOLDER, MANIFEST, contents, fill, wait_until

AOF = ("--appendonly", "yes")


def check_aof(folder: Path) -> str:
    """What redis-check-aof says about a folder; fails when it is not content."""
    program = shutil.which("redis-check-aof")
    if program is None:
        pytest.skip("no redis-check-aof")
    result = subprocess.run(
        [program, str(folder / MANIFEST)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def copy_folder(source: Process, target: Path) -> None:
    shutil.copytree(source.directory / FOLDER, target / FOLDER)


@pytest.mark.judge
@pytest.mark.parametrize("rewritten", [False, True])
@pytest.mark.parametrize("timestamps", ["no", "yes"])
def test_redis_starts_on_our_folder(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path, rewritten: bool, timestamps: str
) -> None:
    server = fresh_server(
        *AOF, "--aof-use-rdb-preamble", "no", "--aof-timestamp-enabled", timestamps
    )
    with server.client() as client:
        fill(client)
        if rewritten:
            client.call("BGREWRITEAOF")
            wait_until(server, "aof_rewrites", "1")
            client.call("XADD", "log", "*", "after", "the rewrite")
            client.call("SET", "text", "after")
    before = contents(server)
    server.stop()
    assert "valid" in check_aof(server.directory / FOLDER)
    copy_folder(server, tmp_path)
    redis = fresh_redis(*AOF, directory=tmp_path)
    assert contents(redis) == before
    redis.call("XADD", "log", "*", "by", "redis")
    after = contents(redis)
    redis.kill()
    ours = fresh_server(*AOF, directory=tmp_path)
    assert contents(ours) == after


@pytest.mark.judge
@pytest.mark.parametrize("rewritten", [False, True])
def test_we_start_on_a_folder_of_redis(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path, rewritten: bool
) -> None:
    redis = fresh_redis(*AOF, "--aof-use-rdb-preamble", "no", "--aof-timestamp-enabled", "yes")
    with redis.client() as client:
        fill(client)
        if rewritten:
            client.call("BGREWRITEAOF")
            wait_until(redis, "aof_rewrites", "1")
            wait_until(redis, "aof_rewrite_in_progress", "0")
            client.call("XADD", "log", "*", "after", "the rewrite")
    before = contents(redis)
    redis.kill()
    copy_folder(redis, tmp_path)
    server = fresh_server(*AOF, directory=tmp_path)
    assert contents(server) == before


@pytest.mark.judge
def test_the_single_file_of_an_older_redis(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path
) -> None:
    redis = fresh_redis(*AOF, "--aof-use-rdb-preamble", "no")
    with redis.client() as client:
        fill(client)
    before = contents(redis)
    redis.kill()
    folder = redis.directory / FOLDER
    whole = b"".join(file.read_bytes() for file in sorted(folder.glob("*.aof")))
    (tmp_path / "appendonly.aof").write_bytes(whole)
    server = fresh_server(*AOF, directory=tmp_path)
    assert contents(server) == before
    assert contents(server.restart(crash=True)) == before
