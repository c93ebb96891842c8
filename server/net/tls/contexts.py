"""The configuration of encryption in the form that OpenSSL takes.

What cannot be used is refused with a text for the log, and the former configuration stays in use.
Python leaves out some features of OpenSSL: suites of TLS 1.3 cannot be chosen, and the store of
sessions can neither be sized nor turned off by itself.

Source: Redis 8.0, tls.c, tlsConfigure and createSSLContext.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
import warnings
from typing import Final

from headrace.server.config.config import Config

_DNS: Final = "DNS"
_ADDRESS: Final = "IP Address"


def common_name(certificate: dict[str, object]) -> bytes:
    """Return the first common name of its subject; empty where there is none."""
    for name, value in _subject(certificate):
        if name == "commonName":
            return value.encode()
    return b""


def has_name(certificate: dict[str, object], expected: bytes) -> bool:
    """Return whether it is for one of these hosts, names with spaces between them, or for any.

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


log: Final = logging.getLogger("headrace")

NO_CERTIFICATE: Final = "No tls-cert-file configured!"
NO_KEY: Final = "No tls-key-file configured!"
NO_AUTHORITY: Final = (
    "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-cluster, "
    "tls-replication or tls-auth-clients are enabled!"
)
NO_AUTHORITY_OF_REGIONS: Final = (
    "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when aa-tls is enabled!"
)
BAD_PROTOCOLS: Final = (
    "Invalid tls-protocols specified. "
    "Use a combination of 'TLSv1', 'TLSv1.1', 'TLSv1.2' and 'TLSv1.3'."
)
SUITES_IGNORED: Final = (
    "tls-ciphersuites has no effect: Python cannot choose suites of TLS 1.3, and OpenSSL's own "
    "choice is used"
)

_PROTOCOLS: Final = {
    b"tlsv1": ssl.OP_NO_TLSv1,
    b"tlsv1.1": ssl.OP_NO_TLSv1_1,
    b"tlsv1.2": ssl.OP_NO_TLSv1_2,
    b"tlsv1.3": ssl.OP_NO_TLSv1_3,
}
_USUAL: Final = (b"tlsv1.2", b"tlsv1.3")
_SUITES: Final = (
    b"TLS_AES_128_GCM_SHA256",
    b"TLS_AES_256_GCM_SHA384",
    b"TLS_CHACHA20_POLY1305_SHA256",
    b"TLS_AES_128_CCM_SHA256",
    b"TLS_AES_128_CCM_8_SHA256",
)
_VERIFY: Final = {b"no": ssl.CERT_NONE, b"optional": ssl.CERT_OPTIONAL, b"yes": ssl.CERT_REQUIRED}
# The parts of OpenSSL's texts around the words.
_AROUND: Final = re.compile(r"^\[[^]]*\] | \(_ssl\.c:\d+\)$")


class TlsError(Exception):
    """The configuration of encryption cannot be used; the text says why."""


class Contexts:
    """The state shared by all connections of one configuration. Raises TlsError: it is unusable.

    ``clients`` and ``regions`` are for those that connect here, ``calling`` for calls to regions.
    """

    def __init__(self, config: Config) -> None:
        if not config.tls_cert_file:
            raise TlsError(NO_CERTIFICATE)
        if not config.tls_key_file:
            raise TlsError(NO_KEY)
        if not config.tls_ca_cert_file and not config.tls_ca_cert_dir:
            if config.tls_auth_clients != b"no" or config.tls_replication:
                raise TlsError(NO_AUTHORITY)
            if config.aa_tls:
                raise TlsError(NO_AUTHORITY_OF_REGIONS)
        self.clients: Final = _serving(config)
        self.regions: Final = _serving(config)
        self.regions.verify_mode = ssl.CERT_REQUIRED
        self.take_client_rule(config.tls_auth_clients)
        self.calling: Final = _calling(config)
        if config.tls_ciphersuites:
            log.warning("%s", SUITES_IGNORED)

    def take_client_rule(self, rule: bytes) -> None:
        """Ask clients that connect from now on for certificates as ``tls-auth-clients`` says."""
        self.clients.verify_mode = _VERIFY[rule]


def words_of(error: Exception) -> str:
    """Return the text of an error, without the parts that only OpenSSL's authors understand."""
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
        return error.strerror or str(error)
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    return _AROUND.sub("", text) or type(error).__name__


def _serving(config: Config) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _take_rules(context, config)
    _take_certificate(context, config.tls_cert_file, config.tls_key_file, config.tls_key_file_pass)
    _take_authorities(context, config)
    context.options |= ssl.OP_NO_RENEGOTIATION
    if not config.tls_prefer_server_ciphers:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    if not config.tls_session_caching:
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    if config.tls_dh_params_file:
        try:
            context.load_dh_params(os.fsdecode(config.tls_dh_params_file))
        except (OSError, ValueError) as error:
            path = _shown(config.tls_dh_params_file)
            raise TlsError(f"Failed to load {path}: {words_of(error)}") from None
    return context


def _calling(config: Config) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the names that count are those of tls-expected-peer-name
    _take_rules(context, config)
    if config.tls_client_cert_file and config.tls_client_key_file:
        _take_certificate(
            context,
            config.tls_client_cert_file,
            config.tls_client_key_file,
            config.tls_client_key_file_pass,
        )
    else:
        _take_certificate(
            context, config.tls_cert_file, config.tls_key_file, config.tls_key_file_pass
        )
    _take_authorities(context, config)
    return context


def _take_rules(context: ssl.SSLContext, config: Config) -> None:
    names = config.tls_protocols.lower().split(b" ") if config.tls_protocols else _USUAL
    if any(name not in _PROTOCOLS for name in names):
        raise TlsError(BAD_PROTOCOLS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of old versions and of gaps between them
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        context.maximum_version = ssl.TLSVersion.MAXIMUM_SUPPORTED
        for name, option in _PROTOCOLS.items():
            if name not in names:
                context.options |= option
    try:
        context.set_ciphers(os.fsdecode(config.tls_ciphers or b"DEFAULT"))
    except (ssl.SSLError, ValueError):
        raise TlsError(f"Failed to configure ciphers: {_shown(config.tls_ciphers)}") from None
    suites = config.tls_ciphersuites
    if suites and not any(suite in _SUITES for suite in suites.split(b":")):
        raise TlsError(f"Failed to configure ciphersuites: {_shown(suites)}")


def _take_certificate(
    context: ssl.SSLContext, certificate: bytes, key: bytes, password: bytes
) -> None:
    try:
        # Alone first, because what takes both does not say which of them is wrong.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(os.fsdecode(certificate))
    except (OSError, ValueError) as error:
        raise TlsError(
            f"Failed to load certificate: {_shown(certificate)}: {words_of(error)}"
        ) from None
    try:
        # A password is always given: without one, OpenSSL would ask at the terminal.
        context.load_cert_chain(os.fsdecode(certificate), os.fsdecode(key), password)
    except (OSError, ValueError) as error:
        raise TlsError(f"Failed to load private key: {_shown(key)}: {words_of(error)}") from None


def _take_authorities(context: ssl.SSLContext, config: Config) -> None:
    file = os.fsdecode(config.tls_ca_cert_file) or None
    folder = os.fsdecode(config.tls_ca_cert_dir) or None
    if file is None and folder is None:
        return
    try:
        context.load_verify_locations(file, folder)
    except (OSError, ValueError) as error:
        raise TlsError(
            f"Failed to configure CA certificate(s) file/directory: {words_of(error)}"
        ) from None


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
