"""Errors of requests. No package above `kube` sees an error of aiohttp or ssl.

ClientError           base of all
├── ConnectError      start-up failed; the text is one line for the user
├── TransportError    no usable answer; `sent`: whether the server may have acted
│   ├── ConnectFailed      nothing was sent: refused, unknown host, no TLS, no free connection
│   ├── ConnectionLost     the connection broke after the request was sent
│   ├── DeadlineExceeded   the time limit of a request has passed
│   └── ProtocolBroken     the answer is not valid HTTP
├── HistoryChanged    the server's history differs from what was observed
└── ApiError          the server answered with an error; subclasses by reason, else code

A separate class exists only where a caller acts differently.
"""

# ruff: noqa: N818  # classes are named after the event

from typing import ClassVar, Final

import msgspec
from msgspec.structs import replace

from asched.core.model.decode import MalformedError
from asched.kube.parsing import read

#: Texts of servers are cut to this length, so that a proxy's HTML page does not fill the log.
MESSAGE_LENGTH_MAX: Final = 1024


class ClientError(Exception):
    """Base of all errors of this package."""


class ConnectError(ClientError):
    """No usable connection at start-up. The text says what is wrong, where, and what to do."""


class HistoryChanged(ClientError):
    """The server was restored from a backup, or is another cluster; all cached state is invalid."""


class TransportError(ClientError):
    """No usable answer arrived."""

    #: True: the server may have carried the request out.
    sent: ClassVar[bool] = True


class ConnectFailed(TransportError):
    """Nothing of the request was sent."""

    sent: ClassVar[bool] = False


class ConnectionLost(TransportError):
    """The connection broke between the first byte of the request and the last of the answer."""


class DeadlineExceeded(TransportError):
    """The request was sent and the answer did not arrive in time."""


class ProtocolBroken(TransportError):
    """The answer cannot be parsed."""


class ApiError(ClientError):
    """An error answered by the API server, from its metav1.Status where it sent one."""

    def __init__(
        self, code: int, message: str, reason: str = "", *, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason
        self.retry_after_s = retry_after_s


class Unauthorized(ApiError):
    """401: the credentials are not accepted."""


class Forbidden(ApiError):
    """403: authenticated, but not authorized."""


class NotFound(ApiError):
    """404: no such object, or the server does not serve the resource."""


class Conflict(ApiError):
    """409: the object has changed (or exists already: AlreadyExists)."""


class AlreadyExists(Conflict):
    """409 with the reason AlreadyExists."""


class Expired(ApiError):
    """410: the requested resource version is no longer available."""


class TooManyRequests(ApiError):
    """429: wait `retry_after_s`, then retry."""


class ServerFailed(ApiError):
    """5xx: `ApiStatus.says_not_done` says whether the request was carried out."""


class Relist(Exception):
    """No error: a reflector lists again; `version` is the oldest that it accepts, "" the newest."""

    def __init__(self, version: str, why: str) -> None:
        super().__init__(why)
        self.version = version


class NoStreaming(Exception):
    """No error: the server does not support streaming lists, or not at the moment."""


_BY_REASON: Final[dict[str, type[ApiError]]] = {
    "AlreadyExists": AlreadyExists,
    "Expired": Expired,
    "Gone": Expired,
}
_BY_CODE: Final[dict[int, type[ApiError]]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    429: TooManyRequests,
}


class _Cause(msgspec.Struct):
    reason: str = ""


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: int = 0
    causes: list[_Cause] | None = None


class ApiStatus(msgspec.Struct, rename="camel"):
    """The fields of metav1.Status that are used."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None

    @property
    def is_too_large_version(self) -> bool:
        """The requested resource version is newer than this server's."""
        causes = self.details.causes if self.details is not None else None
        return any(cause.reason == "ResourceVersionTooLarge" for cause in causes or ())

    @property
    def says_not_done(self) -> bool:
        """Whether the error proves that the request was not and will not be carried out.

        No timeout does. Nor does an error of etcd in the middle of a write, which kube-apiserver
        passes on without a reason (for a binding as 409): the write may be stored later.
        """
        if self.code == 504 or self.reason in _TIMEOUTS:
            return False
        if self.code < 500:
            is_of_store = any(words in self.message for words in _STORE_ERRORS)
            return self.code != 409 or not is_of_store or self._is_known
        return bool(self.reason) or self._is_known

    @property
    def _is_known(self) -> bool:
        """Whether the message alone proves that nothing was carried out."""
        return any(words in self.message for words in _NOT_DONE)


_TIMEOUTS: Final = frozenset(("Timeout", "ServerTimeout"))
#: Messages of etcd, of its client, and of the connection between the two.
_STORE_ERRORS: Final = (
    "etcdserver: ",
    "etcdclient: ",
    "rpc error: ",
    "context deadline exceeded",
    "context canceled",
)
#: Messages, also among the above, that prove that nothing was written.
_NOT_DONE: Final = (
    "etcdserver: mvcc: database space exceeded",
    "etcdserver: request is too large",
    "etcdserver: too many requests",
    "admission webhook ",
)

_status_decoder: Final = msgspec.json.Decoder(ApiStatus)


def read_status(body: bytes) -> ApiStatus | None:
    try:
        status = read(_status_decoder.decode, body)
    except MalformedError:
        return None
    return status if status.kind == "Status" else None


def says_not_done(code: int, body: bytes) -> bool:
    """Whether an error answer proves that the request was not carried out. A 5xx without a Status
    does not come from the API server and proves nothing.
    """
    status = read_status(body)
    if status is None:
        return code < 500
    return replace(status, code=code).says_not_done


def retry_after_s(header: str | None) -> float | None:
    """Seconds in a Retry-After header; a date or invalid text counts as absent."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        return None


def api_error(code: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """The error of an answer whose status code is not a success."""
    status = read_status(body)
    wait_s = retry_after_s(retry_after)
    if status is not None:
        reason, message = status.reason, status.message
        if wait_s is None and status.details is not None and status.details.retry_after_seconds:
            wait_s = float(status.details.retry_after_seconds)
    else:
        reason, message = "", " ".join(body[:MESSAGE_LENGTH_MAX].decode("utf-8", "replace").split())
    otherwise = ServerFailed if code >= 500 else ApiError
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code) or otherwise
    text = (message or f"HTTP status {code}")[:MESSAGE_LENGTH_MAX]
    return kind(code, text, reason, retry_after_s=wait_s)
