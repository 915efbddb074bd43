"""HTTP extenders: POST a question, believe a 200, and nothing else.

Transport rules (runtime reference 6.2): plain HTTP/1.1, JSON, no retries, `httpTimeout` for the
whole of it; only status 200 counts, redirects are not followed, the content type of the answer is
ignored. With `enableHTTPS` and no CA nothing is verified (as upstream); without it an https prefix
is verified against the system's roots.
"""

import ssl
import tempfile
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec
import orjson

from asched.core.config.v1 import Extender, ExtenderTLSConfig
from asched.core.framework.effects import AskExtender
from asched.core.state.facts import Answer, Done, Refused, Unknown
from asched.edge.client.errors import ConnectError

#: kube-scheduler's default (`httpTimeout` 0 means this).
HTTP_TIMEOUT_S: Final = 5.0
_OK: Final = 200
_encode: Final = msgspec.json.Encoder().encode


class Extenders:
    """The configured extenders, by their position."""

    def __init__(self, extenders: Sequence[Extender], user_agent: str = "asched") -> None:
        self._extenders = tuple(extenders)
        self._tls = tuple(_tls_of(extender) for extender in extenders)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            headers={"User-Agent": user_agent},
            skip_auto_headers=("Accept-Encoding", "Accept"),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def ask(self, effect: AskExtender) -> Answer:
        """One question. Done carries the parsed JSON; a bind whose answer is lost is Unknown."""
        extender = self._extenders[effect.extender]
        url = f"{extender.url_prefix.rstrip('/')}/{effect.verb}"
        timeout = aiohttp.ClientTimeout(total=extender.http_timeout_s or HTTP_TIMEOUT_S)
        arguments: dict[str, Any] = {}
        tls = self._tls[effect.extender]
        if tls is not None:
            arguments["ssl"] = tls
            config = extender.tls_config
            if config is not None and config.server_name:
                arguments["server_hostname"] = config.server_name
        try:
            async with self._session.post(
                url,
                data=_encode(effect.body),
                headers={"Content-Type": "application/json"},
                timeout=timeout,
                allow_redirects=False,
                **arguments,
            ) as response:
                if response.status != _OK:
                    return Refused(
                        effect.id,
                        response.status,
                        f"failed {effect.verb} with extender at URL {url}, code {response.status}",
                    )
                return _parsed(effect, await response.read())
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL, ValueError) as error:
            return Refused(effect.id, 0, f'Post "{url}": {error}')
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            why = str(error) or type(error).__name__
            return Unknown(effect.id, f'Post "{url}": {why}')

    async def close(self) -> None:
        await self._session.close()


def _parsed(effect: AskExtender, body: bytes) -> Answer:
    """The JSON of an answer; prioritize answers a list, which travels under the key `items`."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return Refused(effect.id, _OK, f"the extender's answer is not JSON: {error}")
    if isinstance(parsed, list):
        return Done(effect.id, {"items": parsed})
    if parsed is None or isinstance(parsed, dict):
        return Done(effect.id, parsed or {})
    return Refused(effect.id, _OK, "the extender's answer is neither an object nor a list")


def _tls_of(extender: Extender) -> ssl.SSLContext | None:
    """The context for an https prefix. Raises ConnectError if its files cannot be used."""
    if urlsplit(extender.url_prefix).scheme != "https":
        return None
    config = extender.tls_config or ExtenderTLSConfig()
    has_ca = bool(config.ca_file or config.ca_data)
    try:
        context = ssl.create_default_context(
            cafile=None if config.ca_data else config.ca_file or None,
            cadata=config.ca_data.decode() or None,
        )
        if config.insecure or (extender.enable_https and not has_ca):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        _load_own_certificate(context, config)
    except (OSError, ssl.SSLError) as error:
        raise ConnectError(
            f"extender {extender.url_prefix}: its TLS files cannot be used: {error}"
        ) from error
    return context


def _load_own_certificate(context: ssl.SSLContext, config: ExtenderTLSConfig) -> None:
    """Data wins over files; ssl reads files only, so data passes through a private one."""
    if not config.cert_data:
        if config.cert_file:
            context.load_cert_chain(config.cert_file, config.key_file or None)
        return
    with tempfile.NamedTemporaryFile(suffix=".pem") as pem:
        pem.write(config.cert_data + b"\n" + config.key_data)
        pem.flush()
        context.load_cert_chain(pem.name)
