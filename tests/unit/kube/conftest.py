"""Fixtures of the client's tests: a scripted server, sessions with it, certificates."""

import datetime as dt
import ipaddress
import ssl
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from asched.kube.session import ConnectionOptions, connect
from tests.unit.kube.scripted import always_ok, scripted


@pytest.fixture
async def server():
    async with scripted(always_ok) as made:
        yield made


@asynccontextmanager
async def session_with(server, **options):
    """A session without a handshake; `observed` collects (method, host, code), `exchanges` all."""
    observed, exchanges = [], []

    def observe(exchange):
        exchanges.append(exchange)
        observed.append(exchange[:3])

    session = await connect(
        ConnectionOptions(master=server.url, **options),
        observe=observe,
        handshake=False,
    )
    session.observed, session.exchanges = observed, exchanges
    try:
        yield session
    finally:
        await session.close()


@pytest.fixture(autouse=True)
def no_configuration_from_outside(monkeypatch, tmp_path):
    """No test reads the kubeconfig of whoever runs it."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
async def session(server):
    async with session_with(server) as made:
        yield made


class Certificates:
    """A CA and a server certificate for 127.0.0.1 and `api.example`.

    Those of old clusters have neither key usages nor key identifiers.
    """

    def __init__(self, folder: Path, *, is_old: bool = False) -> None:
        self.folder = folder
        self._is_old = is_old
        self._ca_key = ec.generate_private_key(ec.SECP256R1())
        self._ca_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test-ca")])
        ca = self._sign(self._ca_name, self._ca_key, is_ca=True)
        self.ca_file = folder / "ca.crt"
        self.ca_file.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
        self.server_file, self.server_key = self.issue("server")

    def issue(self, name: str) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        certificate = self._sign(subject, key, is_ca=False)
        crt, pem = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        crt.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        pem.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return crt, pem

    def _sign(self, subject, key, *, is_ca):
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._ca_name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName(
                    [
                        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
                        x509.DNSName("api.example"),
                    ]
                ),
                critical=False,
            )
        )
        if self._is_old:
            return builder.sign(self._ca_key, hashes.SHA256())
        builder = (
            builder.add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._ca_key.public_key()),
                critical=False,
            )
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    key_cert_sign=is_ca,
                    crl_sign=is_ca,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
        )
        return builder.sign(self._ca_key, hashes.SHA256())

    def server_context(self, *, client_ca: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server_file, self.server_key)
        if client_ca:
            context.load_verify_locations(self.ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))
