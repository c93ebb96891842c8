"""The parameters ``tls-*``: what CONFIG takes beside a real server, reloading, and the start."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path

import pytest
from conftest import Factory

from support.certificates import Certificate, Certificates
from support.client import RawClient
from support.encrypted import Encrypted, Start
from support.process import Pair, RedisProcess, ServerProcess

NOT_UPDATED = b"Unable to update TLS configuration. Check server logs.\r\n"


def test_what_config_set_takes(
    encrypted: Start, real: Encrypted, certificates: Certificates
) -> None:
    protected = certificates.issue("protected", password="pass")
    server = encrypted()
    assert isinstance(real.process, RedisProcess)
    pair = Pair.of(server.process, real.process)
    calls: list[list[str | Path]] = [
        ["tls-cert-file", "/none"],
        ["tls-cert-file", ""],
        ["tls-cert-file", certificates.server.key],
        ["tls-cert-file", certificates.client.file],
        ["tls-key-file", "/none"],
        ["tls-key-file", ""],
        ["tls-key-file", certificates.client.key],
        [
            *("tls-cert-file", certificates.client.file),
            *("tls-key-file", certificates.client.key),
        ],
        ["tls-cert-file", protected.file, "tls-key-file", protected.key],
        [
            *("tls-cert-file", protected.file, "tls-key-file", protected.key),
            *("tls-key-file-pass", "pass"),
        ],
        ["tls-key-file-pass", "wrong"],
        ["tls-key-file-pass", ""],
        ["tls-key-file-pass", "x" * 2000],
        [
            *("tls-cert-file", certificates.server.file),
            *("tls-key-file", certificates.server.key, "tls-key-file-pass", ""),
        ],
        ["tls-ca-cert-file", "/none"],
        ["tls-ca-cert-file", ""],
        ["tls-ca-cert-file", certificates.server.key],
        ["tls-ca-cert-dir", "/none"],
        ["tls-ca-cert-dir", certificates.folder],
        ["tls-ca-cert-dir", ""],
        ["tls-auth-clients", "perhaps"],
        ["tls-auth-clients", "NO"],
        ["tls-ca-cert-file", ""],
        ["tls-auth-clients", "yes"],
        ["tls-ca-cert-file", certificates.authority.file],
        ["tls-protocols", "TLSv1.2"],
        ["tls-protocols", "tlsv1.2 TLSv1.3"],
        ["tls-protocols", "TLSv1 TLSv1.3"],
        ["tls-protocols", "TLSv1.4"],
        ["tls-protocols", "TLSv1.2  TLSv1.3"],
        ["tls-protocols", "SSLv3"],
        ["tls-protocols", " "],
        ["tls-protocols", ""],
        ["tls-ciphers", "NOSUCH"],
        ["tls-ciphers", "DEFAULT:!MEDIUM"],
        ["tls-ciphers", ""],
        ["tls-ciphersuites", "NOSUCH"],
        ["tls-ciphersuites", "TLS_AES_128_GCM_SHA256"],
        ["tls-ciphersuites", "TLS_AES_128_GCM_SHA256:NOSUCH"],
        ["tls-ciphersuites", "tls_aes_128_gcm_sha256"],
        ["tls-ciphersuites", ""],
        ["tls-prefer-server-ciphers", "yes"],
        ["tls-prefer-server-ciphers", "maybe"],
        ["tls-session-caching", "no"],
        ["tls-session-caching", "yes"],
        ["tls-session-cache-size", "-1"],
        ["tls-session-cache-size", "100"],
        ["tls-session-cache-timeout", "x"],
        ["tls-session-cache-timeout", "60"],
        ["tls-dh-params-file", "/none"],
        ["tls-dh-params-file", certificates.server.key],
        ["tls-dh-params-file", ""],
        ["tls-client-cert-file", "/none"],
        ["tls-client-key-file", "/none"],
        ["tls-client-cert-file", "", "tls-client-key-file", ""],
        [
            *("tls-client-cert-file", certificates.client.file),
            *("tls-client-key-file", certificates.client.key),
        ],
        ["tls-port", "65536"],
        ["tls-port", "x"],
        ["tls-port", "0"],
        ["tls-cert-file", "/none"],
        ["tls-cert-file", certificates.server.file],
        ["max-new-tls-connections-per-cycle", "0"],
        ["max-new-tls-connections-per-cycle", "1001"],
        ["max-new-tls-connections-per-cycle", "10"],
    ]
    for words in calls:
        pair.both("CONFIG", "SET", *[str(word) for word in words])
        for name in words[::2]:
            if name != "tls-port":  # where they differ
                pair.both("CONFIG", "GET", str(name))
    pair.close()


@pytest.mark.since(8, 10)
def test_names_of_peers_and_of_users(pair: Pair) -> None:
    """The newest Redis here has no TLS, and the parameters all the same."""
    for value in ("one", "one two", "  ", " one  two ", "one\ttwo", "one\n", ""):
        pair.both("CONFIG", "SET", "tls-expected-peer-name", value)
        pair.both("CONFIG", "GET", "tls-expected-peer-name")
    for value in ("CN", "cn", "off", "URI", ""):
        pair.both("CONFIG", "SET", "tls-auth-clients-user", value)
        pair.both("CONFIG", "GET", "tls-auth-clients-user")
    for name in ("tls-replication", "tls-cluster"):
        pair.both("CONFIG", "GET", name)


# While it runs


def common_name(client: RawClient) -> object:
    assert isinstance(client.sock, ssl.SSLSocket)
    found = client.sock.getpeercert()
    assert found is not None
    return dict(pair[0] for pair in found["subject"])["commonName"]  # type: ignore[misc]


def test_files_are_read_again(
    fresh_server: Factory, certificates: Certificates, tmp_path: Path, tls_port: int
) -> None:
    """The same name again asks for that; who is connected stays."""
    ours = Certificate(tmp_path / "our.crt", tmp_path / "our.key")

    def install(certificate: Certificate) -> None:
        shutil.copy(certificate.file, ours.file)
        shutil.copy(certificate.key, ours.key)

    install(certificates.server)
    options = ["--tls-cert-file", str(ours.file), "--tls-key-file", str(ours.key)]
    process = fresh_server("--tls-port", str(tls_port), *certificates.options(), *options)
    server = Encrypted(process, tls_port, certificates)
    with server.client() as before:
        assert common_name(before) == "server"
        install(certificates.issue("renewed"))
        with server.client() as other:
            assert common_name(other) == "server"
        set_again = ("CONFIG", "SET", "tls-cert-file", str(ours.file))
        assert before.call(*set_again) == b"+OK\r\n"
        with server.client() as other:
            assert common_name(other) == "renewed"
        ours.key.write_text("rubbish")
        assert before.call(*set_again).endswith(NOT_UPDATED)
        assert f"Failed to load private key: {ours.key}: " in process.log()
        with server.client() as other:
            assert common_name(other) == "renewed"
        assert before.call("PING") == b"+PONG\r\n"


def test_the_port_changes(fresh_server: Factory, certificates: Certificates, tls_port: int) -> None:
    process = fresh_server()
    server = Encrypted(process, tls_port, certificates)
    with process.client() as plain:
        turned_on = ("CONFIG", "SET", "tls-port", str(tls_port))
        assert plain.call(*turned_on).endswith(NOT_UPDATED)
        options = certificates.options()
        for name, value in zip(options[::2], options[1::2], strict=True):
            assert plain.call("CONFIG", "SET", name.removeprefix("--"), value) == b"+OK\r\n"
        assert plain.call("CONFIG", "SET", "tls-port", str(process.port)) == (
            b"-ERR CONFIG SET failed (possibly related to argument 'tls-port') - "
            b"Unable to listen on this port. Check server logs.\r\n"
        )
        assert plain.call(*turned_on) == b"+OK\r\n"
        with server.client() as client:
            assert client.call("PING") == b"+PONG\r\n"
            assert plain.call("CONFIG", "SET", "tls-port", "0") == b"+OK\r\n"
            with pytest.raises(ConnectionRefusedError):
                server.client()
            assert client.call("CONFIG", "SET", "port", "0") == b"+OK\r\n"
            assert client.call(*turned_on) == b"+OK\r\n"
            with server.client() as other:
                assert other.call("PING") == b"+PONG\r\n"
            assert client.call("CONFIG", "SET", "port", str(process.port)) == b"+OK\r\n"


def test_versions_and_ciphers(encrypted: Start, certificates: Certificates) -> None:
    server = encrypted("--tls-protocols", "TLSv1.3")
    old = certificates.context(certificates.client)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with server.client() as client:
        assert isinstance(client.sock, ssl.SSLSocket)
        assert client.sock.version() == "TLSv1.3"
        with pytest.raises(OSError, match=r"."):
            RawClient(server.port, tls=old)
        client.call("CONFIG", "SET", "tls-protocols", "TLSv1.2")
        client.call("CONFIG", "SET", "tls-ciphers", "ECDHE-ECDSA-AES256-GCM-SHA384")
        with server.client() as other:
            assert isinstance(other.sock, ssl.SSLSocket)
            assert other.sock.version() == "TLSv1.2"
        old.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
        with pytest.raises(OSError, match=r"."):
            RawClient(server.port, tls=old)
        client.call("CONFIG", "SET", "tls-ciphersuites", "TLS_AES_128_GCM_SHA256")
    assert "tls-ciphersuites has no effect" in server.process.log()


@pytest.mark.parametrize("caching", ["yes", "no"])
def test_sessions_are_resumed(encrypted: Start, certificates: Certificates, caching: str) -> None:
    server = encrypted("--tls-session-caching", caching)
    context = certificates.context(certificates.client)
    with RawClient(server.port, tls=context) as client:
        client.call("PING")
        assert isinstance(client.sock, ssl.SSLSocket)
        session = client.sock.session
    with RawClient(server.port) as client:
        secured = context.wrap_socket(client.sock, session=session)
        assert secured.session_reused == (caching == "yes")
        secured.close()


def test_config_rewrite(fresh_server: Factory, certificates: Certificates, tls_port: int) -> None:
    lines = ["tls-auth-clients optional", "# by hand", f"tls-port {tls_port}"]
    options = certificates.options()
    for name, value in zip(options[::2], options[1::2], strict=True):
        lines.append(f"{name.removeprefix('--')} {value}")
    process = fresh_server(config="\n".join(lines) + "\n")
    process.call("CONFIG", "SET", "tls-auth-clients", "no", "tls-protocols", "TLSv1.3")
    process.call("CONFIG", "REWRITE")
    text = process.config_path.read_text()
    assert "tls-auth-clients no\n# by hand\n" in text
    assert 'tls-protocols "TLSv1.3"' in text
    assert isinstance(process, ServerProcess)
    process.restart()
    with Encrypted(process, tls_port, certificates).nameless() as client:
        assert client.call("PING") == b"+PONG\r\n"


# At the start


@pytest.mark.parametrize(
    ("left_out", "changed"),
    [
        ("--tls-cert-file", None),
        ("--tls-key-file", None),
        ("--tls-ca-cert-file", None),
        ("--tls-cert-file", "/none"),
        ("--tls-key-file", "/none"),
        ("--tls-ca-cert-file", "/none"),
        ("--tls-protocols", "TLSv7"),
        ("--tls-ciphers", "NOSUCH"),
        ("--tls-ciphersuites", "NOSUCH"),
        ("--tls-dh-params-file", "/none"),
        ("--tls-client-cert-file", "/none"),
    ],
)
def test_what_ends_the_start(
    fresh_server: Factory,
    real: Encrypted,
    certificates: Certificates,
    tls_port: int,
    left_out: str,
    changed: str | None,
) -> None:
    """The log says why, in the words of a real server, and the exit code is the same."""
    options = dict(zip(*[iter(certificates.options())] * 2, strict=True))
    options.pop(left_out, None)
    if changed is not None:
        options[left_out] = changed
        if "client" in left_out:
            options["--tls-client-key-file"] = changed
    words = ["--tls-port", str(tls_port)]
    for name, value in options.items():
        words += [name, value]
    real.process.kill()
    real.process.options = tuple(words)
    ours = fresh_server(*words, start=False)
    said = []
    for process in (ours, real.process):
        process.log_path.write_text("")
        process.spawn()
        assert process.wait() == 1
        lines = [line.partition(" # ")[2] for line in process.log().splitlines() if " # " in line]
        told = [line.partition(": error:")[0] for line in lines if "overcommit" not in line]
        told = [line.removesuffix(": No such file or directory") for line in told]
        assert told[-1] == "Failed to configure TLS. Check logs for more info."
        said.append(told[-2])
    assert said[0] == said[1]
