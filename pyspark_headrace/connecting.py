"""How a socket to the server is made, and what no second try would mend.

A server that is away may come back, so most of what goes wrong is tried again. But a file that is
missing, a host that nobody knows, or a port that speaks TLS where plain text is sent, is how things
are set: that fails at once, and the error names the option and its value.
"""

from __future__ import annotations

import errno
import re
import socket
import ssl
from pathlib import Path
from typing import Final

from pyspark_headrace.connection import Connection
from pyspark_headrace.errors import OptionError

HANDSHAKE_S: Final = 5.0  # a plain port may leave a handshake without an answer
_PROBE_S: Final = 1.0
# Alerts of a server about the certificate of its client, as versions of OpenSSL name them. One that
# speaks TLS 1.2 says of a missing one what it says where no cipher suits both.
_OF_CERTIFICATE: Final = re.compile("ALERT_(UNSUPPORTED_|BAD_)?CERTIFICATE|ALERT_UNKNOWN_CA")
_OF_HANDSHAKE: Final = "ALERT_HANDSHAKE_FAILURE"
_HUNG_UP: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError)
_NO_SUCH_HOST: Final = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))


def connect(connection: Connection) -> socket.socket:
    """A socket that is ready for commands.

    Raises:
        OptionError: an option leads nowhere.
        OSError: the server cannot be reached now.
    """
    timeout_s = connection.timeout_ms / 1000
    if connection.unix_path:
        return _to_path(connection, timeout_s)
    context = _context(connection) if connection.tls else None
    raw = _to_host(connection, timeout_s)
    if context is None:
        return raw
    try:
        raw.settimeout(min(timeout_s, HANDSHAKE_S))
        wrapped = context.wrap_socket(raw, server_hostname=connection.host)
    except ssl.SSLCertVerificationError as untrusted:
        raw.close()
        raise OptionError(
            f"{connection.where()} shows a certificate that is not trusted "
            f"({untrusted.verify_message}); {_trusted(connection)}"
        ) from None
    except OSError:
        raw.close()
        if _answers(connection, b"PING\r\n")[:1] in (b"+", b"-"):
            raise OptionError(
                f"{connection.where()} does not speak TLS, which {connection.tls_option} asks for"
            ) from None
        raise
    wrapped.settimeout(timeout_s)
    return wrapped


def _trusted(connection: Connection) -> str:
    if connection.tls_ca_file:
        return f"tlsCaFile {connection.tls_ca_file} holds what is"
    return "tlsCaFile names a file of what is"


def explain(connection: Connection, error: Exception) -> OptionError | None:
    """Return why a first command failed, if another try would fail too."""
    if connection.unix_path:
        return None
    if connection.tls:
        return _refusal(connection, error) or (
            _refusal(connection, _alert(connection)) if _hung_up(connection, error) else None
        )
    away = isinstance(error, ConnectionRefusedError | TimeoutError)
    if away or connection.sentinels or not _speaks_tls(connection):
        return None
    return OptionError(
        f"{connection.where()} speaks TLS: redis.url=rediss://... is wanted, or host and tls=true"
    )


def supposed(connection: Connection, error: Exception) -> str:
    """Return the likely reason of an error that ``explain`` leaves open, to be put behind it."""
    if not _hung_up(connection, error):
        return ""
    return f" (a server may hang up so that wants {_certificate(connection)})"


def _refusal(connection: Connection, error: Exception | None) -> OptionError | None:
    """Return what the alert of a server asks for, if it has sent one."""
    alert = str(error).upper().replace(" ", "_")
    if _OF_CERTIFICATE.search(alert):
        return OptionError(f"{connection.where()} wants {_certificate(connection)}")
    if _OF_HANDSHAKE in alert:
        return OptionError(
            f"{connection.where()} refuses the TLS handshake; it may want "
            f"{_certificate(connection)}"
        )
    return None


def _certificate(connection: Connection) -> str:
    given = f" that is not {connection.tls_cert_file}" if connection.tls_cert_file else ""
    return f"a certificate of its clients{given}: tlsCertFile and tlsKeyFile name one"


def _hung_up(connection: Connection, error: Exception) -> bool:
    """Return whether a connection with TLS has ended, in its handshake or later, without reason."""
    refused = isinstance(error, ConnectionRefusedError)
    return connection.tls and not refused and isinstance(error, _HUNG_UP)


def _alert(connection: Connection) -> Exception | None:
    """Return what the server says of the handshake to a client that sends nothing afterwards.

    With TLS 1.3 a client has sent its first command before the server has seen its certificate. A
    server that closes a socket with such data in it resets the connection, and the alert that it
    sent before is lost more often than not.
    """
    if connection.sentinels:
        return None
    try:
        with (
            _to_host(connection, HANDSHAKE_S) as raw,
            _context(connection).wrap_socket(raw, server_hostname=connection.host) as quiet,
        ):
            quiet.settimeout(_PROBE_S)
            quiet.recv(1)
    except OSError as alert:
        return alert
    return None


def _to_path(connection: Connection, timeout_s: float) -> socket.socket:
    path = connection.unix_path
    raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    raw.settimeout(timeout_s)
    try:
        raw.connect(path)
    except OSError as error:
        raw.close()
        never = error.errno in (errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ENOTSOCK)
        # A server that starts again makes its socket anew, but not the folder.
        if never or not Path(path).parent.is_dir() or "too long" in str(error):
            raise OptionError(f"{connection.source}: {path}: {error.strerror or error}") from None
        raise
    return raw


def _to_host(connection: Connection, timeout_s: float) -> socket.socket:
    try:
        raw = socket.create_connection((connection.host, connection.port), timeout_s)
    except socket.gaierror as error:
        if error.errno in _NO_SUCH_HOST:
            raise OptionError(
                f"{connection.host_option} {connection.host!r}: there is no such host"
            ) from None
        raise
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return raw


def _context(connection: Connection) -> ssl.SSLContext:
    """Return what is trusted, and what is shown to the server.

    Raises:
        OptionError: a file is missing, or holds something else.
    """
    for option, path in (
        ("tlsCaFile", connection.tls_ca_file),
        ("tlsCertFile", connection.tls_cert_file),
        ("tlsKeyFile", connection.tls_key_file),
    ):
        _look_at(option, path)
    try:
        context = ssl.create_default_context(cafile=connection.tls_ca_file or None)
    except ssl.SSLError:
        raise OptionError(
            f"option tlsCaFile: {connection.tls_ca_file} holds no certificates"
        ) from None
    if connection.tls_cert_file:
        key = connection.tls_key_file or None
        try:
            # A key with a password would be asked for at a terminal; nobody sits there.
            context.load_cert_chain(connection.tls_cert_file, key, password="")
        except ssl.SSLError as error:
            files = connection.tls_cert_file + (f", tlsKeyFile: {key}" if key else "")
            raise OptionError(
                f"option tlsCertFile: {files}: no certificate with its key, without a password "
                f"({error.reason or error})"
            ) from None
    return context


def _look_at(option: str, path: str) -> None:
    if not path:
        return
    try:
        with open(path, "rb"):
            return
    except OSError as error:
        raise OptionError(f"option {option}: {path}: {error.strerror}") from None


def _answers(connection: Connection, request: bytes) -> bytes:
    """Return what the port answers to some bytes; nothing where it does not."""
    try:
        with socket.create_connection((connection.host, connection.port), _PROBE_S) as plain:
            plain.settimeout(_PROBE_S)
            plain.sendall(request)
            return plain.recv(64)
    except OSError:
        return b""


def _speaks_tls(connection: Connection) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((connection.host, connection.port), _PROBE_S) as raw,
            context.wrap_socket(raw),
        ):
            return True
    except ssl.SSLError as error:
        return "ALERT" in str(error)
    except OSError:
        return False
