"""Kubeconfigs: several read as one, whom we pretend to be, and what may not be written anywhere."""

import json
import os
from pathlib import Path

import pytest

from asched.kube.credentials import load_credentials
from asched.kube.errors import ConnectError
from asched.kube.kubeconfig import read_kubeconfigs
from asched.kube.session import ConnectionOptions, connect
from tests.unit.kube.kubeconfigs import kubeconfig
from tests.unit.kube.scripted import reply


def write(path, **document):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def a_context(name, cluster, user):
    return {"name": name, "context": {"cluster": cluster, "user": user}}


@pytest.fixture
def three(tmp_path):
    """Files that were shown to `kubectl config view`: the tests say what it said."""
    first = write(
        tmp_path / "one" / "config",
        **{"current-context": "c1"},
        contexts=[a_context("c1", "k", "u")],
        users=[{"name": "u", "user": {"tokenFile": "token"}}],
    )
    second = write(
        tmp_path / "two" / "config",
        **{"current-context": "c2"},
        clusters=[{"name": "k", "cluster": {"server": "http://second:1"}}],
        contexts=[a_context("c1", "other", "other"), a_context("c2", "k", "u2")],
        users=[
            {"name": "u", "user": {"token": "loses"}},
            {"name": "u2", "user": {"token": "second"}},
        ],
    )
    empty = tmp_path / "empty"
    empty.write_text("")
    (tmp_path / "one" / "token").write_text("of-the-file\n")
    return [str(path) for path in (empty, tmp_path / "absent", first, second)]


async def test_the_first_file_wins_and_empty_or_missing_ones_add_nothing(three, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(three))
    found = await load_credentials()
    assert (found.url, found.authorization) == ("http://second:1", "Bearer of-the-file")
    found = await load_credentials(context="c2")
    assert found.authorization == "Bearer second"


async def test_relative_paths_start_at_their_file(tmp_path, monkeypatch, certificates):
    folder = tmp_path / "there"
    folder.mkdir()
    (folder / "ca.crt").write_bytes(certificates.ca_file.read_bytes())
    cluster = {"certificate-authority": "ca.crt"}
    kubeconfig(folder / "config", "https://a:1", cluster=cluster)
    monkeypatch.chdir(tmp_path)
    assert (await load_credentials("there/config")).is_tls


async def test_a_user_that_does_not_exist_is_nobody(tmp_path, caplog):
    path = kubeconfig(tmp_path / "config", "http://a:1", users=[])
    assert (await load_credentials(path)).authorization is None
    assert "has no user 'u': requests are unauthenticated" in caplog.text


async def test_a_token_stands_in_for_a_file_that_cannot_be_read(tmp_path):
    user = {"token": "t", "tokenFile": "file"}
    path = kubeconfig(tmp_path / "config", "http://a:1", user)
    assert (await load_credentials(path)).authorization == "Bearer t"
    (tmp_path / "file").write_text("newer")
    assert (await load_credentials(path)).authorization == "Bearer newer"


AS = {
    "token": "t",
    "as": "system:serviceaccount:a:b",
    "as-uid": "7",
    "as-groups": ["g1", "g2"],
    "as-user-extra": {"Reason/x": ["one", "two"]},
}


async def test_impersonation_is_sent_by_both_transports(server, tmp_path):
    heads = []

    async def keep(seen, _wire):
        heads.append(seen)
        return reply(200, b"{}")

    server.handler = keep
    path = kubeconfig(tmp_path / "config", server.url, AS)
    session = await connect(ConnectionOptions(kubeconfig=path), handshake=False)
    for transport in (session.general, session.pool(1)):
        await transport.request("POST", "/", b"{}")
    async with session.general.stream("/w", timeout_s=5) as stream:
        await stream.read_all()
    assert session.credentials.headers == [
        ("Authorization", "Bearer t"),
        ("Impersonate-User", "system:serviceaccount:a:b"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "g1"),
        ("Impersonate-Group", "g2"),
        ("Impersonate-Extra-Reason%2Fx", "one"),
        ("Impersonate-Extra-Reason%2Fx", "two"),
    ]
    await session.close()
    assert len(heads) == 3
    for seen in heads:
        assert seen.headers["impersonate-user"] == "system:serviceaccount:a:b"
        assert seen.headers["impersonate-uid"] == "7"
        assert seen.headers["impersonate-group"] == "g2"  # of two the last is kept by this server
        assert seen.headers["impersonate-extra-reason%2fx"] == "two"


@pytest.mark.parametrize("name", ["a\r\nX: y", "a\n", "\0"])
async def test_a_name_cannot_smuggle_a_header(tmp_path, name):
    path = kubeconfig(tmp_path / "config", "http://a:1", {"as": name})
    with pytest.raises(ConnectError, match="unprintable"):
        await load_credentials(path)


async def test_a_token_cannot_smuggle_a_header(tmp_path):
    path = kubeconfig(tmp_path / "config", "http://a:1", {"token": "a\r\nX: y"})
    with pytest.raises(ConnectError, match="unprintable"):
        await load_credentials(path)


async def test_an_authority_beside_blind_trust_is_refused_as_kubectl_refuses_it(tmp_path):
    cluster = {"certificate-authority": "/ca", "insecure-skip-tls-verify": True}
    path = kubeconfig(tmp_path / "config", "https://a:1", cluster=cluster)
    with pytest.raises(ConnectError, match="exclude each other"):
        await load_credentials(path)


async def test_an_empty_authority_is_not_taken_for_none(tmp_path):
    (tmp_path / "ca").write_text("")
    cluster = {"certificate-authority": str(tmp_path / "ca")}
    path = kubeconfig(tmp_path / "config", "https://a:1", cluster=cluster)
    with pytest.raises(ConnectError, match="ca is empty"):
        await load_credentials(path)


async def test_a_proxy_of_another_kind_is_refused(tmp_path):
    path = kubeconfig(tmp_path / "c", "https://a:1", cluster={"proxy-url": "socks5://p:1080"})
    with pytest.raises(ConnectError, match=r"proxy-url names a proxy that cannot .*socks5"):
        await load_credentials(path)


def test_what_has_no_end_is_refused_in_one_line(tmp_path):
    """Aliases multiply, and may hold themselves; a device has no last byte."""
    many = "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9))
    for text in (f"a0: &a0 [x]\n{many}", "clusters: &c\n- *c", "[" * 20_000 + "]" * 20_000):
        (tmp_path / "k").write_text(text)
        with pytest.raises(ConnectError, match=r"^kubeconfig .* cannot be read: .*$"):
            read_kubeconfigs([tmp_path / "k"])
    with pytest.raises(ConnectError, match="larger than"):
        read_kubeconfigs([Path("/dev/zero")])


async def test_a_device_without_an_end_is_no_kubeconfig():
    with pytest.raises(ConnectError, match=r"/dev/zero.*larger than"):
        await load_credentials(kubeconfig="/dev/zero")


def test_files_are_named_from_where_the_kubeconfig_lies(tmp_path, monkeypatch):
    folder = tmp_path / "its"
    folder.mkdir()
    user = {"client-certificate": "crt", "client-key": "./key", "tokenFile": str(tmp_path / "t")}
    path = kubeconfig(folder / "config", "https://a", user, {"certificate-authority": "../ca"})
    monkeypatch.chdir(tmp_path)
    login = read_kubeconfigs([Path(path)], "")
    named = login.certificate_file, login.key_file, login.authorities_file, login.token_file
    assert [Path(name).resolve() for name in named] == [
        folder / "crt",
        folder / "key",
        tmp_path / "ca",
        tmp_path / "t",
    ]
