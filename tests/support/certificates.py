"""Certificates for tests, made by the program ``openssl``."""

from __future__ import annotations

import base64
import re
import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

from support.programs import program


class Certificate(NamedTuple):
    """The files of one."""

    file: Path
    key: Path


class Certificates:
    """An authority and what it has signed: for a server, and for clients by name.

    Args:
        folder: where the files lie.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._program = program("openssl")
        self.authority = Certificate(folder / "ca.crt", folder / "ca.key")
        self._run(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30"),
            *("-subj", "/O=Test/CN=Authority", "-keyout", "ca.key", "-out", "ca.crt"),
        )
        self.server = self.issue("server")
        self.client = self.issue("client")

    def issue(
        self, name: str, *, password: str = "", hosts: str = "DNS:localhost,IP:127.0.0.1"
    ) -> Certificate:
        """A certificate with a common name, whose key may have a password."""
        made = Certificate(self.folder / f"{name}.crt", self.folder / f"{name}.key")
        hidden = ["-passout", f"pass:{password}"] if password else ["-nodes"]
        self._run(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", *hidden),
            *("-subj", f"/O=Test/CN={name}", "-keyout", str(made.key), "-out", "request.csr"),
        )
        (self.folder / "extensions").write_text(f"subjectAltName={hosts}\n")
        self._run(
            *("x509", "-req", "-in", "request.csr", "-CA", "ca.crt", "-CAkey", "ca.key"),
            *("-CAcreateserial", "-days", "30", "-extfile", "extensions", "-out", str(made.file)),
        )
        return made

    def issue_with_nul(self, name: str) -> Certificate:
        """One whose common name has a NUL where ``name`` has an X.

        No program makes such a thing, so one is changed and signed anew: the signature is last.
        """
        made = self.issue(name, hosts="DNS:localhost")
        text = made.file.read_text()
        der = bytearray(base64.b64decode(re.sub("-----.*-----", "", text)))
        at = der.index(name.encode())
        der[at : at + len(name)] = name.replace("X", "\0").encode()
        length = int.from_bytes(der[6:8], "big")  # behind 30 82 .. .. 30 82
        (self.folder / "signed").write_bytes(der[4 : 8 + length])
        self._run("dgst", "-sha256", "-sign", "ca.key", "-out", "signature", "signed")
        signature = (self.folder / "signature").read_bytes()
        der[-len(signature) :] = signature
        made.file.write_text(ssl.DER_cert_to_PEM_cert(bytes(der)))
        return made

    def options(self) -> list[str]:
        """Of a server that has its certificate, and trusts what the authority has signed."""
        return [
            *("--tls-cert-file", str(self.server.file), "--tls-key-file", str(self.server.key)),
            *("--tls-ca-cert-file", str(self.authority.file)),
        ]

    def cli_options(self) -> list[str]:
        """The same for redis-cli and its kin, as a client."""
        return [
            *("--tls", "--cacert", str(self.authority.file)),
            *("--cert", str(self.client.file), "--key", str(self.client.key)),
        ]

    def context(self, certificate: Certificate | None = None) -> ssl.SSLContext:
        """Return what a client that shows this certificate, or none, makes connections by."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(self.authority.file)
        if certificate is not None:
            context.load_cert_chain(*certificate)
        return context

    def _run(self, *words: str) -> None:
        done = subprocess.run(
            [self._program, *words], cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
