"""Regions that exchange encrypted: with certificates, wrong ones, and over links that break."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.certificates import Certificate, Certificates
from support.client import RawClient
from support.mesh import Mesh, RegionProcess, wait_until
from support.process import claim_port, free_port
from support.tools import tool

BOTH = ("--aa-tls", "yes")


def showing(certificate: Certificate, certificates: Certificates) -> list[str]:
    """Options of a region that has a certificate, and trusts an authority."""
    return [
        *BOTH,
        *("--tls-cert-file", str(certificate.file), "--tls-key-file", str(certificate.key)),
        *("--tls-ca-cert-file", str(certificates.authority.file)),
    ]


@pytest.fixture
def encrypted(certificates: Certificates) -> Iterator[Mesh]:
    """Two regions that exchange encrypted."""
    with Mesh(2, *showing(certificates.server, certificates), "--aa-secret", "x") as mesh:
        yield mesh
        for region in mesh.regions.values():
            region.check_log()


def test_what_is_written_arrives(encrypted: Mesh) -> None:
    one, two = encrypted[1], encrypted[2]
    first = one.xadd("s", "*", "f", "x" * 1_000_000)
    wait_until(lambda: two.ids("s") == [first], two)
    second = two.xadd("s")
    wait_until(lambda: one.ids("s") == [first, second], one)


def test_the_clients_port_stays_plain(encrypted: Mesh) -> None:
    with encrypted[1].client() as client:
        assert client.call("PING") == b"+PONG\r\n"


def test_a_cut_link_is_made_anew(encrypted: Mesh) -> None:
    one, two = encrypted[1], encrypted[2]
    added = [one.xadd("s")]
    wait_until(lambda: two.ids("s") == added, two)
    for _ in range(3):
        encrypted.partition({1}, {2})
        added += [one.xadd("s", "*", "f", "x" * 100_000) for _ in range(20)]
        added.append(two.xadd("s"))
        encrypted.heal()
        encrypted.sync()
        assert set(one.ids("s")) == set(two.ids("s")) == set(added)


def test_a_copy_travels_encrypted(certificates: Certificates) -> None:
    """A region that comes later fetches everything."""
    options = showing(certificates.server, certificates)
    port, claim = claim_port()
    other_port, other_claim = claim_port()
    with claim, other_claim:
        one = RegionProcess(1, port, *options)
        two = RegionProcess(2, other_port, "--aa-peers", f"1 127.0.0.1 {port}", *options)
        with one:
            one.wait_until_writable()
            added = [one.xadd("s", "*", "f", "x" * 1000) for _ in range(2000)]
            one.call("CONFIG", "SET", "aa-peers", f"2 127.0.0.1 {other_port}")
            with two:
                two.wait_until_writable()
                wait_until(lambda: two.ids("s") == added, two)


def test_the_tool_connects_encrypted(certificates: Certificates, tmp_path: Path) -> None:
    port, claim = claim_port()
    options = ["--tls-port", str(port), *showing(certificates.server, certificates)]
    words = certificates.cli_options()
    with claim, RegionProcess(1, free_port(), *options):
        for url in (f"redis://127.0.0.1:{port}", f"rediss://127.0.0.1:{port}"):
            done = tool("regions", "--url", url, *words)
            assert done.returncode == 0, done.stdout
            assert b"all is well" in done.stdout
        url = f"rediss://127.0.0.1:{port}"
        done = tool("regions", "--url", url, "--insecure", *words[3:])
        assert done.returncode == 0, done.stdout
        stranger = Certificates(tmp_path)
        done = tool("regions", "--url", url, "--cacert", str(stranger.authority.file))
        assert done.returncode == 1
        assert b"certificate verify failed" in done.stdout
        done = tool("regions", "--url", url, "--cacert", "/none")
        assert done.returncode == 2
        assert done.stderr == b"A certificate cannot be used: No such file or directory\n"


# Who is refused


@pytest.fixture
def lonely(certificates: Certificates) -> Iterator[RegionProcess]:
    """A region that waits for another one."""
    port, claim = claim_port()
    options = showing(certificates.server, certificates)
    with claim, RegionProcess(1, port, "--loglevel", "verbose", *options) as region:
        yield region


def asks(region: RegionProcess, context: ssl.SSLContext) -> bytes:
    """Return what is answered to somebody at the port for regions; nothing if that is nothing."""
    try:
        with RawClient(region.aa_port, tls=context, timeout_s=5.0) as client:
            return client.call("PING")
    except OSError:
        return b""


def test_a_certificate_is_asked_for(
    lonely: RegionProcess, certificates: Certificates, tmp_path: Path
) -> None:
    stranger = Certificates(tmp_path)
    trusting = certificates.context()
    assert asks(lonely, trusting) == b""
    trusting.load_cert_chain(*stranger.client)
    assert asks(lonely, trusting) == b""
    assert asks(lonely, certificates.context(certificates.client)) == b"+PONG\r\n"
    with RawClient(lonely.aa_port) as plain:
        plain.send_command("PING")
        assert b"PONG" not in plain.rest_until_close()


def test_a_name_is_asked_for(lonely: RegionProcess, certificates: Certificates) -> None:
    context = certificates.context(certificates.issue("eu", hosts="DNS:eu.example"))
    lonely.call("CONFIG", "SET", "tls-expected-peer-name", "us.example ap.example")
    assert asks(lonely, context).startswith(b"-AATLS ")
    lonely.wait_for_log("has none of the names in tls-expected-peer-name")
    lonely.call("CONFIG", "SET", "tls-expected-peer-name", "us.example EU.example")
    assert asks(lonely, context) == b"+PONG\r\n"
    wild = certificates.context(certificates.issue("wild", hosts="DNS:*.eu.example,IP:127.0.0.1"))
    assert asks(lonely, wild).startswith(b"-AATLS ")
    lonely.call("CONFIG", "SET", "tls-expected-peer-name", "deep.eu.example")
    assert asks(lonely, wild) == b"+PONG\r\n"
    lonely.call("CONFIG", "SET", "tls-expected-peer-name", "far.deep.eu.example")
    assert asks(lonely, wild).startswith(b"-AATLS ")
    lonely.call("CONFIG", "SET", "tls-expected-peer-name", "127.0.0.1")
    assert asks(lonely, wild) == b"+PONG\r\n"


@contextmanager
def facing(ours: list[str], theirs: list[str]) -> Iterator[tuple[RegionProcess, RegionProcess]]:
    """Two regions that call each other, and will not talk."""
    port, claim = claim_port()
    other_port, other_claim = claim_port()
    with (
        claim,
        other_claim,
        RegionProcess(1, port, "--aa-peers", f"2 127.0.0.1 {other_port}", *ours) as one,
        RegionProcess(2, other_port, "--aa-peers", f"1 127.0.0.1 {port}", *theirs) as two,
    ):
        yield one, two


def check_refused(region: RegionProcess, other: int, as_caller: bytes, as_called: str) -> None:
    """What a region says of another one that it calls, and that calls it, and once of each."""
    wait_until(lambda: region.state_of(other).startswith(b"refused: "), region)
    assert as_caller in region.state_of(other)
    region.wait_for_log(as_caller.decode())
    line = "Whoever called from 127.0.0.1 at aa-port was refused: " + as_called
    region.wait_for_log(line)
    assert region.log().count(line) == 1


def test_a_region_of_another_authority_is_not_met(
    certificates: Certificates, tmp_path: Path
) -> None:
    stranger = Certificates(tmp_path)
    options = showing(certificates.server, certificates), showing(stranger.server, stranger)
    with facing(*options) as (one, two):
        one.wait_for_log("TLS: certificate verify failed")
        two.wait_for_log("TLS: certificate verify failed")
        check_refused(one, 2, b"TLS: certificate verify failed", "TLS: tlsv1 alert unknown ca")
        check_refused(two, 1, b"TLS: certificate verify failed", "TLS: tlsv1 alert unknown ca")


def test_both_hear_why_who_calls_is_refused(certificates: Certificates, tmp_path: Path) -> None:
    """Region 2 trusts the other one, which does not know its authority."""
    stranger = Certificates(tmp_path)
    authorities = tmp_path / "authorities.crt"
    files = [each.authority.file.read_text() for each in (certificates, stranger)]
    authorities.write_text("".join(files))
    trusting = [*showing(stranger.server, stranger)[:-1], str(authorities)]
    with facing(showing(certificates.server, certificates), trusting) as (one, two):
        check_refused(
            *(one, 2, b"TLS: certificate verify failed", "TLS: certificate verify failed")
        )
        check_refused(two, 1, b"TLS: tlsv1 alert unknown ca", "TLS: tlsv1 alert unknown ca")


def test_both_hear_of_a_name_that_is_not_expected(certificates: Certificates) -> None:
    options = showing(certificates.server, certificates)
    expecting = [*options, "--tls-expected-peer-name", "us.example"]
    with facing(expecting, options) as (one, two):
        reason = "its certificate has none of the names in tls-expected-peer-name"
        check_refused(one, 2, reason.encode(), f"TLS: {reason}")
        wait_until(lambda: two.state_of(1).startswith(b"refused: AATLS the certificate"), two)


def test_both_hear_that_one_of_them_does_not_encrypt(certificates: Certificates) -> None:
    with facing(showing(certificates.server, certificates), []) as (one, two):
        check_refused(one, 2, b"so that region does not encrypt", "TLS: wrong version number")
        check_refused(two, 1, b"AATLS that region encrypts", "it encrypts, and this region does")


def test_a_region_that_does_not_encrypt_is_not_met(certificates: Certificates) -> None:
    port, claim = claim_port()
    with claim, socket.create_server(("127.0.0.1", 0)) as plain:
        peers = f"2 127.0.0.1 {plain.getsockname()[1]}"
        options = showing(certificates.server, certificates)
        with RegionProcess(1, port, "--aa-peers", peers, *options) as region:
            plain.settimeout(10)
            while "TLS: wrong version number" not in region.log():
                calling, _ = plain.accept()
                with calling:
                    assert calling.recv(3) == b"\x16\x03\x01"
                    calling.sendall(b"-ERR unknown command\r\n")
                    assert calling.recv(1000)  # it says something, and closes


def test_certificates_are_needed_at_the_start(certificates: Certificates) -> None:
    port, claim = claim_port()
    with claim:
        region = RegionProcess(1, port, *BOTH)
        try:
            region.spawn()
            assert region.wait() == 1
            assert "No tls-cert-file configured!" in region.log()
        finally:
            region.discard()
