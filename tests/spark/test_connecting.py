"""Servers behind TLS, on a Unix socket, on IPv6; and settings that lead nowhere."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
from conftest import Factory

from pyspark_headrace.errors import OptionError, ServerError, UnreachableError
from pyspark_headrace.given import READ
from pyspark_headrace.options import read_options
from pyspark_headrace.resp import Link
from support.accepting import accepted
from support.certificates import Certificates
from support.process import Process, RedisProcess, claim_port, free_port
from support.sentinels import watched_pair
from support.waiting import wait_until

pytestmark = pytest.mark.once

AT_ONCE_S = 9.0  # five tries take fifteen seconds


def ping(**options: object) -> object:
    """Return what the server answers to a source with these options."""
    given = {name.replace("__", "."): str(value) for name, value in options.items()}
    link = Link(read_options({"path": "s", **given}, READ).connection)
    try:
        return link.call("PING")
    finally:
        link.close()


def refused(**options: object) -> str:
    """The error of a source with these options, which comes at once."""
    began_s = time.monotonic()
    with pytest.raises(OptionError) as found:
        ping(**options)
    assert time.monotonic() - began_s < AT_ONCE_S
    return str(found.value)


@pytest.fixture
def tls_port(fresh_server: Factory, certificates: Certificates) -> Iterator[int]:
    """The encrypted port of a server that wants certificates of its clients."""
    port, claim = claim_port()
    with claim:
        fresh_server("--tls-port", str(port), *certificates.options())
        yield port


def files(certificates: Certificates) -> dict[str, object]:
    shown = certificates.client
    return {
        "tlsCaFile": certificates.authority.file,
        "tlsCertFile": shown.file,
        "tlsKeyFile": shown.key,
    }


def test_certificates_of_clients(tls_port: int, certificates: Certificates) -> None:
    assert ping(port=tls_port, host="localhost", tls="true", **files(certificates)) == b"PONG"
    assert ping(redis__url=f"rediss://localhost:{tls_port}", **files(certificates)) == b"PONG"


def test_tls_that_cannot_be(
    tls_port: int, server: Process, certificates: Certificates, tmp_path: Path
) -> None:
    """A sentence says which option, and what about it."""
    good = files(certificates)
    away = tmp_path / "away.pem"
    odd = tmp_path / "odd.pem"
    odd.write_text("no certificate")
    url = f"rediss://localhost:{tls_port}"
    authority = {"tlsCaFile": good["tlsCaFile"]}
    for name in good:
        assert refused(redis__url=url, **{**good, name: away}) == (
            f"option {name}: {away}: No such file or directory"
        )
        assert str(odd) in refused(redis__url=url, **{**good, name: odd})
    assert refused(redis__url=url, **authority) == (
        f"localhost:{tls_port} wants a certificate of its clients: "
        "tlsCertFile and tlsKeyFile name one"
    )
    assert "shows a certificate that is not trusted" in refused(redis__url=url)
    assert refused(redis__url=f"rediss://localhost:{server.port}", **good) == (
        f"localhost:{server.port} does not speak TLS, which option redis.url (rediss://) asks for"
    )
    asked = {"host": "localhost", "tls": "true", **good}
    assert "option tls asks for" in refused(port=server.port, **asked)
    assert refused(port=tls_port) == (
        f"localhost:{tls_port} speaks TLS: redis.url=rediss://... is wanted, or host and tls=true"
    )


def test_certificates_that_are_not_trusted(
    tls_port: int, certificates: Certificates, tmp_path: Path
) -> None:
    """Nor missing: the server does not know who has signed them."""
    other = Certificates(tmp_path).client
    text = refused(
        redis__url=f"rediss://localhost:{tls_port}",
        tlsCaFile=certificates.authority.file,
        tlsCertFile=other.file,
        tlsKeyFile=other.key,
    )
    assert text == (
        f"localhost:{tls_port} wants a certificate of its clients that is not {other.file}: "
        "tlsCertFile and tlsKeyFile name one"
    )


def test_certificates_with_tls_12(fresh_server: Factory, certificates: Certificates) -> None:
    """Its alert may mean something else as well."""
    port, claim = claim_port()
    with claim:
        fresh_server("--tls-port", str(port), "--tls-protocols", "TLSv1.2", *certificates.options())
        text = refused(
            redis__url=f"rediss://localhost:{port}", tlsCaFile=certificates.authority.file
        )
    assert text == (
        f"localhost:{port} refuses the TLS handshake; it may want a certificate of its clients: "
        "tlsCertFile and tlsKeyFile name one"
    )


@contextmanager
def hanging_up(context: ssl.SSLContext | None) -> Iterator[int]:
    """The port of a server that hangs up on its clients, without a word.

    Args:
        context: what makes it say why to those who greet it as the third one or later; the first is
            the client, the second looks whether the port speaks without TLS.
    """

    def hang_up() -> None:
        for number, client in enumerate(accepted(listener)):
            with client:
                if context is None or number < 2:
                    continue
                client.settimeout(AT_ONCE_S)
                with suppress(ssl.SSLError):
                    context.wrap_socket(client, server_side=True).close()

    with socket.create_server(("localhost", 0)) as listener:
        thread = Thread(target=hang_up)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_a_server_that_hangs_up(certificates: Certificates) -> None:
    """Its alert may be lost with the connection: the server is asked once more, and listened to."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.server.file, certificates.server.key)
    context.load_verify_locations(certificates.authority.file)
    context.verify_mode = ssl.CERT_REQUIRED
    authority = {"tlsCaFile": certificates.authority.file}
    with hanging_up(context) as port:
        assert refused(redis__url=f"rediss://localhost:{port}", **authority) == (
            f"localhost:{port} wants a certificate of its clients: "
            "tlsCertFile and tlsKeyFile name one"
        )
    with hanging_up(None) as port:
        given = {"redis__url": f"rediss://localhost:{port}", "fetchOffset__numRetries": 0}
        with pytest.raises(UnreachableError) as found:
            ping(**given, **authority)
        assert str(found.value).endswith(
            " (a server may hang up so that wants a certificate of its clients: "
            "tlsCertFile and tlsKeyFile name one). "
            "A restarted query goes on where this one stopped"
        )
        with pytest.raises(UnreachableError) as found:
            ping(**given, **files(certificates))
        assert f"clients that is not {certificates.client.file}: " in str(found.value)


def test_a_plain_port_of_a_real_server(redis_server: Process, certificates: Certificates) -> None:
    text = refused(port=redis_server.port, host="localhost", tls="true", **files(certificates))
    assert text == f"localhost:{redis_server.port} does not speak TLS, which option tls asks for"


def test_a_unix_socket(fresh_server: Factory, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    server = fresh_server("--unixsocket", str(path))
    assert ping(redis__url=f"unix://{path}?db=3") == b"PONG"
    server.restart()
    assert ping(redis__url=f"unix://{path}") == b"PONG"
    nowhere = tmp_path / "no" / "socket"
    text = refused(redis__url=f"unix://{nowhere}")
    assert text == f"option redis.url: {nowhere}: No such file or directory"


def test_a_server_on_ipv6(fresh_server: Factory) -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("there is no IPv6 here")
    server = fresh_server("--bind", "127.0.0.1", "::1")
    assert ping(host="::1", port=server.port) == b"PONG"
    assert ping(redis__url=f"redis://[::1]:{server.port}") == b"PONG"
    port = free_port()
    with pytest.raises(UnreachableError, match=rf"\[::1\]:{port} did not answer in 1 tries"):
        ping(redis__url=f"redis://[::1]:{port}", fetchOffset__numRetries=0)


def test_addresses_that_lead_nowhere() -> None:
    assert refused(host="no-such-host.invalid") == (
        "option host 'no-such-host.invalid': there is no such host"
    )
    assert refused(redis__url="redis://no-such-host.invalid:7000") == (
        "option redis.url 'no-such-host.invalid': there is no such host"
    )
    assert refused(port=70000) == "option port: 70000 is above 65535"
    assert "option redis.url: port out of range 0-65535" in refused(redis__url="redis://h:70000")
    assert refused(tlsCertFile="/a") == (
        "option tlsCertFile means nothing without TLS: tls=true, or redis.url rediss://..."
    )
    text = refused(host="localhost", tls="true", tlsKeyFile="/a")
    assert text == "option tlsKeyFile wants tlsCertFile too"


def test_users_and_passwords(
    fresh_server: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = fresh_server("--requirepass", "hush-hush", start=False)
    server.spawn().wait_until_ready()
    with server.client() as client:
        client.call("AUTH", "hush-hush")
        client.call("ACL", "SETUSER", "ada", "on", ">ada-word", "~s*", "+ping")
    secret, wrong = tmp_path / "secret", tmp_path / "wrong"
    secret.write_text("ada-word\n")
    wrong.write_text("wrong-word\n")
    port = server.port
    assert ping(port=port, username="ada", passwordFile=secret) == b"PONG"
    began_s = time.monotonic()
    with pytest.raises(ServerError) as found:
        ping(port=port, username="ada", passwordFile=wrong)
    assert str(found.value).startswith("WRONGPASS ")
    assert f"passwordFile {wrong} is to hold the password of user ada" in str(found.value)
    assert "wrong-word" not in str(found.value)
    with pytest.raises(ServerError, match=r"NOAUTH.*passwordEnv or passwordFile names"):
        ping(port=port)
    assert time.monotonic() - began_s < AT_ONCE_S

    monkeypatch.setenv("HEADRACE_URL", f"redis://ada@localhost:{port}")
    monkeypatch.setenv("HEADRACE_PASSWORD", "ada-word")
    assert ping() == b"PONG"
    assert ping(passwordFile=secret) == b"PONG"
    monkeypatch.setenv("HEADRACE_PASSWORD", "wrong-word")
    with pytest.raises(ServerError, match="HEADRACE_PASSWORD is to hold the password") as found:
        ping()
    assert "wrong-word" not in str(found.value)
    monkeypatch.setenv("HEADRACE_URL", "redis://no-such-host.invalid")
    assert refused() == "HEADRACE_URL 'no-such-host.invalid': there is no such host"
    monkeypatch.setenv("HEADRACE_URL", "redis://me:word@host")
    text = refused()
    assert text.startswith("HEADRACE_URL holds a password")
    assert "word@" not in text


@pytest.fixture
def watched() -> Iterator[tuple[RedisProcess, RedisProcess, int]]:
    """A master, its replica, and the port of a sentinel that looks after them."""
    with watched_pair() as found:
        yield found


def test_the_master_that_a_sentinel_knows(
    watched: tuple[RedisProcess, RedisProcess, int],
) -> None:
    """And the one that takes its place."""
    master, replica, port = watched
    master.call("XADD", "s", "1-1", "f", "v")
    wait_until(lambda: replica.call("XLEN", "s") == 1, 30)
    given = {"sentinels": f"127.0.0.1:{free_port()},127.0.0.1:{port}", "sentinelMaster": "mine"}
    link = Link(read_options({"path": "s", **given}, READ).connection)
    assert link.call("CONFIG", "GET", "port") == [b"port", str(master.port).encode()]
    master.kill()
    link.connection = replace(link.connection, retries=8)  # type: ignore[misc]
    assert link.call("XADD", "s", "2-1", "f", "v") == b"2-1"
    assert link.call("CONFIG", "GET", "port") == [b"port", str(replica.port).encode()]
    assert link.call("XLEN", "s") == 2
    link.close()
    assert refused(**{**given, "sentinelMaster": "other"}) == (
        "option sentinelMaster: other: the sentinels know no such master"
    )


def test_wrong_sentinels() -> None:
    both = {"sentinels": "a:1", "sentinelMaster": "m"}
    assert refused(sentinels="a:1") == "options sentinels and sentinelMaster go together"
    assert refused(**both, port=7) == "options sentinels and port exclude each other"
    assert "port out of range" in refused(**{**both, "sentinels": "a:70000"})
    assert "'a/b' is not host or host:port" in refused(**{**both, "sentinels": "a/b"})
