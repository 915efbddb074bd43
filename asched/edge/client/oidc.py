"""The `auth-provider: oidc` of a kubeconfig's user: an ID token, renewed at its issuer.

A token that is still valid is used as it stands; EXPIRY_DELTA before its end the refresh token is
taken to the issuer's token endpoint. What the issuer gives stays in this process: kubeconfigs are
never written. An issuer that takes a refresh token only once leaves the file with one that is
worth nothing after the next start; that is said in the log when it happens.

Other providers are refused by name, as client-go refuses those that it has dropped.

Source  k8s.io/client-go v0.36 plugin/pkg/client/auth/oidc, golang.org/x/oauth2 (token requests);
        OpenID Connect Discovery 1.0
"""

import logging
from base64 import b64decode, b64encode, urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from urllib.parse import quote_plus

import msgspec

from asched.core.model.decode import MalformedError, parse
from asched.edge.certificates import client_context
from asched.edge.client.errors import ConnectError
from asched.edge.client.exec_plugin import Printed
from asched.edge.files import file_content

log = logging.getLogger(__name__)
T = TypeVar("T")

#: How long before its end a token counts as expired.
EXPIRY_DELTA: Final = timedelta(seconds=10)
#: For both questions to the issuer together.
ISSUER_S_MAX: Final = 30.0
#: So much of an answer is read, and shown.
_READ, _SHOWN = 1 << 20, 200
NAME: Final = "oidc"
#: The file that the issuer's certificate is checked with.
AUTHORITY: Final = "idp-certificate-authority"
#: Providers that client-go has dropped, and what came after them.
DROPPED: Final = {
    "gcp": "use gke-gcloud-auth-plugin as exec plugin",
    "azure": "use kubelogin as exec plugin",
    "openstack": "use client-keystone-auth as exec plugin",
}


class Issuer(msgspec.Struct, frozen=True):
    """Where tokens come from, and who asks for them. `authorities` PEM; empty: the system's."""

    url: str
    client_id: str
    client_secret: str = ""
    authorities: bytes = b""


class Provider(msgspec.Struct, frozen=True):
    """As it stands in a kubeconfig."""

    issuer: Issuer
    id_token: str = ""
    refresh_token: str = ""
    #: whose it is, for messages
    who: str = ""


class _Claims(msgspec.Struct):
    exp: float = 0.0


_claims: Final = msgspec.json.Decoder(_Claims)


class _Discovery(msgspec.Struct):
    token_endpoint: str = ""


class _Tokens(msgspec.Struct):
    id_token: str = ""
    refresh_token: str = ""


def provider(name: str, written: Mapping[str, Any] | None, who: str) -> Provider:
    """What a kubeconfig says of it. Raises ConnectError for what cannot be used."""
    if name != NAME:
        cure = DROPPED.get(name, "use an exec plugin, a token file or a client certificate")
        raise ConnectError(f"{who}: auth-provider {name!r} is not supported; {cure}")
    config = {key: str(value) for key, value in (written or {}).items() if value is not None}
    for needed in ("idp-issuer-url", "client-id"):
        if not config.get(needed):
            raise ConnectError(f"{who}: auth-provider 'oidc' has no {needed}; add it to its config")
    try:
        authorities = b64decode(config.get("idp-certificate-authority-data", ""), validate=True)
    except (Base64Error, ValueError) as error:
        text = f"{who}: auth-provider 'oidc': idp-certificate-authority-data is no base64: {error}"
        raise ConnectError(text) from error
    file = config.get(AUTHORITY, "")
    if file and not authorities:
        try:
            authorities = file_content(file)
        except OSError as error:
            text = f"{who}: auth-provider 'oidc': {file} cannot be read: {error.strerror}"
            raise ConnectError(text) from error
    issuer = Issuer(
        config["idp-issuer-url"], config["client-id"], config.get("client-secret", ""), authorities
    )
    return Provider(issuer, config.get("id-token", ""), config.get("refresh-token", ""), who)


class Renewals:
    """The tokens that issuers have given to this process."""

    def __init__(self) -> None:
        self._given: dict[tuple[Issuer, str], _Tokens] = {}

    async def token(self, written: Provider) -> Printed:
        """A valid ID token, until when. Raises ConnectError."""
        at = written.issuer, written.refresh_token
        given = self._given.get(at, _Tokens(written.id_token, written.refresh_token))
        expires = _expiry(given.id_token, written.who) if given.id_token else None
        if expires is not None and datetime.now(UTC) + EXPIRY_DELTA < expires:
            return Printed(given.id_token, expires=expires)
        if not given.refresh_token:
            raise ConnectError(
                f"{written.who}: no valid id-token, and none can be had without a refresh-token; "
                "log in again"
            )
        fresh = await _refresh(written.issuer, given.refresh_token, written.who)
        if fresh.refresh_token and fresh.refresh_token != given.refresh_token:
            log.warning(
                "%s: %s gave another refresh-token, which is not written to the kubeconfig; if it "
                "takes each of them only once, log in again before the next start",
                written.who,
                written.issuer.url,
            )
        kept = _Tokens(fresh.id_token, fresh.refresh_token or given.refresh_token)
        self._given = {at: kept}
        return Printed(kept.id_token, expires=_expiry(kept.id_token, written.who))


def _expiry(token: str, who: str) -> datetime:
    """When an ID token ends. Its signature is the API server's affair. Raises ConnectError."""
    try:
        _, claims, _ = token.split(".")
        payload = urlsafe_b64decode(claims + "=" * (-len(claims) % 4))
        return datetime.fromtimestamp(parse(_claims.decode, payload).exp, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise ConnectError(f"{who}: the id-token is no JSON Web Token: {error}") from error


async def _refresh(issuer: Issuer, refresh_token: str, who: str) -> _Tokens:
    import aiohttp

    name = f"{who}: issuer {issuer.url}"
    try:
        # Without authorities of its own the system's are meant, where CERT_FILE is not.
        tls = client_context(authorities=issuer.authorities) if issuer.authorities else True
        timeout = aiohttp.ClientTimeout(total=ISSUER_S_MAX)
        async with aiohttp.ClientSession(trust_env=True, timeout=timeout) as session:
            where = issuer.url.rstrip("/") + "/.well-known/openid-configuration"
            async with session.get(where, ssl=tls) as answer:
                discovery = await _read(answer, name, _Discovery)
            if not discovery.token_endpoint:
                raise ConnectError(f"{name} names no token_endpoint in its discovery document")
            fresh = await _ask(session, tls, issuer, refresh_token, discovery.token_endpoint, name)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        told = " ".join(str(error).split()) or type(error).__name__
        raise ConnectError(f"{name} cannot be asked: {told}") from error
    if not fresh.id_token:
        raise ConnectError(
            f'{name} answered without an id_token: was the scope "openid" asked for at the login, '
            "and does it give ID tokens for refresh tokens?"
        )
    return fresh


async def _ask(
    session: Any, tls: Any, issuer: Issuer, refresh_token: str, endpoint: str, name: str
) -> _Tokens:
    """The secret goes into a header; where that is refused, into the form."""
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    pair = f"{quote_plus(issuer.client_id)}:{quote_plus(issuer.client_secret)}"
    header = {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    # Secrets do not follow redirects.
    async with session.post(
        endpoint, data=form, headers=header, ssl=tls, allow_redirects=False
    ) as answer:
        if answer.ok:
            return await _read(answer, name, _Tokens)
    form["client_id"] = issuer.client_id
    if issuer.client_secret:
        form["client_secret"] = issuer.client_secret
    async with session.post(endpoint, data=form, ssl=tls, allow_redirects=False) as answer:
        return await _read(answer, name, _Tokens)


async def _read(answer: Any, name: str, what: type[T]) -> T:
    body = await answer.content.read(_READ)
    if answer.status != 200:
        said = " ".join(body[:_SHOWN].decode("utf-8", "replace").split())
        raise ConnectError(f"{name} answered {answer.status}: {said or 'nothing'}")
    try:
        return parse(msgspec.json.Decoder(what).decode, body)
    except MalformedError as error:
        raise ConnectError(f"{name} answered what cannot be read: {error}") from error
