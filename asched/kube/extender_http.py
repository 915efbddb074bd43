"""One request to an extender: POST, where only status 200 is a success.

Plain HTTP/1.1, JSON, no retries, `httpTimeout` for the whole request; redirects are followed as by
Go, and the content type of the answer is ignored.
"""

from collections.abc import Mapping
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final

import aiohttp
import orjson
from yarl import URL

from asched.core.cluster.facts import Answer, Refused, Replied, Unknown
from asched.core.framework.effects import AskExtender
from asched.kube.parsing import whole_letters
from asched.kube.sockets import connect_problem

#: kube-scheduler's default (`httpTimeout` 0 means this).
HTTP_TIMEOUT_S: Final = 5.0
#: An answer describes each node of its request, or returns it. A longer answer is invalid.
ANSWER_BYTES_MAX: Final = 16 << 20
ANSWER_FACTOR: Final = 4
#: Go's client follows at most this many redirects.
REDIRECTS_MAX: Final = 10
_OK: Final = 200
_CURE: Final = "check the extender's tlsConfig"


class ExtenderHttp:
    """Create it inside the loop, and close it."""

    def __init__(self, user_agent: str) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            headers={"User-Agent": user_agent, "Content-Type": "application/json"},
            skip_auto_headers=("Accept-Encoding", "Accept"),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def ask(
        self, effect: AskExtender, url: str, body: bytes, tls: Mapping[str, Any]
    ) -> Answer:
        """The answer is Unknown if the extender may have processed the request."""
        is_reading = False
        timeout_s = effect.extender.http_timeout_s or HTTP_TIMEOUT_S
        try:
            async with self._session.post(
                URL(url, encoded=True),
                data=body,
                timeout=aiohttp.ClientTimeout(total=timeout_s),
                max_redirects=REDIRECTS_MAX,
                **tls,
            ) as response:
                if response.status != _OK:
                    why = f"failed {effect.verb} with extender at URL {url}, code {response.status}"
                    return Refused(effect.id, response.status, why)
                is_reading = True
                content = await _whole(response, ANSWER_BYTES_MAX + ANSWER_FACTOR * len(body))
        except aiohttp.ClientConnectorError as error:
            return Refused(effect.id, 0, f'Post "{url}": {connect_problem(error, _CURE)}')
        except (ValueError, aiohttp.NonHttpUrlClientError):  # includes aiohttp.InvalidURL
            return Refused(
                effect.id, 0, f'Post "{url}": not an http or https URL; correct urlPrefix'
            )
        except TimeoutError:
            what = "the answer did not end" if is_reading else "no answer"
            return Unknown(effect.id, f'Post "{url}": {what} within {timeout_s:g} s')
        except (aiohttp.ClientError, OSError) as error:
            what = "the answer is incomplete" if is_reading else "the connection broke"
            why = str(error) or type(error).__name__
            return Unknown(effect.id, f'Post "{url}": {what}: {why}')
        if content is None:
            return Refused(effect.id, _OK, f"the answer of {url} is too large for its request")
        try:
            return Replied(effect.id, first_value(content))
        except ValueError as error:
            return Refused(effect.id, _OK, f"the answer of {url} is no JSON: {error}")

    async def close(self) -> None:
        await self._session.close()


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
