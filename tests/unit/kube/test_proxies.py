"""Which proxy the environment names, as Go reads it."""

import pytest

from asched.kube.errors import ConnectError
from asched.kube.proxies import checked, environment_proxy


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("exceptions", "server", "is_proxied"),
    [
        ("", "https://10.1.2.3:6443", True),
        ("10.0.0.0/8", "https://10.1.2.3:6443", False),
        ("10.0.0.0/8", "https://11.1.2.3:6443", True),
        ("10.0.0.1/8", "https://10.1.2.3", False),
        ("fd00::/8", "https://[fd00::1]:6443", False),
        ("10.0.0.0/8", "https://[fd00::1]:6443", True),
        ("10.0.0.0/8", "https://api.example", True),
        ("10.1.2.3", "https://10.1.2.3:6443", False),
        ("10.1.2.3:6443", "https://10.1.2.3:6443", False),
        ("10.1.2.3:443", "https://10.1.2.3:6443", True),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", False),
        ("fd00:0::1", "https://[fd00::1]:6443", False),
        ("example", "https://api.example", False),
        ("example", "https://example", False),
        ("ample", "https://api.example", True),
        (".example", "https://api.example", False),
        (".example", "https://example", True),
        ("*.example", "https://api.example", False),
        ("API.Example", "https://api.example.", False),
        ("api.example:443", "https://api.example", False),
        ("api.example:x", "https://api.example", True),
        ("a, *", "https://api.example", False),
        (" a ,, b/c ,api.example ", "https://api.example", False),
    ],
)
def test_exceptions_are_read_as_go_reads_them(monkeypatch, exceptions, server, is_proxied):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    monkeypatch.setenv("NO_PROXY", exceptions)
    assert environment_proxy(server) == ("http://proxy:1" if is_proxied else None)


@pytest.mark.parametrize("server", ["https://localhost", "https://127.9.9.9", "https://[::1]:1"])
def test_this_machine_is_never_proxied(monkeypatch, server):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    assert environment_proxy(server) is None


def test_the_scheme_of_the_server_chooses_and_upper_case_comes_first(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://lower:1")
    monkeypatch.setenv("HTTP_PROXY", "http://plain:1")
    assert environment_proxy("https://a.example") == "http://lower:1"
    assert environment_proxy("http://a.example") == "http://plain:1"
    monkeypatch.setenv("HTTPS_PROXY", "upper:1")
    assert environment_proxy("https://a.example") == "http://upper:1"


@pytest.mark.parametrize(
    "proxy", ["socks5://u:secret@p:1", "ftp://p", "http://", "http://p:port", "http://p:99999"]
)
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(proxy):
    with pytest.raises(ConnectError, match="HTTPS_PROXY names a proxy that cannot") as caught:
        checked(proxy, "HTTPS_PROXY")
    assert "secret" not in str(caught.value)
