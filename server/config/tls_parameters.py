"""The parameters of encrypted connections, with what the documentation says of them."""

from __future__ import annotations

from typing import Final

from headrace.compat.parameters import (
    INT_MAX,
    RELOADS,
    SENSITIVE,
    BadValue,
    Choice,
    Integer,
    Parameter,
    Text,
    YesNo,
)

STRANGE_SPACE: Final = (
    "tls-expected-peer-name must not contain whitespace other than spaces separating names; "
    "use an empty string to disable it"
)
NO_NAME: Final = "tls-expected-peer-name contains no usable name; use an empty string to disable it"


class PeerNames(Text):
    """Names of hosts with spaces between them; kept as they were written."""

    def parse(self, words: list[bytes], current: object) -> object:
        """Raises BadValue for other white space, and where there is nothing but spaces."""
        value = words[0]
        if any(char in value for char in b"\t\n\v\f\r"):
            raise BadValue(STRANGE_SPACE)
        if value and not value.strip(b" "):
            raise BadValue(NO_NAME)
        return super().parse(words, current)


TLS: Final[tuple[Parameter, ...]] = (
    Integer(
        "tls-port", 0, 0, 65535, doc="TCP port to listen at for encrypted connections; 0 is none."
    ),
    Text(
        "tls-cert-file",
        flags=RELOADS,
        doc="File with the server's certificate, and those between it and its authority (PEM). "
        "Set anew it is read anew, with the other files, for connections that come then.",
    ),
    Text("tls-key-file", flags=RELOADS, doc="File with the private key of that certificate."),
    Text("tls-key-file-pass", flags=SENSITIVE, doc="Password of that file; empty is none."),
    Text(
        "tls-ca-cert-file",
        flags=RELOADS,
        doc="File with the authorities whose certificates are trusted.",
    ),
    Text(
        "tls-ca-cert-dir",
        flags=RELOADS,
        doc="Folder with such authorities, named by their hashes as `openssl rehash` does it.",
    ),
    Choice(
        "tls-auth-clients",
        b"yes",
        (b"no", b"yes", b"optional"),
        doc="Whether a client has to show a certificate that is trusted: it has to, need not, or "
        "may; a wrong one is refused then, too.",
    ),
    Choice(
        "tls-auth-clients-user",
        b"off",
        (b"CN", b"off"),
        doc="With `CN` a client is logged in as the user whose name is the common name of its "
        "certificate. Where there is none, or it is off, ACL LOG has it.",
    ),
    Text(
        "tls-protocols",
        doc="Versions that are spoken, of `TLSv1`, `TLSv1.1`, `TLSv1.2` and `TLSv1.3`, with spaces "
        "between them; empty is the last two.",
    ),
    Text(
        "tls-ciphers",
        doc="Ciphers up to TLS 1.2, as a list of OpenSSL; empty is OpenSSL's own.",
    ),
    Text(
        "tls-ciphersuites",
        doc="Cipher suites of TLS 1.3. Names are checked and have no effect: Python cannot choose "
        "among them, and OpenSSL's own choice is used.",
    ),
    YesNo(
        "tls-prefer-server-ciphers",
        False,
        doc="Whether the server's order of ciphers counts, or the client's.",
    ),
    YesNo(
        "tls-session-caching",
        True,
        doc="Let clients resume sessions, which makes a new connection cheaper.",
    ),
    Integer(
        "tls-session-cache-size",
        20480,
        0,
        INT_MAX,
        doc="Kept and shown; Python cannot set it, and OpenSSL keeps 20480 sessions.",
    ),
    Integer(
        "tls-session-cache-timeout",
        300,
        0,
        INT_MAX,
        doc="Kept and shown; Python cannot set it, and OpenSSL's own time applies.",
    ),
    Text(
        "tls-dh-params-file",
        flags=RELOADS,
        doc="File with parameters for the exchange of keys by Diffie and Hellman up to TLS 1.2; "
        "without it only elliptic curves are used there.",
    ),
    Text(
        "tls-client-cert-file",
        flags=RELOADS,
        doc="File with the certificate for connections that the server opens, which are those to "
        "other regions; empty is that of `tls-cert-file`.",
    ),
    Text("tls-client-key-file", flags=RELOADS, doc="File with the private key of that one."),
    Text("tls-client-key-file-pass", flags=SENSITIVE, doc="Password of that file; empty is none."),
    YesNo(
        "tls-replication",
        False,
        doc="Encrypt the connection to a master. Replicas of this server choose by the port.",
    ),
    PeerNames(
        "tls-expected-peer-name",
        doc="Names of which the certificate of another region or of a master must have one; empty "
        "is any that is trusted.",
    ),
    Integer(
        "max-new-tls-connections-per-cycle",
        1,
        1,
        1000,
        doc="How many handshakes are taken further between two looks at other clients.",
    ),
)
