"""A file that somebody names may have no end, and what does not end is told in one line."""

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from asched.core.config.v1 import Extender, ExtenderTLSConfig
from asched.host.configuration.file import UnreadableFileError, read_text
from asched.kube import credentials, exec_plugins, extenders
from asched.kube.errors import ConnectError
from asched.kube.exec_plugins import ExecPlugin, Printed
from asched.kube.files import file_content, file_text
from asched.kube.kubeconfig import Login, read_kubeconfigs
from asched.serve.options import CannotServeError, ServingOptions
from asched.serve.tls import Certificates

ENDLESS = "/dev/zero"


def test_a_file_is_read_up_to_the_bound(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345678")
    assert file_content(file, 8) == b"12345678"
    assert file_text(file) == "12345678"
    with pytest.raises(OSError, match="larger than 7 bytes") as caught:
        file_content(file, 7)
    assert caught.value.strerror == "larger than 7 bytes"


def _token_file(file: str) -> None:
    credentials._authorization(Login(token_file=file), Printed())


def _authority(file: str) -> None:
    credentials._rotating(Login(authorities_file=file), Printed())


def _client_certificate(file: str) -> None:
    login = Login(certificate_file=file, key_file=file)
    credentials._rotating(login, Printed())


def _extender(file: str) -> None:
    tls = ExtenderTLSConfig(ca_file=file)
    extenders.Extenders.check([Extender(url_prefix="https://x", tls_config=tls)])


def _serving(file: str) -> None:
    files = {"tls_cert_file": file, "tls_private_key_file": file}
    Certificates(ServingOptions(bind_address="127.0.0.1", secure_port=0, **files))


def _kubeconfig(file: str) -> None:
    read_kubeconfigs([Path(file)])


def _configuration(file: str) -> None:
    read_text(file)


READERS = [
    _token_file,
    _authority,
    _client_certificate,
    _extender,
    _serving,
    _kubeconfig,
    _configuration,
]
ERRORS = (OSError, ConnectError, CannotServeError, UnreadableFileError)


@pytest.mark.parametrize("reads", READERS)
def test_a_device_without_an_end_is_named_in_one_line(reads: Callable[[str], None]) -> None:
    with pytest.raises(ERRORS, match=r"larger than \d+ bytes") as caught:
        reads(ENDLESS)
    assert ENDLESS in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pipe_is_read_to_the_end_of_whoever_writes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb", buffering=0) as stream:
            for _ in range(3):
                stream.write(b"x" * 100_000)  # more than a pipe holds: the reader has come
            stream.write(b"end")

    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(write)
        data = file_content(pipe)
        written.result()
    assert data == b"x" * 300_000 + b"end"


async def test_a_plugin_that_prints_without_an_end_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "plugin"
    script.write_text(f"#!{sys.executable}\nwhile True: print('x' * 65536)\n")
    script.chmod(0o755)
    plugin = ExecPlugin(command=str(script), api_version=exec_plugins.VERSIONS[0])
    with pytest.raises(ConnectError, match="prints more than 1048576 bytes"):
        await exec_plugins.run_plugin(plugin, {})
