"""What becomes of clients when users change, and users in files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Factory

from support.client import RawClient, WireError
from support.process import Process
from support.waiting import wait_until

HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"  # of "test"
NO_KEY = WireError(b"NOPERM No permissions to access a key")


class Guests:
    """Makes clients, and closes them with the test."""

    def __init__(self) -> None:
        self.made: list[RawClient] = []

    def of(self, server: Process) -> RawClient:
        """A client that has not logged in."""
        client = server.client()
        self.made.append(client)
        return client

    def user(self, server: Process, *rules: str) -> RawClient:
        """A client of a user ``u`` with these rules."""
        assert server.call("ACL", "SETUSER", "u", "on", "nopass", *rules) == b"OK"
        client = self.of(server)
        assert client.call_parsed("AUTH", "u", "x") == b"OK"
        return client


@pytest.fixture
def guests() -> Iterator[Guests]:
    made = Guests()
    yield made
    for client in made.made:
        client.close()


def is_closed(client: RawClient) -> bool:
    return client.rest_until_close() == b""


# Clients


def test_a_deleted_user_is_put_out(fresh_server: Factory, guests: Guests) -> None:
    server = fresh_server()
    first, second = guests.user(server, "+@all", "~*"), guests.user(server)
    blocked = guests.user(server)
    blocked.send_command("BLPOP", "k", "0")
    wait_until(lambda: server.info("clients")["blocked_clients"] == "1")
    assert first.call("ACL", "DELUSER", "u", "nosuch") == b":1\r\n"  # the reply comes first
    assert is_closed(first)
    assert is_closed(second)
    assert is_closed(blocked)
    assert server.info("clients")["connected_clients"] == "1"


def test_a_disabled_user_stays_but_cannot_come_again(fresh_server: Factory, guests: Guests) -> None:
    server = fresh_server()
    client = guests.user(server, "+@all", "~*")
    server.call("ACL", "SETUSER", "u", "off")
    assert client.call("PING") == b"+PONG\r\n"
    assert guests.of(server).call("AUTH", "u", "x").startswith(b"-WRONGPASS")


def test_rights_change_at_once(fresh_server: Factory, guests: Guests) -> None:
    server = fresh_server()
    client = guests.user(server, "allkeys", "allcommands", "allchannels")
    assert client.call("SET", "k", "v") == b"+OK\r\n"
    server.call("ACL", "SETUSER", "u", "resetkeys", "%R~k")
    assert client.call("GET", "k") == b"$1\r\nv\r\n"
    assert client.call_parsed("SET", "k", "w") == NO_KEY
    server.call("ACL", "SETUSER", "u", "allkeys")
    assert client.call("SET", "k", "w") == b"+OK\r\n"


def test_rights_are_looked_at_within_a_pipeline(fresh_server: Factory, guests: Guests) -> None:
    server = fresh_server()
    client = guests.user(server, "allkeys", "allcommands")
    replies = client.pipeline(
        ("SET", "a", "1"), ("SET", "a", "2"), ("ACL", "SETUSER", "u", "resetkeys", "~b"),
        ("SET", "a", "3"), ("SET", "a", "4"), ("SET", "b", "5"), ("AUTH", "default", "x"),
        ("GET", "a"),
    )  # fmt: skip
    assert [reply[:7] for reply in replies] == [
        b"+OK\r\n", b"+OK\r\n", b"+OK\r\n", b"-NOPERM", b"-NOPERM", b"+OK\r\n", b"+OK\r\n",
        b"$1\r\n2\r\n",
    ]  # fmt: skip


def test_subscribers_that_lose_a_channel_are_put_out(fresh_server: Factory, guests: Guests) -> None:
    server = fresh_server()
    rules = ("+@all", "resetchannels", "&a*", "&b*", "(+ssubscribe &c)")
    clients = {
        words: guests.user(server, *rules)
        for words in ("SUBSCRIBE a1", "PSUBSCRIBE b*", "SSUBSCRIBE c")
    }
    for words, client in clients.items():
        assert client.call(*words.split(" ")).startswith(b"*3")
    server.call("ACL", "SETUSER", "u", "resetchannels", "&a*", "&d", "&b*")  # c is kept
    assert [client.silent() for client in clients.values()] == [True, True, True]
    server.call("ACL", "SETUSER", "u", "resetchannels", "&a1")
    assert is_closed(clients["PSUBSCRIBE b*"])
    server.call("ACL", "SETUSER", "u", "clearselectors")
    assert is_closed(clients["SSUBSCRIBE c"])
    assert server.call("PUBLISH", "a1", "m") == 1


def test_who_waits_is_looked_at_again(fresh_server: Factory, guests: Guests) -> None:
    server = fresh_server()
    client = guests.user(server, "+@all", "~k")
    client.send_command("BLPOP", "k", "0")
    wait_until(lambda: server.info("clients")["blocked_clients"] == "1")
    server.call("ACL", "SETUSER", "u", "-blpop")
    server.call("RPUSH", "k", "v")
    assert client.read() == b"-NOPERM User u has no permissions to run the 'blpop' command\r\n"
    assert server.call("LLEN", "k") == 1
    assert server.info("clients")["blocked_clients"] == "0"
    assert "calls=0,usec=0,usec_per_call=0.00,rejected_calls=1" in server.info()["cmdstat_blpop"]
    assert client.call("LPOP", "k") == b"$1\r\nv\r\n"


def test_the_default_user(fresh_server: Factory, guests: Guests) -> None:
    server = fresh_server("--requirepass", "test")
    client = guests.of(server)
    assert client.call("PING").startswith(b"-NOAUTH")
    assert client.call("AUTH", "test") == b"+OK\r\n"
    assert client.call_parsed("ACL", "LIST") == [
        f"user default on sanitize-payload #{HASH} ~* &* +@all".encode()
    ]
    client.call("ACL", "SETUSER", "default", ">other")
    assert guests.of(server).call("AUTH", "other") == b"+OK\r\n"
    client.call("CONFIG", "SET", "requirepass", "third")
    assert guests.of(server).call("AUTH", "other").startswith(b"-WRONGPASS")
    assert client.call("PING") == b"+PONG\r\n"
    client.call("ACL", "SETUSER", "default", "off")
    late = guests.of(server)
    assert late.call("PING").startswith(b"-NOAUTH")
    assert late.call("AUTH", "third").startswith(b"-WRONGPASS")
    client.call("ACL", "SETUSER", "default", "on", "nopass")
    assert late.call("PING") == b"+PONG\r\n"


def test_clients_are_listed_and_closed_by_user(fresh_server: Factory, guests: Guests) -> None:
    server = fresh_server()
    client = guests.user(server, "+@all", "~*")
    listed = server.call("CLIENT", "LIST")
    assert isinstance(listed, bytes)
    assert re.findall(rb" user=(\w+)", listed) == [b"u", b"default"]
    assert server.call("CLIENT", "KILL", "USER", "u") == 1
    assert is_closed(client)


def test_names_and_passwords_are_kept_from_slowlog_and_monitors(
    fresh_server: Factory, guests: Guests
) -> None:
    server = fresh_server("--slowlog-log-slower-than", "0")
    watcher = guests.of(server)
    watcher.call("MONITOR")
    server.call("ACL", "SETUSER", "someone", ">secret")
    server.call("ACL", "GETUSER", "someone")
    server.call("ACL", "DELUSER", "someone")
    server.call("PING")
    told = repr(server.call("SLOWLOG", "GET", "-1"))
    assert "setuser" in told.lower()
    assert "secret" not in told
    assert "someone" not in told
    assert b"PING" in watcher.read()


def test_the_append_only_file_is_read_whatever_users_may(
    fresh_server: Factory, guests: Guests
) -> None:
    server = fresh_server("--appendonly", "yes")
    server.call("SET", "k", "v")
    server.kill()
    server.options = (*server.options, "--user", "default", "on", "nopass", "+get", "+ping", "~k")
    server.start()
    client = guests.of(server)
    assert client.call("GET", "k") == b"$1\r\nv\r\n"
    assert client.call("SET", "k", "w").startswith(b"-NOPERM")


# Files


def test_users_of_the_configuration(fresh_server: Factory, guests: Guests) -> None:
    lines = f"# mine\nuser al on >test ~a* +@read (+set ~b)\nuser bo on #{HASH}\n"
    server = fresh_server(config=lines)
    path = server.config_path
    assert guests.of(server).call("AUTH", "al", "test") == b"+OK\r\n"
    server.call("ACL", "SETUSER", "cy", "on", "+get")
    server.call("ACL", "SETUSER", "al", "-get")
    server.call("ACL", "DELUSER", "bo")
    assert server.call("CONFIG", "REWRITE") == b"OK"
    text = path.read_text()
    assert f"\nuser al on sanitize-payload #{HASH} ~a* resetchannels -@all +@read -get (" in text
    assert "user bo" not in text
    assert "\nuser cy on sanitize-payload resetchannels -@all +get\n" in text
    assert "user default" not in text
    listed = server.call("ACL", "LIST")
    server.call("ACL", "SETUSER", "default", "-flushall")
    assert server.call("CONFIG", "REWRITE") == b"OK"
    server.restart()
    assert guests.of(server).call("FLUSHALL").startswith(b"-NOPERM User default has no permissions")
    again = server.call("ACL", "LIST")
    assert isinstance(listed, list)
    assert isinstance(again, list)
    assert [line for line in listed if b"default" not in line] == [
        line for line in again if b"default" not in line
    ]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("user u on foo", "Error in user declaration 'u': Syntax error"),
        ("user u on +nosuch", r"rule '\+nosuch' for the user named 'u': Unknown command"),
        ("user u on (+get", "Unmatched parenthesis"),
        ("user u #abc", "The password hash must be exactly 64 characters"),
        ("user u on\nuser u off", "Duplicate user found"),
        ('user "a b" on', "Spaces not allowed in ACL usernames"),
        ("user u on\naclfile users.acl", "use one of the two"),
        ("aclfile nosuch.acl", "opening file 'nosuch.acl': No such file or directory"),
    ],
)
def test_a_wrong_configuration_does_not_start(
    fresh_server: Factory, lines: str, reason: str
) -> None:
    server = fresh_server(config=f"{lines}\n", start=False, check_log=False).spawn()
    assert server.wait() == 1
    assert re.search(reason, server.log()), server.log()


def test_a_file_of_users(fresh_server: Factory, guests: Guests, tmp_path: Path) -> None:
    path = tmp_path / "users.acl"
    path.write_text("# who there is\n\nuser al on >test ~a* +@read\nuser bo on nopass +@all ~*\n")
    path.chmod(0o640)
    server = fresh_server("--aclfile", str(path))
    assert server.call("ACL", "USERS") == [b"al", b"bo", b"default"]
    path.write_text("user al on >test ~a* +@read\nuser bo on nopass +@all ~* &*\n")
    assert server.call("ACL", "LOAD") == b"OK"
    al, bo = guests.of(server), guests.of(server)
    al.call("AUTH", "al", "test")
    bo.call("AUTH", "bo", "x")
    bo.call("SUBSCRIBE", "c")
    server.call("ACL", "SETUSER", "al", "+set")
    assert server.call("ACL", "SAVE") == b"OK"
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.read_text() == (
        f"user al on sanitize-payload #{HASH} ~a* resetchannels -@all +@read +set\n"
        "user bo on nopass sanitize-payload ~* &* +@all\n"
        "user default on nopass sanitize-payload ~* &* +@all\n"
    )
    assert list(tmp_path.iterdir()) == [path]
    server.restart()
    assert len(server.call("ACL", "LIST")) == 3  # type: ignore[arg-type]


def test_loading_puts_out_who_is_no_more(
    fresh_server: Factory, guests: Guests, tmp_path: Path
) -> None:
    path = tmp_path / "users.acl"
    lines = "user al on nopass +@all ~*\nuser bo on nopass +@all ~* &*\n"
    path.write_text(lines + "user cy on nopass +@all ~*\n")
    server = fresh_server("--aclfile", str(path))
    clients = {}
    for name in ("al", "bo", "cy"):
        clients[name] = guests.of(server)
        clients[name].call("AUTH", name, "x")
    clients["bo"].call("SUBSCRIBE", "c")
    path.write_text("user al on nopass +get ~k\nuser bo on nopass +@all ~* &d\n")
    assert server.call("ACL", "LOAD") == b"OK"
    assert is_closed(clients["bo"])  # its channel is gone
    assert is_closed(clients["cy"])
    assert clients["al"].call("SET", "k", "v").startswith(b"-NOPERM")
    assert clients["al"].call("GET", "k") == b"$-1\r\n"


def test_a_wrong_file_changes_nothing(
    fresh_server: Factory, guests: Guests, tmp_path: Path
) -> None:
    path = tmp_path / "users.acl"
    path.write_text("user al on\n")
    server = fresh_server("--aclfile", str(path))
    client = guests.of(server)
    before = server.call("ACL", "LIST")
    path.write_text(
        "user bo on +nosuch foo bar\nfoo\nuser bo\nuser cy (+get\nuser a\tb on\nuser dy +@nosuch\n"
    )
    refused = client.call_parsed("ACL", "LOAD")
    assert isinstance(refused, WireError)
    for part in (
        f"{path}:1: Error in applying operation '+nosuch': Unknown command or category name",
        f"{path}:1: Syntax error. ",
        f"{path}:2 should start with user keyword followed by the username. ",
        "WARNING: Duplicate user 'bo' found on line 3. ",
        f"{path}:4: Unmatched parenthesis in selector definition.",
        f"'{path}:5: username 'a\tb' contains invalid characters. ",
        f"{path}:6: Error in applying operation '+@nosuch'",
        "WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
    ):
        assert part in refused.text.decode(), part
    assert server.call("ACL", "LIST") == before
    path.unlink()
    refused = client.call_parsed("ACL", "LOAD")
    assert isinstance(refused, WireError)
    assert "Error loading ACLs, opening file" in refused.text.decode()
    path.mkdir()
    assert client.call_parsed("ACL", "SAVE") == WireError(
        b"ERR There was an error trying to save the ACLs. "
        b"Please check the server logs for more information"
    )
