"""A real server that copies from ours over an encrypted connection."""

from __future__ import annotations

from support.encrypted import Encrypted, Start
from support.following import AT_ONCE
from support.process import RedisProcess
from support.waiting import wait_until


def test_a_replica_connects_encrypted(encrypted: Start, real: Encrypted) -> None:
    server = encrypted("--enable-debug-command", "yes", *AT_ONCE)
    replica = real.process
    assert isinstance(replica, RedisProcess)
    with server.client() as client:
        script = "for i = 1, 5000 do redis.call('SET', 'k' .. i, string.rep('x', 1000)) end"
        client.call("EVAL", script, 0)
        replica.call("CONFIG", "SET", "tls-replication", "yes")
        replica.call("REPLICAOF", "127.0.0.1", server.port)
        wait_until(lambda: replica.info("replication")["master_link_status"] == "up", 60)
        client.call("EVAL", script.replace("'k'", "'later'"), 0)
        assert client.call("WAIT", 1, 30_000) == b":1\r\n"
        assert replica.call("DBSIZE") == 10_000
        assert replica.call("DEBUG", "DIGEST") == server.process.call("DEBUG", "DIGEST")
        line = client.call("INFO", "replication")  # it tells its port for TLS
        assert b"slave0:ip=127.0.0.1,port=%d,state=online" % real.port in line


def test_a_master_is_followed_encrypted(encrypted: Start, real: Encrypted) -> None:
    server = encrypted("--tls-replication", "yes", "--enable-debug-command", "yes")
    real.process.call("EVAL", "for i = 1, 5000 do redis.call('SET', 'k' .. i, i) end", 0)
    server.process.call("REPLICAOF", "127.0.0.1", real.port)
    wait_until(lambda: server.process.info("replication")["master_link_status"] == "up", 60)
    assert f"port={server.port}," in real.process.info("replication")["slave0"]
    real.process.call("SET", "later", "x" * 1_000_000)
    wait_until(lambda: server.process.call("DBSIZE") == 5001)
    assert server.process.call("DEBUG", "DIGEST") == real.process.call("DEBUG", "DIGEST")
