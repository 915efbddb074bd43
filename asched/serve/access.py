"""Authentication and authorization of requests for pages, with API server connections of their own.

Reads the cluster's client CA and the front proxy's rules from the ConfigMap kube-system/
extension-apiserver-authentication, unless flags name files, and reads it again every LOOK_AGAIN_S.
Without a kubeconfig for reviews and outside a cluster, reviews go to the scheduler's API server
with the scheduler's credentials; the cluster's client CA is then not read.

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
from asched.serve.auth import Authenticator, Authorizer, Post, RequestHeaders, ReviewError
from asched.serve.options import AccessOptions, CannotServeError
from asched.serve.telemetry.component_metrics import AccessMetrics
from asched.serve.tls import Certificates

log = logging.getLogger("asched.serve")

CONFIG_MAP: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
LOOK_AGAIN_S: Final = 30.0
REVIEW_S: Final = 10.0
_lists: Final = msgspec.json.Decoder(list[str] | None)


class Access:
    """Authenticator and authorizer with their sessions."""

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
        """Connect and read the files of flags. Raises ConnectError or CannotServeError.

        `own` is the connection of the scheduler itself.
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
            await access._first_read()
        except BaseException:
            await access.close()
            raise
        return access

    async def follow(self, certificates: Certificates) -> None:
        """Follow changes of the cluster's CAs until cancelled."""
        while True:
            await asyncio.sleep(LOOK_AGAIN_S)
            try:
                await self._read_config_map()
                certificates.trust(self.authorities())
            except (ClientError, CannotServeError) as error:
                log.info("The authentication ConfigMap was not read: %s", error, extra={"v": 2})

    def authorities(self) -> str:
        """All CAs of client certificates (PEM)."""
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

    async def _first_read(self) -> None:
        try:
            await self._read_config_map()
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

    async def _read_config_map(self) -> None:
        if self._lookup is None:
            return
        found = await self._lookup.get_as(CONFIG_MAP, ConfigData, timeout_s=REVIEW_S)
        self._adopt(found.data or {})

    def _adopt(self, data: Mapping[str, str]) -> None:
        """Use the ConfigMap for everything that no flag sets. Raises ProtocolBroken; then the
        previous rules for proxies stay.
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
    """Whether this process runs in a pod with credentials."""
    return bool(os.environ.get(IN_CLUSTER_VARIABLE))


def poster(session: Session) -> Post:
    """Send reviews over a session."""
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
    """A JSON list of the ConfigMap. Raises ProtocolBroken: an empty list would allow any name."""
    try:
        return tuple(parse(_lists.decode, data.get(key) or "[]") or ())
    except MalformedError as error:
        raise ProtocolBroken(f"its {key} is not a list of strings: {error}") from error


def _lower(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.lower() for word in words)
