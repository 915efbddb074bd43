"""Who may see our pages: the API server is asked, over connections of their own.

Reads the cluster's client CA and the front proxy's rules from the ConfigMap kube-system/
extension-apiserver-authentication, unless flags name files, and looks again every LOOK_AGAIN_S.
Without a kubeconfig for it and outside a cluster the server that is scheduled for is asked, as the
scheduler itself; its authorities of client certificates are then not looked up.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/apiserver pkg/server/options
        (authentication.go, authorization.go)
"""

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import orjson
from msgspec.structs import replace

from asched.core.model.decode import MalformedError, parse
from asched.kube.credentials import IN_CLUSTER_VARIABLE
from asched.kube.errors import (
    ApiError,
    ClientError,
    ConnectError,
    ProtocolBroken,
    TransportError,
)
from asched.kube.files import file_text
from asched.kube.parsing import read
from asched.kube.session import ConfigData, ConnectionOptions, Session, connect
from asched.serve.auth import Authenticator, Authorizer, Post, ReviewError
from asched.serve.identity import RequestHeaders
from asched.serve.options import AccessOptions, CannotServeError
from asched.serve.telemetry.component_metrics import AccessMetrics
from asched.serve.tls import Certificates

log = logging.getLogger("asched.serve")

CONFIG_MAP: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
LOOK_AGAIN_S: Final = 30.0
REVIEW_S: Final = 10.0
_lists: Final = msgspec.json.Decoder(list[str] | None)


class Access:
    """Both judges, with the sessions they ask through."""

    def __init__(self, options: AccessOptions, own: ConnectionOptions) -> None:
        self._options = options
        self._own = own
        self._sessions: list[Session] = []
        self._lookup: Session | None = None
        self.authenticator: Authenticator
        self.authorizer: Authorizer

    @classmethod
    async def open(
        cls, options: AccessOptions, metrics: AccessMetrics, own: ConnectionOptions
    ) -> "Access":
        """Connect and read what flags name. Raises ConnectError or CannotServeError.

        `own` is how the scheduler itself reaches its server.
        """
        access = cls(options, own)
        named = options.authentication.authentication_kubeconfig
        try:
            asking = await access._session(named)
            deciding = await access._session(options.authorization.authorization_kubeconfig)
            access.authenticator = Authenticator(options, poster(asking), metrics)
            access.authorizer = Authorizer(options, poster(deciding), metrics)
            if (named or in_cluster()) and not options.authentication.authentication_skip_lookup:
                access._lookup = asking
            access._adopt({})
            await access._first_look()
        except BaseException:
            await access.close()
            raise
        return access

    async def follow(self, certificates: Certificates) -> None:
        """Keep up with the cluster's authorities until cancelled."""
        while True:
            await asyncio.sleep(LOOK_AGAIN_S)
            try:
                await self._look()
                certificates.trust(self.authorities())
            except (ClientError, CannotServeError) as error:
                log.info("The authentication ConfigMap was not read: %s", error, extra={"v": 2})

    def authorities(self) -> str:
        """All authorities of client certificates (PEM)."""
        return self.authenticator.client_authorities + self.authenticator.proxy.authorities

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()

    # --- inside ----------------------------------------------------------------------------------

    async def _session(self, kubeconfig: str) -> Session:
        options = ConnectionOptions(kubeconfig=kubeconfig)
        if not kubeconfig and not in_cluster():
            options = replace(self._own, qps=0.0, burst=0)
        session = await connect(options, handshake=False)
        self._sessions.append(session)
        return session

    async def _first_look(self) -> None:
        try:
            await self._look()
        except ClientError as error:
            if not self._options.authentication.authentication_tolerate_lookup_failure:
                raise ConnectError(
                    f"the authentication ConfigMap cannot be read: {error}; grant its role"
                    " extension-apiserver-authentication-reader, or set"
                    " --authentication-tolerate-lookup-failure"
                ) from error
            log.warning(
                "Unable to get configmap/extension-apiserver-authentication in kube-system."
                " Client certificates are not trusted until it can be read: %s",
                error,
            )

    async def _look(self) -> None:
        if self._lookup is None:
            return
        found = await self._lookup.get_as(CONFIG_MAP, ConfigData, timeout_s=REVIEW_S)
        self._adopt(found.data or {})

    def _adopt(self, data: Mapping[str, str]) -> None:
        """Take the ConfigMap's word for whatever no flag says. Raises ProtocolBroken; what it has
        said of proxies before stands then.
        """
        options = self._options.authentication
        client_ca = _file(options.client_ca_file)
        self.authenticator.client_authorities = client_ca or data.get("client-ca-file", "")
        proxy_ca = _file(options.requestheader_client_ca_file)
        if proxy_ca:
            self.authenticator.proxy = RequestHeaders(
                proxy_ca,
                options.requestheader_allowed_names,
                _lower(options.requestheader_username_headers),
                _lower(options.requestheader_group_headers),
                _lower(options.requestheader_uid_headers),
                _lower(options.requestheader_extra_headers_prefix),
            )
        elif data.get("requestheader-client-ca-file"):
            self.authenticator.proxy = RequestHeaders(
                data["requestheader-client-ca-file"],
                _words(data, "requestheader-allowed-names"),
                _lower(_words(data, "requestheader-username-headers")),
                _lower(_words(data, "requestheader-group-headers")),
                _lower(_words(data, "requestheader-uid-headers")),
                _lower(_words(data, "requestheader-extra-headers-prefix")),
            )


def in_cluster() -> bool:
    """Whether this process is a pod that has credentials."""
    return bool(os.environ.get(IN_CLUSTER_VARIABLE))


def poster(session: Session) -> Post:
    """Reviews over a session."""
    transport = session.general

    async def post(path: str, review: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        try:
            reply = await transport.request(
                "POST", f"{path}?timeout={REVIEW_S:.0f}s", orjson.dumps(review), timeout_s=REVIEW_S
            )
            answer = read(orjson.loads, reply.body) if reply.body else {}
        except (ApiError, TransportError, MalformedError) as error:
            raise ReviewError(str(error)) from error
        return reply.status, answer if isinstance(answer, dict) else {}

    return post


def _file(path: str) -> str:
    if not path:
        return ""
    try:
        return file_text(path)
    except OSError as error:
        raise CannotServeError(f"cannot read the CA file {path}: {error.strerror}") from error


def _words(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    """A list that the ConfigMap holds as JSON. Raises ProtocolBroken: none would mean any name."""
    try:
        return tuple(parse(_lists.decode, data.get(key) or "[]") or ())
    except MalformedError as error:
        raise ProtocolBroken(f"its {key} is no list of words: {error}") from error


def _lower(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.lower() for word in words)
