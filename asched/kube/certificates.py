"""TLS certificates: create self-signed ones, load from memory, read and verify.

The scheduler's pages and the embedded API server serve TLS with these functions. Every client takes
its context from `client_context`, so that all clients verify alike.
"""

import ipaddress
import logging
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Final

from asched.kube.files import file_versions, named_content

log = logging.getLogger(__name__)

#: Minimum time between two checks of certificate files for changes.
FILES_CHECK_S: Final = 10.0
VALID_DAYS: Final = 365
#: Names of a server on this machine.
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def self_signed(names: Sequence[str]) -> tuple[bytes, bytes]:
    """Certificate and key (PEM) for these names and addresses, of which the first is the subject;
    the certificate is its own CA.
    """
    from cryptography import x509  # 40 ms; needed only to create certificates
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    spelled: list[x509.GeneralName] = []
    for name in names:
        try:
            spelled.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            spelled.append(x509.DNSName(name))
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(spelled), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def client_context(*, authorities: bytes = b"", verify: bool = True) -> ssl.SSLContext:
    """A context that verifies servers against `authorities` (PEM), else the system's CAs.

    Verifies as Go does, so that every cluster that kubectl reaches can be reached: each given CA is
    trusted whether or not it is a root; RFC 5280's further rules for extensions are not applied
    (Python 3.13 applies them, and older clusters' CAs lack key usages and key identifiers); a host
    name must be among the alternative names. Raises ssl.SSLError.

    Source  crypto/x509 of Go 1.25, (*Certificate).Verify and VerifyHostname
    """
    # A bundle may contain any comments; OpenSSL skips text outside of blocks.
    context = ssl.create_default_context(cadata=authorities.decode("ascii", "ignore") or None)
    trust_as_go(context)
    context.hostname_checks_common_name = False
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def trust_as_go(context: ssl.SSLContext) -> None:
    """Verify chains only as strictly as Go; see `client_context`."""
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


class Rotating:
    """A context made of files, made again when one of them has changed on disk.

    The first failure of `make` is raised; later failures keep the last context.
    Bounds  files are checked at most every FILES_CHECK_S, and only for a new connection.
    """

    def __init__(self, make: Callable[[], ssl.SSLContext], files: Sequence[str]) -> None:
        self._make = make
        self._files = [file for file in files if file]
        self._versions = file_versions(self._files)
        self._checked_s = monotonic()
        self._context = make()

    def context(self) -> ssl.SSLContext:
        if not self._files or monotonic() - self._checked_s < FILES_CHECK_S:
            return self._context
        self._checked_s = monotonic()
        versions = file_versions(self._files)
        if versions != self._versions:
            try:
                self._context = self._make()
            except (OSError, ValueError) as error:  # for instance only half of a pair is written
                log.warning("changed certificate files are not usable yet: %s", error)
            else:
                self._versions = versions
                log.info("certificate files have changed; new connections use them")
        return self._context


def rotating(
    *,
    authorities: bytes = b"",
    authorities_file: str = "",
    verify: bool = True,
    certificate: bytes = b"",
    certificate_file: str = "",
    key: bytes = b"",
    key_file: str = "",
) -> Rotating:
    """A client's contexts, from PEM or else from files. Raises OSError and ValueError, of which
    ssl.SSLError is one.
    """

    def make() -> ssl.SSLContext:
        trusted = authorities or named_content(authorities_file)
        if authorities_file and not trusted.strip():
            raise ValueError(f"{authorities_file} is empty")
        context = client_context(authorities=trusted, verify=verify)
        own = certificate or named_content(certificate_file), key or named_content(key_file)
        if any(own):
            load_pem(context, *own)
        return context

    return Rotating(make, (authorities_file, certificate_file, key_file))


def load_pem(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate from memory; OpenSSL requires a file, so a temporary one is used.

    A key with a passphrase is refused: a server cannot ask for it.
    """
    with _passing_file(certificate + b"\n" + key) as file:
        context.load_cert_chain(file, password=lambda: b"")


@contextmanager
def _passing_file(content: bytes) -> Iterator[str]:
    """The name of a temporary file; on Linux it is in memory."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("tls"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as named:
            named.write(content)
            named.flush()
            yield named.name


def certificate_names(pem: bytes) -> list[str]:
    """The DNS names for which a certificate is valid."""
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(pem)
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return names.value.get_values_for_type(x509.DNSName)
