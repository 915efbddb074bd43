"""`auth-provider: oidc`: a valid ID token is used, one that ended is renewed at its issuer."""

import asyncio
import json
import logging
import time
from base64 import b64decode, b64encode, urlsafe_b64encode
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from asched.edge.client import oidc
from asched.edge.client.credentials import Credentials, Source, load_credentials
from asched.edge.client.errors import ConnectError


def a_token(ends_in_s: float, name: str = "t") -> str:
    claims = json.dumps({"exp": time.time() + ends_in_s, "sub": name}).encode()
    return f"e30.{urlsafe_b64encode(claims).decode().rstrip('=')}.c2ln"


class AnIssuer:
    """Gives `answer` for refresh tokens; what it was asked with is in `asked`."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.answer: dict[str, str] = {"id_token": a_token(3600, "fresh")}
        self.takes_headers = True
        self.url = ""

    async def discovery(self, _: web.Request) -> web.Response:
        return web.json_response({"token_endpoint": f"{self.url}/token"})

    async def token(self, request: web.Request) -> web.Response:
        form = {key: str(value) for key, value in (await request.post()).items()}
        header = request.headers.get("Authorization", "")
        self.asked.append((header, form))
        if header and not self.takes_headers:
            return web.json_response({"error": "invalid_client"}, status=401)
        if form["refresh_token"] == "worn":
            return web.json_response({"error": "invalid_grant"}, status=400)
        return web.json_response(self.answer)


@pytest.fixture
async def issuer():
    it = AnIssuer()
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", it.discovery)
    app.router.add_post("/token", it.token)
    async with TestServer(app) as server:
        it.url = str(server.make_url("")).rstrip("/")
        yield it


async def loaded(folder: Path, name: str = "oidc", **config: str) -> Credentials:
    user = {
        "auth-provider": {"name": name, "config": {k.replace("_", "-"): config[k] for k in config}}
    }
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "http://a:1"}}],
        "users": [{"name": "u", "user": user}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(document))
    return await load_credentials(Source(str(path)))


async def test_a_valid_id_token_is_used_and_nobody_is_asked(tmp_path):
    token = a_token(3600)
    credentials = await loaded(
        tmp_path, idp_issuer_url="http://127.0.0.1:1", client_id="me", id_token=token
    )
    assert credentials.headers == [("Authorization", f"Bearer {token}")]


@pytest.mark.parametrize("ended", [True, False])
async def test_a_token_that_ended_is_renewed_with_the_refresh_token(tmp_path, issuer, ended):
    credentials = await loaded(
        tmp_path,
        idp_issuer_url=issuer.url + "/",
        client_id="me",
        client_secret="s/ecret",
        id_token=a_token(5) if ended else "",
        refresh_token="r",
    )
    assert credentials.authorization == f"Bearer {issuer.answer['id_token']}"
    ((header, form),) = issuer.asked
    assert b64decode(header.removeprefix("Basic ")) == b"me:s%2Fecret"
    assert form == {"grant_type": "refresh_token", "refresh_token": "r"}

    await credentials.renew()

    assert len(issuer.asked) == 1, "what was given is kept as long as it is valid"


async def test_an_issuer_that_takes_no_header_finds_the_client_in_the_form(tmp_path, issuer):
    issuer.takes_headers = False
    await loaded(tmp_path, idp_issuer_url=issuer.url, client_id="me", refresh_token="r")
    assert issuer.asked[-1][1] == {
        "grant_type": "refresh_token",
        "refresh_token": "r",
        "client_id": "me",
    }


async def test_the_form_holds_the_secret_too_if_there_is_one(tmp_path, issuer):
    issuer.takes_headers = False
    await loaded(
        tmp_path, idp_issuer_url=issuer.url, client_id="me", client_secret="s", refresh_token="r"
    )
    assert [header != "" for header, _ in issuer.asked] == [True, False]
    form = {"grant_type": "refresh_token", "refresh_token": "r"}
    assert [asked for _, asked in issuer.asked] == [
        form,
        {**form, "client_id": "me", "client_secret": "s"},
    ]


@pytest.mark.parametrize("given", ["file", "data", ""])
async def test_an_issuer_is_checked_with_the_authority_that_is_named_for_it(
    tmp_path, certificates, given
):
    it, app, ca = AnIssuer(), web.Application(), certificates.ca_file
    app.router.add_get("/.well-known/openid-configuration", it.discovery)
    app.router.add_post("/token", it.token)
    config = {
        "file": {"idp_certificate_authority": str(ca)},
        "data": {"idp_certificate_authority_data": b64encode(ca.read_bytes()).decode()},
    }.get(given, {})
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificates.server_context())
    await site.start()
    it.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        asked = loaded(tmp_path, idp_issuer_url=it.url, client_id="me", refresh_token="r", **config)
        if given:
            assert (await asked).authorization == f"Bearer {it.answer['id_token']}"
        else:
            with pytest.raises(ConnectError, match=r"cannot be asked: .*certificate"):
                await asked
    finally:
        await runner.cleanup()


async def test_an_issuer_that_does_not_answer_is_given_up(tmp_path, monkeypatch):
    async def never(_):
        await asyncio.Event().wait()

    monkeypatch.setattr(oidc, "ISSUER_S_MAX", 0.05)
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", never)
    async with TestServer(app) as server:
        with pytest.raises(ConnectError, match=r"cannot be asked: TimeoutError$"):
            await loaded(
                tmp_path, idp_issuer_url=str(server.make_url("")), client_id="me", refresh_token="r"
            )


async def test_another_refresh_token_is_taken_next_and_told_of(tmp_path, issuer, caplog):
    issuer.answer = {"id_token": a_token(5), "refresh_token": "r2"}
    with caplog.at_level(logging.WARNING, "asched"):
        credentials = await loaded(
            tmp_path, idp_issuer_url=issuer.url, client_id="me", refresh_token="r"
        )
    assert f": {issuer.url} gave another refresh-token, which is not written" in caplog.text
    await credentials.renew()
    assert [form["refresh_token"] for _, form in issuer.asked] == ["r", "r2"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"client_id": "me"}, "has no idp-issuer-url"),
        ({"idp_issuer_url": "{url}"}, "has no client-id"),
        ({"idp_issuer_url": "{url}", "client_id": "me"}, "no valid id-token, and none can be had"),
        (
            {"idp_issuer_url": "{url}", "client_id": "me", "id_token": "what"},
            "the id-token is no JSON Web Token",
        ),
        (
            {"idp_issuer_url": "{url}", "client_id": "me", "refresh_token": "worn"},
            "answered 400: .*invalid_grant",
        ),
        (
            {"idp_issuer_url": "{url}/other", "client_id": "me", "refresh_token": "r"},
            "answered 404",
        ),
        (
            {"idp_issuer_url": "http://127.0.0.1:1", "client_id": "me", "refresh_token": "r"},
            "cannot be asked",
        ),
        (
            {
                "idp_issuer_url": "{url}",
                "client_id": "me",
                "idp_certificate_authority": "none.pem",
                "refresh_token": "r",
            },
            "none.pem cannot be read",
        ),
    ],
)
async def test_what_cannot_be_used_is_one_line(tmp_path, issuer, config, message):
    with pytest.raises(ConnectError, match=message) as caught:
        await loaded(tmp_path, **{key: text.format(url=issuer.url) for key, text in config.items()})
    assert "\n" not in str(caught.value)


async def test_an_answer_without_an_id_token_says_what_may_be_missing(tmp_path, issuer):
    issuer.answer = {"access_token": "a"}
    with pytest.raises(ConnectError, match='the scope "openid"'):
        await loaded(tmp_path, idp_issuer_url=issuer.url, client_id="me", refresh_token="r")


@pytest.mark.parametrize(
    ("name", "cure"), [("gcp", "gke-gcloud-auth-plugin"), ("azure", "kubelogin"), ("x", "exec")]
)
async def test_other_providers_are_refused_by_name(tmp_path, name, cure):
    with pytest.raises(ConnectError, match=f"'{name}' is not supported; use .*{cure}"):
        await loaded(tmp_path, name)


def test_a_provider_without_a_config_says_what_is_missing():
    with pytest.raises(ConnectError, match=r"^me: auth-provider 'oidc' has no idp-issuer-url"):
        oidc.provider("oidc", None, "me")


async def test_an_authority_that_is_written_down_comes_before_a_file(tmp_path):
    config = {"idp-issuer-url": "https://x", "client-id": "me"}
    both = {"idp-certificate-authority-data": "cGVt", oidc.AUTHORITY: "/nonexistent"}
    assert oidc.provider("oidc", {**config, **both}, "w").issuer.authorities == b"pem"
    with pytest.raises(ConnectError, match=r"^w: auth-provider 'oidc': .*-data is no base64"):
        oidc.provider("oidc", {**config, "idp-certificate-authority-data": "%cGVt"}, "w")


@pytest.mark.parametrize("length", range(4))
async def test_claims_of_any_length_are_read(tmp_path, length):
    token = a_token(3600, "x" * length)
    credentials = await loaded(
        tmp_path, idp_issuer_url="http://127.0.0.1:1", client_id="me", id_token=token
    )
    assert credentials.authorization == f"Bearer {token}"


@pytest.mark.parametrize("given", [{}, {"refresh_token": "r"}, {"refresh_token": ""}])
async def test_a_refresh_token_that_stays_is_taken_again_and_not_told_of(
    tmp_path, issuer, caplog, given
):
    issuer.answer = {"id_token": a_token(5), **given}
    config = {"idp_issuer_url": issuer.url, "client_id": "me", "refresh_token": "r"}
    await (await loaded(tmp_path, **config)).renew()
    assert [form["refresh_token"] for _, form in issuer.asked] == ["r", "r"]
    assert caplog.records == []


async def test_an_issuer_that_names_no_place_for_tokens_is_named(tmp_path):
    async def silent(_: web.Request) -> web.Response:
        return web.json_response({})

    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", silent)
    async with TestServer(app) as server:
        with pytest.raises(ConnectError, match="names no token_endpoint"):
            await loaded(
                tmp_path, idp_issuer_url=str(server.make_url("")), client_id="me", refresh_token="r"
            )


async def test_the_proxy_of_the_environment_leads_to_the_issuer_too(tmp_path, issuer, monkeypatch):
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", issuer.url)
    found = await loaded(
        tmp_path, idp_issuer_url="http://issuer.invalid", client_id="me", refresh_token="r"
    )
    assert found.authorization == f"Bearer {issuer.answer['id_token']}"


@pytest.mark.parametrize("takes_headers", [True, False])
async def test_secrets_do_not_follow_redirects(tmp_path, takes_headers):
    it, asked = AnIssuer(), []

    async def moved(request: web.Request) -> web.Response:
        header = "Authorization" in request.headers
        if header and not takes_headers:
            return web.json_response({}, status=401)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    async def elsewhere(_: web.Request) -> web.Response:
        asked.append("secret")
        return web.json_response(it.answer)

    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", it.discovery)
    app.router.add_post("/token", moved)
    app.router.add_post("/elsewhere", elsewhere)
    async with TestServer(app) as server:
        it.url = str(server.make_url("")).rstrip("/")
        with pytest.raises(ConnectError, match="answered 307"):
            await loaded(tmp_path, idp_issuer_url=it.url, client_id="me", refresh_token="r")
    assert asked == []
