"""Where credentials come from, how they stay fresh, and what is said when they cannot be used."""

import asyncio
import stat
import sys

import pytest

from asched.kube import certificates as edge_certificates
from asched.kube import credentials
from asched.kube.credentials import load_credentials
from asched.kube.errors import ConnectError
from asched.kube.session import ConnectionOptions, connect
from tests.unit.kube.kubeconfigs import kubeconfig
from tests.unit.kube.scripted import always_ok, reply, scripted, status


@pytest.fixture
def clock(monkeypatch):
    """The clock of the credentials, moved by hand."""

    class Clock:
        now_s = 1000.0

        def __call__(self):
            return self.now_s

    made = Clock()
    monkeypatch.setattr(credentials, "monotonic", made)
    monkeypatch.setattr(edge_certificates, "monotonic", made)
    return made


async def test_a_token_of_the_kubeconfig_is_sent_by_both_transports(server, tmp_path):
    path = kubeconfig(tmp_path / "config", server.url, {"token": "secret"})
    session = await connect(ConnectionOptions(kubeconfig=path))
    await session.pool(1).request("GET", "/")
    await session.close()
    assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer secret"] * 2


@pytest.mark.parametrize("code", [301, 302, 307, 308])
async def test_a_token_goes_nowhere_a_redirect_points(server, tmp_path, code):
    """Whoever could answer for the server once would have it."""
    async with scripted(always_ok) as elsewhere:

        async def moved(_seen, _wire):
            return reply(code, {}, f"Location: {elsewhere.url}/api/v1/pods")

        server.handler = moved
        path = kubeconfig(tmp_path / "config", server.url, {"token": "secret"})
        session = await connect(ConnectionOptions(kubeconfig=path), handshake=False)
        for transport in (session.general, session.pool(1)):
            answer = await transport.request("GET", "/api/v1/pods")
            assert answer.status == code
        await session.close()
        assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer secret"] * 2
        assert elsewhere.connection_count == 0


async def test_the_master_address_overrides_the_server(server, tmp_path):
    path = kubeconfig(tmp_path / "config", "http://127.0.0.1:1", {"token": "t"})
    found = await load_credentials(kubeconfig=path, master=server.url)
    assert (found.url, found.authorization) == (server.url, "Bearer t")


async def test_a_token_file_is_read_again(tmp_path, clock):
    token = tmp_path / "token"
    token.write_text("old\n")
    path = kubeconfig(tmp_path / "config", "http://a:1", {"tokenFile": "token"})
    found = await load_credentials(path)
    assert found.authorization == "Bearer old"
    token.write_text("new\n")
    found.keep_fresh()
    assert found.authorization == "Bearer old"
    clock.now_s += credentials.TOKEN_CHECK_S
    found.keep_fresh()
    assert found.authorization == "Bearer new"


async def test_a_token_file_that_vanishes_leaves_the_old_token(tmp_path, clock, caplog):
    token = tmp_path / "token"
    token.write_text("old")
    found = await load_credentials(
        kubeconfig(tmp_path / "config", "http://a:1", {"tokenFile": str(token)})
    )
    token.unlink()
    clock.now_s += credentials.TOKEN_CHECK_S
    found.keep_fresh()
    assert found.authorization == "Bearer old"
    assert "credentials could not be renewed" in caplog.text


def exec_plugin(folder, expiry=""):
    """A plugin whose n-th run answers token-n."""
    script = folder / "plugin"
    script.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib\n"
        f"count = pathlib.Path({str(folder / 'count')!r})\n"
        "n = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(n))\n"
        "status = {'token': f'token-{n}'}\n"
        f"expiry = {expiry!r}\n"
        "status.update({'expirationTimestamp': expiry} if expiry else {})\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1beta1',"
        " 'kind': 'ExecCredential', 'status': status}))\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": str(script)}}


async def test_a_refused_token_is_loaded_anew_once_for_all_who_wait(server, tmp_path):
    async def wants_second(seen, _wire):
        good = seen.headers["authorization"] == "Bearer token-2"
        return reply(200 if good else 401, status(401, "Unauthorized", "Unauthorized"))

    server.handler = wants_second
    path = kubeconfig(tmp_path / "config", server.url, exec_plugin(tmp_path))
    session = await connect(ConnectionOptions(kubeconfig=path), handshake=False)
    pool = session.pool(4)
    answers = await asyncio.gather(*(pool.request("POST", "/", b"{}") for _ in range(4)))
    assert [answer.status for answer in answers] == [200] * 4
    assert (await session.general.request("GET", "/")).status == 200
    assert (tmp_path / "count").read_text() == "2"
    await session.close()


async def test_a_token_that_stays_refused_is_not_loaded_in_a_loop(server, tmp_path):
    async def never(_seen, _wire):
        return reply(401, status(401, "Unauthorized", "Unauthorized"))

    server.handler = never
    path = kubeconfig(tmp_path / "config", server.url, exec_plugin(tmp_path))
    session = await connect(ConnectionOptions(kubeconfig=path), handshake=False)
    for _ in range(5):
        assert (await session.general.request("GET", "/")).status == 401
    async with session.general.stream("/w", timeout_s=5) as stream:
        assert stream.status == 401
    await session.close()
    assert (tmp_path / "count").read_text() == "2"


def tls_cluster(certificates, **more):
    return {"certificate-authority": str(certificates.ca_file), **more}


async def test_tls_is_verified_against_the_ca_of_the_kubeconfig(tmp_path, certificates):
    async def ok(_seen, _wire):
        return reply(200, b"{}")

    async with scripted(ok, certificates.server_context()) as server:
        path = kubeconfig(tmp_path / "c", server.url, cluster=tls_cluster(certificates))
        session = await connect(ConnectionOptions(kubeconfig=path))
        assert (await session.pool(1).request("GET", "/")).status == 200
        await session.close()
        path = kubeconfig(tmp_path / "c", server.url)
        with pytest.raises(ConnectError, match="certificate is not trusted"):
            await connect(ConnectionOptions(kubeconfig=path))
        path = kubeconfig(tmp_path / "c", server.url, cluster={"insecure-skip-tls-verify": True})
        session = await connect(ConnectionOptions(kubeconfig=path))
        assert (await session.pool(1).request("GET", "/")).status == 200
        await session.close()


async def test_the_tls_server_name_replaces_the_address(tmp_path, certificates):
    async def ok(_seen, _wire):
        return reply(200, b"{}")

    async with scripted(ok, certificates.server_context()) as server:
        for name, good in (("api.example", True), ("other.example", False)):
            cluster = tls_cluster(certificates, **{"tls-server-name": name})
            path = kubeconfig(tmp_path / "c", server.url, cluster=cluster)
            session = await connect(ConnectionOptions(kubeconfig=path), handshake=False)
            for transport in (session.general, session.pool(1)):
                if good:
                    assert (await transport.request("GET", "/")).status == 200
                else:
                    with pytest.raises(Exception, match="not trusted"):
                        await transport.request("GET", "/")
            await session.close()


ONE = "current-context: c\ncontexts: [{name: c, context: {cluster: k"
USER = (
    "current-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
    "clusters: [{{name: k, cluster: {{server: 'http://a:1'}}}}]\nusers: [{{name: u, user: {}}}]"
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no contexts"),
        ("[1, 2", "cannot be read"),
        ("hello", "cannot be read: Expected `object`"),
        (
            "users: [{name: u, user: {token: 7}}]",
            r"Expected `str`, got `int`.*users\[0\].user.token",
        ),
        ('{"current-context": "x"}', "has no context 'x'"),
        ("contexts: [{name: c, context: {}}]", "has no current-context"),
        ("current-context: c\ncontexts: [{name: c, context: {cluster: k}}]", "cluster 'k': none"),
        (f"{ONE}}}}}]\nclusters: [{{name: k, cluster: {{}}}}]", "'k' names no `server`"),
        ("users: [{name: u}, {name: u}]", "two users have one name"),
        (
            USER.format("{auth-provider: {name: oidc, config: {client-id: c, id-token: t}}}"),
            r"user 'u': auth-provider 'oidc' is not supported; use kubelogin .* as exec plugin",
        ),
        (USER.format("{auth-provider: {name: gcp}}"), "use gke-gcloud-auth-plugin as exec plugin"),
        (USER.format("{auth-provider: {name: x}}"), "use an exec plugin, a token file or a client"),
        (USER.format("{token: t, username: u}"), "a token and a password"),
        (USER.format("{client-key-data: '%'}"), "client-key-data is not base64"),
        (USER.format("{as-groups: [g]}"), "impersonates groups"),
        (USER.format("{exec: {command: c, apiVersion: v1}}"), "apiVersion 'v1' is not supported"),
        (
            USER.format(
                "{exec: {command: c, apiVersion: client.authentication.k8s.io/v1,"
                " interactiveMode: Always}}"
            ),
            "needs a terminal",
        ),
    ],
)
async def test_a_broken_kubeconfig_is_one_line(tmp_path, content, message):
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ConnectError, match=message) as caught:
        await load_credentials(str(path))
    assert "\n" not in str(caught.value)


async def test_a_missing_kubeconfig_is_named():
    with pytest.raises(ConnectError, match=r"kubeconfig /nonexistent/k: no such file"):
        await load_credentials("/nonexistent/k")


async def test_no_configuration_at_all_is_said():
    with pytest.raises(ConnectError, match="no configuration has been provided"):
        await load_credentials()


ODD_HOSTS = ["https://[::1", "https://\ud800", "https://xn--é", "https://..", f"https://{'a' * 70}"]


@pytest.mark.parametrize(
    "master", ["example.com:6443", "ftp://x", "https://", "http://a:port", *ODD_HOSTS]
)
async def test_an_address_without_scheme_or_host_is_refused(master):
    with pytest.raises(ConnectError, match="server address"):
        await load_credentials(master=master)


async def test_a_missing_certificate_file_is_named(tmp_path, certificates):
    user = {"client-certificate": "/nonexistent/c", "client-key": "/nonexistent/k"}
    path = kubeconfig(tmp_path / "config", "https://a:1", user, tls_cluster(certificates))
    with pytest.raises(ConnectError, match="/nonexistent/c"):
        await load_credentials(path)


async def test_an_exec_plugin_that_fails_is_one_line(tmp_path):
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/nonexistent/p"}}
    path = kubeconfig(tmp_path / "config", "http://a:1", user)
    with pytest.raises(ConnectError, match=r"/nonexistent/p|exec plugin") as caught:
        await load_credentials(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("master", "proxy"),
    [
        ("https://api.example:6443", "http://proxy:1"),
        ("http://api.example", None),
        ("https://inside.corp", None),
        ("https://127.0.0.1:6443", None),
        ("https://localhost:6443", None),
        ("https://[::1]:6443", None),
    ],
)
async def test_the_proxy_of_the_environment_is_honoured(monkeypatch, master, proxy):
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    monkeypatch.setenv("NO_PROXY", ".corp")
    assert (await load_credentials(master=master)).proxy == proxy


async def test_the_proxy_of_the_kubeconfig_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://other:1")
    cluster = {"proxy-url": "http://proxy:2"}
    path = kubeconfig(tmp_path / "config", "https://a.example", cluster=cluster)
    assert (await load_credentials(path)).proxy == "http://proxy:2"
