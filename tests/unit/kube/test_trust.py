"""Whom clients trust: as Go does, whoever is asked and whatever Python runs this."""

import datetime as dt
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from asched.kube.certificates import client_context, load_pem
from asched.kube.credentials import load_credentials
from asched.serve.options import CannotServeError, ServingOptions
from asched.serve.tls import Certificates as ServingCertificates
from tests.unit.kube.conftest import Certificates
from tests.unit.kube.kubeconfigs import kubeconfig
from tests.unit.kube.scripted import reply, scripted


@pytest.fixture
def strict_python(monkeypatch):
    """What Python 3.13 makes of a default context, also on older ones."""
    made = ssl.create_default_context

    def default(**arguments):
        context = made(**arguments)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", default)


@pytest.fixture
def old(tmp_path):
    return Certificates(tmp_path, is_old=True)


async def ok(_seen, _wire):
    return reply(200, b"{}")


async def test_a_cluster_whose_authority_lacks_extensions_is_reached(strict_python, old, tmp_path):
    async with scripted(ok, old.server_context()) as server:
        cluster = {"certificate-authority": str(old.ca_file)}
        path = kubeconfig(tmp_path / "c", server.url, cluster=cluster)
        credentials = await load_credentials(path)
        assert not credentials.tls().verify_flags & ssl.VERIFY_X509_STRICT
        from asched.kube.session import ConnectionOptions, connect

        session = await connect(ConnectionOptions(kubeconfig=path))
        assert (await session.pool(1).request("GET", "/")).status == 200
        await session.close()


def shake_hands(server, client, name="api.example"):
    """A handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asker = client.wrap_bio(to_client, to_server, server_hostname=name)
    asked = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (asker, asked):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert asker.version() is not None


def issue(name, issuer=None, *, is_ca=False, names=()):
    """(certificate, key); `issuer` likewise, or itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    )
    if names:
        alternatives = x509.SubjectAlternativeName([x509.DNSName(one) for one in names])
        builder = builder.add_extension(alternatives, critical=False)
    return builder.sign(issuer[1] if issuer else key, hashes.SHA256()), key


def pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def serving(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pem(context, pem(certificate), key_pem(key))
    return context


def test_an_authority_need_not_be_a_root():
    root = issue("root", is_ca=True)
    between = issue("between", root, is_ca=True)
    server = serving(*issue("server", between, names=["api.example"]))
    shake_hands(server, client_context(authorities=pem(between[0])))
    with pytest.raises(ssl.SSLCertVerificationError, match="unable to get local issuer"):
        shake_hands(server, client_context(authorities=pem(issue("other", is_ca=True)[0])))


def test_whoever_asks_us_is_judged_likewise():
    """A cluster's client CA may be no root, and its bundle may have comments."""
    root = issue("root", is_ca=True)
    between = issue("between", root, is_ca=True)
    serving = ServingCertificates(ServingOptions(bind_address="127.0.0.1"))
    serving.trust("# für Prüfungen\n" + pem(between[0]).decode())
    assert serving.context.verify_mode is ssl.CERT_OPTIONAL
    asker = client_context(verify=False)
    certificate, key = issue("somebody", between)
    load_pem(asker, pem(certificate), key_pem(key))
    shake_hands(serving.context, asker)
    with pytest.raises(CannotServeError, match="client CA bundle"):
        serving.trust("ü")


def test_a_name_stands_in_the_alternative_names_or_nowhere():
    root = issue("root", is_ca=True)
    server = serving(*issue("api.example", root))
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(server, client_context(authorities=pem(root[0])))


def test_a_locked_key_is_refused_and_nobody_asked_for_its_passphrase():
    certificate, key = issue("server")
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises(ssl.SSLError):
        load_pem(client_context(), pem(certificate), locked)
