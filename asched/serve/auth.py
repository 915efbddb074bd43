"""Identify the user of a request; authentication and authorization are delegated to the API server.

    request headers of a trusted proxy, else client certificate, else bearer token (TokenReview),
    else anonymous; an unknown token is 401 on every path
    system:masters and always-allowed paths pass, everything else is a SubjectAccessReview

Certificates are verified here and not only by TLS, because one of two CAs may have signed the
certificate of a connection: the cluster's client CA, and the front proxy's. Both come from the
ConfigMap kube-system/extension-apiserver-authentication, unless flags name files, which is read
again every LOOK_AGAIN_S. Without a kubeconfig for reviews and outside a cluster, reviews go to the
scheduler's API server with the scheduler's credentials; the cluster's client CA is then not read.
Without a connection for reviews tokens are ignored and everything but the always-allowed paths is
forbidden.

Bounds  ANSWERS_MAX answers of each kind are cached for the times set by flags; a review has
        ATTEMPTS attempts, each of CALL_S at most.
Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/apiserver plugin/pkg/{authenticator/token,
        authorizer}/webhook, pkg/authentication/request, pkg/server/options (authentication.go,
        authorization.go)
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from urllib.parse import unquote

import msgspec
import orjson
from msgspec.structs import replace

from asched.core.model.decode import MalformedError, parse
from asched.core.model.lru import Lru
from asched.kube.errors import ApiError, ClientError, ConnectError, ProtocolBroken, TransportError
from asched.kube.files import file_text
from asched.kube.kubeconfig import HOST_VARIABLE
from asched.kube.parsing import read
from asched.kube.session import ConfigData, ConnectionOptions, Session, connect
from asched.names import TOKEN_HEADER
from asched.serve.options import AccessOptions, CannotServeError
from asched.serve.telemetry.component_metrics import AccessMetrics
from asched.serve.tls import Certificates

if TYPE_CHECKING:
    from cryptography import x509

ANONYMOUS_NAME: Final = "system:anonymous"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"


class User(msgspec.Struct, frozen=True):
    """An authenticated user, or `ANONYMOUS`."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}

    def __hash__(self) -> int:
        return hash((self.name, self.groups, self.uid))


ANONYMOUS: Final = User(ANONYMOUS_NAME, (UNAUTHENTICATED,))


def known(
    name: str,
    groups: Sequence[str],
    uid: str = "",
    extra: Mapping[str, tuple[str, ...]] | None = None,
) -> User:
    every = tuple(dict.fromkeys((*groups, AUTHENTICATED)))
    return User(name, every, uid, dict(extra or {}))


class RequestHeaders(msgspec.Struct, frozen=True):
    """The headers of a trusted proxy; names in lower case. `allowed_names` empty: any."""

    authorities: str = ""
    allowed_names: tuple[str, ...] = ()
    username: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    uid: tuple[str, ...] = ()
    extra_prefix: tuple[str, ...] = ()


def by_proxy(
    certificate: "x509.Certificate | None",
    headers: Sequence[tuple[str, str]],
    rules: RequestHeaders,
) -> User | None:
    """The user that a front proxy names, if its certificate permits it."""
    name = next((v for wanted in rules.username for k, v in headers if k == wanted and v), "")
    if not name or certificate is None or not is_signed_by(certificate, rules.authorities):
        return None
    if rules.allowed_names and common_name(certificate) not in rules.allowed_names:
        return None
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in headers:
        for prefix in rules.extra_prefix:
            if key.startswith(prefix.lower()):
                label = unquote(key[len(prefix) :])
                extra[label] = (*extra.get(label, ()), value)
    uid = next((v for wanted in rules.uid for k, v in headers if k == wanted and v), "")
    return known(name, [v for k, v in headers if k in rules.group], uid, extra)


def by_certificate(certificate: "x509.Certificate | None", authorities: str) -> User | None:
    """The subject of a client certificate: common name and organizations."""
    if certificate is None or not is_signed_by(certificate, authorities):
        return None
    from cryptography.x509.oid import NameOID

    groups = [
        str(attribute.value)
        for attribute in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    ]
    return known(common_name(certificate), groups)


def common_name(certificate: "x509.Certificate") -> str:
    from cryptography.x509.oid import NameOID

    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def is_signed_by(certificate: "x509.Certificate", authorities: str) -> bool:
    """Whether one of these CAs (PEM) issued it for clients, and it is valid now."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.x509.oid import ExtendedKeyUsageOID

    now = datetime.now(UTC)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        return False
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return False
    suited = {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
    if not suited & set(usage) or "-----BEGIN" not in authorities:
        return False
    for authority in x509.load_pem_x509_certificates(authorities.encode()):
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False


ANSWERS_MAX: Final = 4_096
ATTEMPTS: Final = 3
RETRY_S: Final = 0.5
RETRY_FACTOR: Final = 1.5
#: Reviews with longer attributes are not cached, as upstream.
REMEMBERED_BYTES_MAX: Final = 10_000
MASTERS: Final = "system:masters"

TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

#: POSTs an object and returns (status code, object). Raises ReviewError.
Post = Callable[[str, Mapping[str, Any]], Awaitable[tuple[int, Mapping[str, Any]]]]
V = TypeVar("V")


class ReviewError(Exception):
    """The API server could not be reached for a review."""


class UnknownUserError(Exception):
    """Invalid credentials."""


class Remembered(Generic[V]):
    """A cache with expiry."""

    def __init__(self) -> None:
        self._answers: Lru[Hashable, tuple[float, V]] = Lru(ANSWERS_MAX)

    def get(self, key: Hashable) -> V | None:
        kept = self._answers.get(key)
        if kept is None or kept[0] < monotonic():
            return None
        return kept[1]

    def put(self, key: Hashable, answer: V, ttl_s: float) -> None:
        if ttl_s > 0:
            self._answers.put(key, (monotonic() + ttl_s, answer))


class RequestCredentials(msgspec.Struct, frozen=True):
    """The credentials of a request; header names in lower case."""

    headers: Sequence[tuple[str, str]] = ()
    certificate: "x509.Certificate | None" = None

    @property
    def token(self) -> str:
        """The token after `Bearer ` in the first `Authorization`, else in TOKEN_HEADER.

        As request/bearertoken: the token ends at the next space, and an empty one is none.
        """
        first = dict(reversed(self.headers))
        scheme, _, rest = first.get("authorization", "").strip().partition(" ")
        token = rest.partition(" ")[0]
        if scheme.lower() == "bearer" and token:
            return token
        return first.get(TOKEN_HEADER, "").strip()


class Authenticator:
    """Identifies users. `client_authorities` and `proxy` may be replaced at any time."""

    def __init__(self, options: AccessOptions, post: Post | None, metrics: AccessMetrics) -> None:
        self.client_authorities = ""
        self.proxy = RequestHeaders()
        self._ttl_s = options.authentication.authentication_token_webhook_cache_ttl
        self._post = post
        self._metrics = metrics
        self._users: Remembered[User | str] = Remembered()

    async def user(self, shown: RequestCredentials) -> User:
        """The user of a request. Raises UnknownUserError for invalid credentials."""
        started_s = monotonic()
        result = "error"
        try:
            user = await self._find(shown)
            result = "success"
        except UnknownUserError:
            result = "failure"
            raise
        finally:
            self._metrics.authenticated(result, monotonic() - started_s)
        return user

    async def _find(self, shown: RequestCredentials) -> User:
        user = by_proxy(shown.certificate, shown.headers, self.proxy)
        if user is None:
            user = by_certificate(shown.certificate, self.client_authorities)
        if user is None and shown.token and self._post is not None:
            return await self._by_token(self._post, shown.token)
        return user or ANONYMOUS

    async def _by_token(self, post: Post, token: str) -> User:
        key = sha256(token.encode()).digest()
        started_s = monotonic()
        kept = self._users.get(key)
        is_known = kept is not None
        try:
            if kept is None:
                with self._metrics.fetching_token():
                    kept = await self._review(post, token)
                self._users.put(key, kept, self._ttl_s)
        finally:
            self._metrics.looked_at_token(monotonic() - started_s, is_known=is_known)
        if isinstance(kept, str):
            raise UnknownUserError(kept)
        return kept

    async def _review(self, post: Post, token: str) -> User | str:
        review = {
            "kind": "TokenReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {},
            "spec": {"token": token},
            "status": {"user": {}},
        }
        try:
            answer = await insist(post, TOKEN_REVIEWS, review, self._metrics.reviewed_token)
        except ReviewError as error:
            raise UnknownUserError(str(error)) from error
        status = answer.get("status") or {}
        if not status.get("authenticated"):
            return str(status.get("error") or "the token is not known")
        user = status.get("user") or {}
        extra = {key: tuple(values) for key, values in (user.get("extra") or {}).items()}
        name, groups = str(user.get("username", "")), user.get("groups") or ()
        return known(name, groups, str(user.get("uid", "")), extra)


class Authorizer:
    def __init__(self, options: AccessOptions, post: Post | None, metrics: AccessMetrics) -> None:
        rules = options.authorization
        self._paths = frozenset(
            path.strip("/") for path in rules.authorization_always_allow_paths if path[-1:] != "*"
        )
        self._prefixes = tuple(
            path[:-1].lstrip("/")
            for path in rules.authorization_always_allow_paths
            if path.endswith("*")
        )
        self._ttl_s = {
            True: rules.authorization_webhook_cache_authorized_ttl,
            False: rules.authorization_webhook_cache_unauthorized_ttl,
        }
        self._post = post
        self._metrics = metrics
        self._answers: Remembered[bool] = Remembered()

    async def may(self, user: User, verb: str, path: str) -> bool:
        """Whether the user is authorized. Raises ReviewError if no review succeeds."""
        started_s = monotonic()
        result = "error"
        try:
            is_allowed = await self._may(user, verb, path)
            result = "allowed" if is_allowed else "no-opinion"
        finally:
            self._metrics.authorized(result, monotonic() - started_s)
        return is_allowed

    async def _may(self, user: User, verb: str, path: str) -> bool:
        if MASTERS in user.groups or self._is_always_allowed(path):
            return True
        if self._post is None:
            return False
        key = (replace(user, extra={}), tuple(sorted(user.extra.items())), verb, path)
        kept = self._answers.get(key)
        if kept is None:
            kept = await self._review(self._post, user, verb, path)
            if len(repr(key)) <= REMEMBERED_BYTES_MAX:
                self._answers.put(key, kept, self._ttl_s[kept])
        return kept

    def _is_always_allowed(self, path: str) -> bool:
        bare = path.removeprefix("/")
        return bare in self._paths or bare.startswith(self._prefixes)

    async def _review(self, post: Post, user: User, verb: str, path: str) -> bool:
        spec: dict[str, Any] = {
            "nonResourceAttributes": {"path": path, "verb": verb},
            "user": user.name,
        }
        if user.groups:
            spec["groups"] = list(user.groups)
        if user.extra:
            spec["extra"] = {key: list(values) for key, values in user.extra.items()}
        if user.uid:
            spec["uid"] = user.uid
        review = {
            "kind": "SubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": spec,
            "status": {"allowed": False},
        }
        answer = await insist(post, ACCESS_REVIEWS, review, self._metrics.reviewed_access)
        return bool((answer.get("status") or {}).get("allowed"))


async def insist(
    post: Post, path: str, review: Mapping[str, Any], observe: Callable[[str, float], None]
) -> Mapping[str, Any]:
    """Send a review until there is an answer, ATTEMPTS times at most. Raises ReviewError."""
    pause_s = RETRY_S
    for attempt in range(1, ATTEMPTS + 1):
        started_s = monotonic()
        try:
            code, answer = await post(path, review)
        except ReviewError:
            observe("<error>", monotonic() - started_s)
            if attempt == ATTEMPTS:
                raise
        else:
            observe(str(code), monotonic() - started_s)
            if 200 <= code < 300:
                return answer
            if code < 500 and code != 429:
                raise ReviewError(str(answer.get("message") or f"status {code}"))
        if attempt < ATTEMPTS:
            await asyncio.sleep(pause_s)
            pause_s *= RETRY_FACTOR
    raise ReviewError("the API server does not answer")


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
    return bool(os.environ.get(HOST_VARIABLE))


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
