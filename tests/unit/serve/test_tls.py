"""Which certificate is shown to whom, and when a rotated one takes effect."""

import asyncio
import os
import ssl

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from asched.serve.options import CannotServeError, ServingOptions
from asched.serve.tls import Certificates
from tests.unit.serve.authority import Authority
from tests.unit.serve.world import a_port, client_tls

SERVER = ExtendedKeyUsageOID.SERVER_AUTH


async def shown(port, name=None):
    """The common name of the certificate that a client sees."""
    _, writer = await asyncio.open_connection(
        "127.0.0.1", port.server.port, ssl=client_tls(), server_hostname=name or "localhost"
    )
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    subject = x509.load_der_x509_certificate(der).subject
    return subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value


def options(**given):
    return ServingOptions(bind_address="127.0.0.1", secure_port=0, **given)


async def test_without_files_a_certificate_is_made():
    async with a_port() as port:
        assert await shown(port) == "localhost"


async def test_a_rotated_certificate_is_shown_to_the_next_client(tmp_path):
    authority = Authority()
    cert, key = authority.files(tmp_path, "first", usage=SERVER)
    async with a_port(options=options(tls_cert_file=cert, tls_private_key_file=key)) as port:
        assert await shown(port) == "first"
        newer = authority.files(tmp_path, "second", usage=SERVER)
        for new, old in zip(newer, (cert, key), strict=True):
            os.replace(new, old)  # noqa: PTH105

        assert port.server.certificates.refresh()

        assert await shown(port) == "second"
        assert not port.server.certificates.refresh()


async def test_a_broken_file_leaves_the_old_certificate_in_place(tmp_path):
    cert, key = Authority().files(tmp_path, "first", usage=SERVER)
    async with a_port(options=options(tls_cert_file=cert, tls_private_key_file=key)) as port:
        (tmp_path / "first.crt").write_text("nonsense")

        assert not port.server.certificates.refresh()

        assert await shown(port) == "first"


async def test_clients_get_the_certificate_of_the_name_they_ask_for(tmp_path):
    authority = Authority()
    named = (
        (*authority.files(tmp_path, "exact", usage=SERVER), ("exact.example.com",)),
        (*authority.files(tmp_path, "wild", dns=["*.example.org"], usage=SERVER), ()),
    )
    async with a_port(options=options(tls_sni_cert_key=named)) as port:
        assert await shown(port, "exact.example.com") == "exact"
        assert await shown(port, "some.example.org") == "wild"
        assert await shown(port, "a.b.example.org") == "localhost"


async def test_old_versions_are_refused():
    async with a_port(options=options(tls_min_version="VersionTLS13")) as port:
        old = client_tls()
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", port.server.port, ssl=old)


def test_a_folder_keeps_the_certificate_for_the_next_start(tmp_path):
    folder = tmp_path / "certs"
    Certificates(options(cert_dir=str(folder)))
    first = (folder / "asched.crt").read_bytes()

    Certificates(options(cert_dir=str(folder)))

    assert (folder / "asched.crt").read_bytes() == first
    assert (folder / "asched.key").stat().st_mode & 0o077 == 0


def test_a_missing_file_is_one_clear_line():
    with pytest.raises(CannotServeError, match="certificate /nowhere and key /nor-here"):
        Certificates(options(tls_cert_file="/nowhere", tls_private_key_file="/nor-here"))
