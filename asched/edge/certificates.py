"""Certificates: made for a server that was given none, loaded from memory, and read.

Whoever serves over TLS uses these: the scheduler's pages, and the embedded API server.
"""

import ipaddress
import os
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

VALID_DAYS: Final = 365
#: What a server on this machine is called.
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def self_signed(names: Sequence[str]) -> tuple[bytes, bytes]:
    """Certificate and key (PEM) for these names and addresses, the first of which is its subject;
    the certificate is its own authority.
    """
    from cryptography import x509  # 40 ms, and who only loads needs none of it
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


def load_pem(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate from memory; OpenSSL wants a file, so one lives for a moment."""
    with _passing_file(certificate + b"\n" + key) as file:
        context.load_cert_chain(file)


@contextmanager
def _passing_file(content: bytes) -> Iterator[str]:
    """The name of a file for the length of the block; on Linux no folder has to hold it."""
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
    """The DNS names a certificate is good for."""
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(pem)
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return names.value.get_values_for_type(x509.DNSName)
