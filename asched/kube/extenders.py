"""HTTP extenders: configuration, TLS contexts, requests, and log messages about failures.

With `enableHTTPS` and no CA nothing is verified (as upstream); without it an https prefix is
verified against the system's CAs. Files that change on disk are read again. Requests are plain
HTTP/1.1 POSTs of JSON, of which only status 200 is a success: no retries, `httpTimeout` for the
whole request; redirects are followed as by Go, and the content type of the answer is ignored.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from json import JSONDecodeError, JSONDecoder
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec
import orjson
from yarl import URL

from asched.core.cluster.facts import Answer, Refused, Replied, Unknown
from asched.core.config.v1 import Extender, ExtenderTLSConfig
from asched.core.framework.effects import AskExtender
from asched.kube.certificates import Rotating, rotating
from asched.kube.connection import connect_problem
from asched.kube.errors import ConnectError
from asched.kube.mending import whole_letters
from asched.kube.raw_objects import MissingRawObjectError, RawObjects

#: kube-scheduler's default (`httpTimeout` 0 means this).
HTTP_TIMEOUT_S: Final = 5.0
#: An answer describes each node of its request, or returns it. A longer answer is invalid.
ANSWER_BYTES_MAX: Final = 16 << 20
ANSWER_FACTOR: Final = 4
#: Go's client follows at most this many redirects.
REDIRECTS_MAX: Final = 10
_CURE: Final = "check the extender's tlsConfig"


def _no_number(name: str) -> Any:
    """Refuse NaN and Infinity, which Python accepts."""
    raise JSONDecodeError("not a number", name, 0)


_value_at_the_start: Final = JSONDecoder(parse_constant=_no_number).raw_decode


def first_value(body: bytes) -> Any:
    """The first JSON value of an answer: Go ignores the rest. Raises ValueError."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        mended = whole_letters(body.decode("utf-8", "replace").encode())
        text = mended.decode().lstrip(" \t\r\n")
    try:
        return _value_at_the_start(text)[0]
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except JSONDecodeError:
        raise
    except ValueError:  # the original message is about an interpreter setting
        raise ValueError("a number has too many digits") from None


async def _whole(response: Any, bytes_max: int) -> bytes | None:
    """The content of an answer; None if it is too large."""
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > bytes_max:
            response.close()
            return None
    return b"".join(parts)


log = logging.getLogger("asched.extenders")

#: (URL prefix, verb as configured, success/refused/lost, seconds), once per request.
ExtenderObserver = Callable[[str, str, str, float], None]


def observe_nothing(_extender: str, _verb: str, _result: str, _seconds: float) -> None:
    """Ignore the measurement."""


class Extenders:
    """Sends requests to extenders. `raw_objects` has the objects that are sent whole.

    Raises ConnectError, in `__init__` and `adopt`, if TLS files of an extender cannot be used.
    """

    def __init__(
        self,
        extenders: Sequence[Extender],
        raw_objects: RawObjects | None = None,
        *,
        user_agent: str = "asched",
        observe: ExtenderObserver = observe_nothing,
    ) -> None:
        self._observe = observe
        #: (extender, verb) -> requests in flight; entries stay at zero
        self._open: Counter[tuple[Extender, str]] = Counter()
        #: TLS contexts of the configured extenders
        self._tls: dict[Extender, Rotating | None] = {}
        #: (extender, verb) -> last logged failure, empty while it succeeds
        self._complaints: dict[tuple[Extender, str], str] = {}
        self._user_agent = user_agent
        self._http: aiohttp.ClientSession | None = None
        self.adopt(extenders)
        self._encoder = msgspec.json.Encoder(enc_hook=(raw_objects or RawObjects(())).splice)

    @staticmethod
    def check(extenders: Sequence[Extender]) -> None:
        """Raises ConnectError if TLS files of an extender cannot be used."""
        for extender in extenders:
            _tls_of(extender)

    def adopt(self, extenders: Sequence[Extender]) -> None:
        """Use this configuration from now on. Requests to former extenders are still sent: a
        scheduling cycle ends with the extenders it began with.
        """
        self._tls = {extender: _tls_of(extender) for extender in extenders}
        if extenders and self._http is None:
            self._http = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                headers={"User-Agent": self._user_agent, "Content-Type": "application/json"},
                skip_auto_headers=("Accept-Encoding", "Accept"),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        self._complaints = {
            place: said for place, said in self._complaints.items() if place[0] in self._tls
        }
        for place, count in list(self._open.items()):
            if place[0] not in self._tls and not count:
                del self._open[place]

    async def ask(self, effect: AskExtender) -> Answer:
        """Send one request. The answer is Unknown if the extender may have processed it."""
        place = effect.extender, effect.verb
        started_s, result = monotonic(), "lost"
        self._open[place] += 1
        try:
            answer = await self._ask(effect)
            if not isinstance(answer, Unknown):
                result = "refused" if isinstance(answer, Refused) else "success"
        finally:
            self._open[place] -= 1
            prefix = effect.extender.url_prefix
            self._observe(prefix, effect.verb, result, monotonic() - started_s)
        self._log_failure(effect, answer)
        return answer

    @property
    def prioritizing(self) -> int | None:
        """Prioritize requests in flight; None until there was one."""
        counts = [
            count
            for (extender, verb), count in self._open.copy().items()
            if verb == extender.prioritize_verb
        ]
        return sum(counts) if counts else None

    def _log_failure(self, effect: AskExtender, answer: Answer) -> None:
        """Log a failure once until it changes or ends: ignorable ones are logged nowhere else."""
        place = effect.extender, effect.verb
        now = answer.message if isinstance(answer, Refused | Unknown) else ""
        before = self._complaints.get(place, "")
        if now == before:
            return
        self._complaints[place] = now
        prefix = effect.extender.url_prefix
        if now:
            log.warning("extender %s does not answer %s: %s", prefix, effect.verb, now)
        else:
            log.info("extender %s answers %s again", prefix, effect.verb)

    async def _ask(self, effect: AskExtender) -> Answer:
        extender, is_reading = effect.extender, False
        url = f"{extender.url_prefix.rstrip('/')}/{effect.verb}"
        timeout_s = extender.http_timeout_s or HTTP_TIMEOUT_S
        assert self._http is not None, "some extender has been adopted"
        try:
            body = self._encoder.encode(effect.body)
            tls = self._tls_arguments(extender)
        except (MissingRawObjectError, TypeError, ConnectError) as error:
            return Refused(effect.id, 0, str(error))
        try:
            async with self._http.post(
                URL(url, encoded=True),
                data=body,
                timeout=aiohttp.ClientTimeout(total=timeout_s),
                max_redirects=REDIRECTS_MAX,
                **tls,
            ) as response:
                if response.status != 200:
                    why = f"failed {effect.verb} with extender at URL {url}, code {response.status}"
                    return Refused(effect.id, response.status, why)
                is_reading = True
                content = await _whole(response, ANSWER_BYTES_MAX + ANSWER_FACTOR * len(body))
        except aiohttp.ClientConnectorError as error:
            return Refused(effect.id, 0, f'Post "{url}": {connect_problem(error, _CURE)}')
        except (ValueError, aiohttp.NonHttpUrlClientError):  # includes aiohttp.InvalidURL
            why = f'Post "{url}": not an http or https URL; correct urlPrefix'
            return Refused(effect.id, 0, why)
        except TimeoutError:
            what = "the answer did not end" if is_reading else "no answer"
            return Unknown(effect.id, f'Post "{url}": {what} within {timeout_s:g} s')
        except (aiohttp.ClientError, OSError) as error:
            what = "the answer is incomplete" if is_reading else "the connection broke"
            why = str(error) or type(error).__name__
            return Unknown(effect.id, f'Post "{url}": {what}: {why}')
        if content is None:
            return Refused(effect.id, 200, f"the answer of {url} is too large for its request")
        try:
            return Replied(effect.id, first_value(content))
        except ValueError as error:
            return Refused(effect.id, 200, f"the answer of {url} is no JSON: {error}")

    def _tls_arguments(self, extender: Extender) -> dict[str, Any]:
        is_known = extender in self._tls
        tls = self._tls[extender] if is_known else _tls_of(extender)
        if tls is None:
            return {}
        config = extender.tls_config
        name = {"server_hostname": config.server_name} if config and config.server_name else {}
        return {"ssl": tls.context(), **name}

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()


def _tls_of(extender: Extender) -> Rotating | None:
    """The contexts for an https prefix. Raises ConnectError if its files cannot be used."""
    if urlsplit(extender.url_prefix).scheme != "https":
        return None
    config = extender.tls_config or ExtenderTLSConfig()
    has_ca = bool(config.ca_data or config.ca_file)
    has_own = bool(config.cert_data)  # data takes precedence over files
    has_files = bool(config.cert_file) and not has_own
    try:
        return rotating(
            authorities=config.ca_data,
            authorities_file="" if config.ca_data else config.ca_file,
            verify=not (config.insecure or (extender.enable_https and not has_ca)),
            certificate=config.cert_data,
            certificate_file=config.cert_file if has_files else "",
            key=config.key_data if has_own else b"",
            key_file=config.key_file if has_files else "",
        )
    except (OSError, ValueError) as error:
        raise ConnectError(
            f"extender {extender.url_prefix}: its TLS files cannot be used: {error}"
        ) from error
