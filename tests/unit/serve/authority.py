"""A certificate authority for tests: clients, servers, proxies."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PEM = serialization.Encoding.PEM


class Authority:
    def __init__(self, name="test-ca"):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = (
            self._builder(self.name, self.key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self.key, hashes.SHA256())
        )
        self.pem = self.certificate.public_bytes(PEM).decode()

    def _builder(self, subject, key, days=1):
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=2))
            .not_valid_after(now + timedelta(days=days))
        )

    def issue(self, name, *, groups=(), dns=(), days=1, usage=ExtendedKeyUsageOID.CLIENT_AUTH):
        """(certificate, certificate as PEM, key as PEM)"""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
                x509.NameAttribute(NameOID.COMMON_NAME, name),
            ]
        )
        builder = self._builder(subject, key, days).add_extension(
            x509.ExtendedKeyUsage([usage]), critical=False
        )
        if dns:
            names = x509.SubjectAlternativeName([x509.DNSName(one) for one in dns])
            builder = builder.add_extension(names, critical=False)
        made = builder.sign(self.key, hashes.SHA256())
        plain = serialization.NoEncryption()
        private = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, plain)
        return made, made.public_bytes(PEM), private

    def files(self, folder, name, **options):
        """Certificate and key as files; their paths."""
        _, certificate, key = self.issue(name, **options)
        paths = folder / f"{name}.crt", folder / f"{name}.key"
        paths[0].write_bytes(certificate)
        paths[1].write_bytes(key)
        return tuple(map(str, paths))
