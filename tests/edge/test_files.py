"""A file that somebody names may have no end, and what does not end is told in one line."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from asched.cli.pages import PageError, own_token
from asched.core.config.v1 import ExtenderTLSConfig
from asched.edge.client import credentials, exec_plugin, extenders, oidc
from asched.edge.client.errors import ConnectError
from asched.edge.client.exec_plugin import ExecPlugin, Printed
from asched.edge.client.kubeconfig import Login
from asched.edge.files import file_content, file_text
from asched.edge.host import access
from asched.edge.serve.options import CannotServeError, ServingOptions
from asched.edge.serve.tls import Certificates

ENDLESS = "/dev/zero"


def test_a_file_is_read_up_to_the_bound(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345678")
    assert file_content(file, 8) == b"12345678"
    assert file_text(file) == "12345678"
    with pytest.raises(OSError, match="larger than 7 bytes") as caught:
        file_content(file, 7)
    assert caught.value.strerror == "larger than 7 bytes"


def _token_file() -> None:
    credentials._authorization(Login(token_file=ENDLESS), Printed())


def _authority() -> None:
    credentials._rotating(Login(authorities_file=ENDLESS), Printed())


def _client_certificate() -> None:
    login = Login(certificate_file=ENDLESS, key_file=ENDLESS)
    credentials._rotating(login, Printed())


def _extender() -> None:
    extenders._content(ExtenderTLSConfig(ca_file=ENDLESS).ca_file or "")


def _issuer() -> None:
    config = {"idp-issuer-url": "https://i", "client-id": "c", oidc.AUTHORITY: ENDLESS}
    oidc.provider("oidc", config, "user u")


def _own_token() -> None:
    own_token(argparse.Namespace(token="", token_file=ENDLESS))


def _serving() -> None:
    files = {"tls_cert_file": ENDLESS, "tls_private_key_file": ENDLESS}
    Certificates(ServingOptions(bind_address="127.0.0.1", secure_port=0, **files))


def _client_ca() -> None:
    access._file(ENDLESS)


@pytest.mark.parametrize(
    "reads",
    [
        _token_file,
        _authority,
        _client_certificate,
        _extender,
        _issuer,
        _own_token,
        _serving,
        _client_ca,
    ],
)
def test_a_device_without_an_end_is_named_in_one_line(reads: Callable[[], None]) -> None:
    errors = (OSError, ConnectError, CannotServeError, PageError)
    with pytest.raises(errors, match="larger than 16777216 bytes") as caught:
        reads()
    assert ENDLESS in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_plugin_that_prints_without_an_end_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "plugin"
    script.write_text(f"#!{sys.executable}\nwhile True: print('x' * 65536)\n")
    script.chmod(0o755)
    plugin = ExecPlugin(command=str(script), api_version=exec_plugin.VERSIONS[0])
    with pytest.raises(ConnectError, match="prints more than 1048576 bytes"):
        await exec_plugin.run(plugin, {})
