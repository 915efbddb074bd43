"""HTTP extenders: configuration, TLS contexts, and log messages about failures. The requests
themselves are sent by `extender_http.py`.

With `enableHTTPS` and no CA nothing is verified (as upstream); without it an https prefix is
verified against the system's CAs. Files that change on disk are read again.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from asched.core.cluster.facts import Answer, Refused, Unknown
from asched.core.config.v1 import Extender, ExtenderTLSConfig
from asched.core.framework.effects import AskExtender
from asched.kube.certificates import Rotating, rotating
from asched.kube.errors import ConnectError
from asched.kube.originals import MissingOriginalError, Originals

if TYPE_CHECKING:
    from asched.kube.extender_http import ExtenderHttp

log = logging.getLogger("asched.extenders")

#: (URL prefix, verb as configured, success/refused/lost, seconds), once per request.
ExtenderObserver = Callable[[str, str, str, float], None]


def observe_nothing(_extender: str, _verb: str, _result: str, _seconds: float) -> None:
    """Ignore the measurement."""


class Extenders:
    """Sends requests to extenders. `originals` has the objects that are sent whole.

    Raises ConnectError, in `__init__` and `adopt`, if TLS files of an extender cannot be used.
    """

    def __init__(
        self,
        extenders: Sequence[Extender],
        originals: Originals | None = None,
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
        self._http: ExtenderHttp | None = None
        self.adopt(extenders)
        self._encoder = msgspec.json.Encoder(enc_hook=(originals or Originals(())).splice)

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
            from asched.kube.extender_http import ExtenderHttp  # a tenth of a second

            self._http = ExtenderHttp(self._user_agent)
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
        extender = effect.extender
        url = f"{extender.url_prefix.rstrip('/')}/{effect.verb}"
        assert self._http is not None, "some extender has been adopted"
        try:
            body = self._encoder.encode(effect.body)
            tls = self._tls_arguments(extender)
        except (MissingOriginalError, TypeError, ConnectError) as error:
            return Refused(effect.id, 0, str(error))
        return await self._http.ask(effect, url, body, tls)

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
