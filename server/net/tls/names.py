"""Names in certificates, in the form of ``ssl.SSLSocket.getpeercert``."""

from __future__ import annotations

from typing import Final

_DNS: Final = "DNS"
_ADDRESS: Final = "IP Address"


def common_name(certificate: dict[str, object]) -> bytes:
    """The first common name of its subject; empty where there is none."""
    for name, value in _subject(certificate):
        if name == "commonName":
            return value.encode()
    return b""


def has_name(certificate: dict[str, object], expected: bytes) -> bool:
    """Whether it is for one of these hosts, whose names have spaces between them; or for any.

    The common name counts only where no name of a host stands beside it, as for browsers.
    """
    wanted = [name.decode("utf-8", "replace").lower() for name in expected.split()]
    if not wanted:
        return True
    hosts: list[str] = []
    addresses: list[str] = []
    for kind, value in _alternatives(certificate):
        if kind == _DNS:
            hosts.append(value.lower())
        elif kind == _ADDRESS:
            addresses.append(value.lower())
    if not hosts and not addresses:
        hosts = [common_name(certificate).decode("utf-8", "replace").lower()]
    for name in wanted:
        if name in addresses or any(_fits(host, name) for host in hosts):
            return True
    return False


def _fits(host: str, name: str) -> bool:
    """Whether a name of a certificate, which may begin with ``*.``, is that of a host."""
    if host.startswith("*."):
        label, _, rest = name.partition(".")
        return bool(label) and "." in rest and rest == host[2:]
    return host == name


def _subject(certificate: dict[str, object]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    subject = certificate.get("subject", ())
    assert isinstance(subject, tuple)
    for group in subject:
        found += [(str(name), str(value)) for name, value in group]
    return found


def _alternatives(certificate: dict[str, object]) -> list[tuple[str, str]]:
    names = certificate.get("subjectAltName", ())
    assert isinstance(names, tuple)
    return [(str(kind), str(value)) for kind, value in names]
