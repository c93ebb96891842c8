"""Servers that speak TLS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import Factory

from support.certificates import Certificates
from support.encrypted import Encrypted, Start
from support.judges import JUDGES, missing
from support.process import RedisProcess, claim_port


@pytest.fixture
def tls_port() -> Iterator[int]:
    port, claim = claim_port()
    with claim:
        yield port


@pytest.fixture
def encrypted(fresh_server: Factory, certificates: Certificates, tls_port: int) -> Start:
    """Starts a server of the test's own that speaks TLS."""

    def start(*options: str) -> Encrypted:
        words = ["--tls-port", str(tls_port), *certificates.options(), *options]
        return Encrypted(fresh_server(*words), tls_port, certificates)

    return start


@pytest.fixture
def real(certificates: Certificates) -> Iterator[Encrypted]:
    """A real server that speaks TLS: the newest one can not."""
    judge = next(judge for judge in JUDGES if judge.name == "redis-8.0")
    program = judge.program()
    if program is None:
        missing(f"no {judge.name} to compare with")
    port, claim = claim_port()
    with claim:
        process = RedisProcess("--tls-port", str(port), *certificates.options(), program=program)
        try:
            yield Encrypted(process.start(), port, certificates)
        finally:
            process.discard()
