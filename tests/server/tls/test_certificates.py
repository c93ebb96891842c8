"""Which certificates are asked for, and what is made of them."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from support.certificates import Certificates
from support.client import RawClient
from support.encrypted import Encrypted, Start


def is_let_in(client: RawClient) -> bool:
    try:
        return client.call("PING") == b"+PONG\r\n"
    except (OSError, ConnectionError):
        return False


@pytest.mark.parametrize(("rule", "nameless"), [("yes", False), ("optional", True), ("no", True)])
def test_the_rule(encrypted: Start, rule: str, nameless: bool) -> None:
    server = encrypted("--tls-auth-clients", rule)
    with server.client() as client, server.nameless() as other:
        assert is_let_in(client)
        assert is_let_in(other) == nameless


def test_the_rule_changes_at_once(encrypted: Start) -> None:
    server = encrypted()
    with server.client() as client:
        with server.nameless() as other:
            assert not is_let_in(other)
        assert client.call("CONFIG", "SET", "tls-auth-clients", "optional") == b"+OK\r\n"
        with server.nameless() as other:
            assert is_let_in(other)
        client.call("CONFIG", "SET", "tls-auth-clients", "yes")
        with server.nameless() as other:
            assert not is_let_in(other)


@pytest.mark.parametrize("rule", ["yes", "optional"])
def test_another_authority_is_not_trusted(
    encrypted: Start, tmp_path: Path, certificates: Certificates, rule: str
) -> None:
    server = encrypted("--tls-auth-clients", rule)
    stranger = Certificates(tmp_path)
    with server.client(stranger.client) as client:
        assert not is_let_in(client)
    with server.client() as client:
        assert is_let_in(client)
    with pytest.raises(ssl.SSLCertVerificationError):
        RawClient(server.port, tls=stranger.context(stranger.client))


# As whom


@pytest.fixture
def by_name(encrypted: Start) -> Encrypted:
    server = encrypted("--tls-auth-clients-user", "CN", "--tls-auth-clients", "optional")
    with server.client() as client:
        client.call("ACL", "SETUSER", "alice", "on", "+@all", "~*")
        client.call("ACL", "SETUSER", "bob", "off", "+@all")
        client.call("ACL", "LOG", "RESET")
    return server


def last_denial(server: Encrypted) -> dict[object, object]:
    entries = server.process.call("ACL", "LOG", 1)
    assert isinstance(entries, list)
    return dict(zip(entries[0][::2], entries[0][1::2], strict=True)) if entries else {}


def test_the_common_name_logs_in(by_name: Encrypted, certificates: Certificates) -> None:
    with by_name.client(certificates.issue("alice")) as client:
        assert client.call("ACL", "WHOAMI") == b"$5\r\nalice\r\n"
        assert b" user=alice " in client.call("CLIENT", "INFO")
        assert client.call("SET", "k", "v") == b"+OK\r\n"
        assert client.call("RESET") == b"+RESET\r\n"
        assert client.call("ACL", "WHOAMI") == b"$7\r\ndefault\r\n"
    assert last_denial(by_name) == {}


def test_the_common_name_is_enough_where_others_need_a_password(
    by_name: Encrypted, certificates: Certificates
) -> None:
    by_name.process.call("CONFIG", "SET", "requirepass", "secret")
    with by_name.client(certificates.issue("alice")) as client:
        assert client.call("ACL", "WHOAMI") == b"$5\r\nalice\r\n"
    with by_name.nameless() as client:
        assert client.call("PING").startswith(b"-NOAUTH")
        assert client.call("AUTH", "secret") == b"+OK\r\n"


@pytest.mark.parametrize("name", ["nobody", "bob"])
def test_a_name_without_a_user_is_noted(
    by_name: Encrypted, certificates: Certificates, name: str
) -> None:
    for _ in range(2):
        with by_name.client(certificates.issue(name)) as client:
            assert client.call("ACL", "WHOAMI") == b"$7\r\ndefault\r\n"
    denial = last_denial(by_name)
    assert denial[b"reason"] == b"tls-cert"
    assert denial[b"context"] == b"toplevel"
    assert denial[b"object"] == b""
    assert denial[b"username"] == name.encode()
    assert denial[b"count"] == 2
    assert f":{by_name.port}".encode() in str(denial[b"client-info"]).encode()
    # One more was the client that made the users.
    assert by_name.process.info("stats")["acl_access_denied_tls_cert"] == "3"


def test_a_name_with_a_nul_is_nobody(by_name: Encrypted, certificates: Certificates) -> None:
    by_name.process.call("ACL", "SETUSER", "aliceXbob", "on", "+@all")
    with by_name.client(certificates.issue_with_nul("aliceXbob")) as client:
        assert client.call("ACL", "WHOAMI") == b"$7\r\ndefault\r\n"
    assert last_denial(by_name)[b"username"] == b"alice\0bob"


def test_names_do_not_count_unless_it_is_said(encrypted: Start, certificates: Certificates) -> None:
    server = encrypted()
    server.process.call("ACL", "SETUSER", "alice", "on", "+@all")
    with server.client(certificates.issue("alice")) as client:
        assert client.call("ACL", "WHOAMI") == b"$7\r\ndefault\r\n"
