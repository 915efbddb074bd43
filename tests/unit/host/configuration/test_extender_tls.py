from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from asched.core.config.v1 import Extender, ExtenderTLSConfig
from asched.host.configuration.extender_tls import fault_of


def pair() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "extender")])
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2026, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2036, 1, 1, tzinfo=UTC))
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM
    secret = key.private_bytes(
        form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return cert.public_bytes(form), secret


CERT, KEY = pair()
OTHER_KEY = pair()[1]


@pytest.mark.parametrize(
    ("tls", "https", "fault"),
    [
        (None, True, None),
        (ExtenderTLSConfig(), False, None),
        (ExtenderTLSConfig(server_name="x", ca_data=CERT), True, None),
        (ExtenderTLSConfig(cert_data=CERT, key_data=KEY), False, None),
        (ExtenderTLSConfig(cert_file="/nonexistent/tls.crt"), False, None),
        (
            ExtenderTLSConfig(cert_file="/nonexistent/tls.crt"),
            True,
            "open /nonexistent/tls.crt: no such file or directory",
        ),
        (
            ExtenderTLSConfig(ca_file="/nonexistent/ca.crt"),
            False,
            "open /nonexistent/ca.crt: no such file or directory",
        ),
        (
            ExtenderTLSConfig(insecure=True, ca_data=CERT),
            False,
            "specifying a root certificates file with the insecure flag is not allowed",
        ),
        (
            ExtenderTLSConfig(ca_data=b"not a cert"),
            False,
            "unable to load root certificates: unable to parse bytes as PEM block",
        ),
        (
            ExtenderTLSConfig(cert_data=b"x", key_data=KEY),
            False,
            "tls: failed to find any PEM data in certificate input",
        ),
        (
            ExtenderTLSConfig(cert_data=CERT, key_data=b"x"),
            False,
            "tls: failed to find any PEM data in key input",
        ),
        (
            ExtenderTLSConfig(cert_data=CERT, key_data=OTHER_KEY),
            False,
            "tls: private key does not match public key",
        ),
    ],
)
def test_certificates(tls: ExtenderTLSConfig | None, https: bool, fault: str | None) -> None:
    assert fault_of(Extender(tls_config=tls, enable_https=https)) == fault


def test_broken_pem_is_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "ca.crt"
    broken.write_bytes(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    fault = fault_of(Extender(tls_config=ExtenderTLSConfig(ca_file=str(broken))))
    assert fault is not None
    assert fault.startswith("unable to load root certificates: failed to parse certificate")
