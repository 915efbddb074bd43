"""One question to an extender: POST it, believe a 200, and nothing else.

Plain HTTP/1.1, JSON, no retries, `httpTimeout` for the whole of it; only status 200 counts,
redirects are followed as Go follows them, the content type of the answer is ignored.
"""

from collections.abc import Mapping
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final

import aiohttp
import orjson
from yarl import URL

from asched.core.framework.effects import AskExtender
from asched.core.state.facts import Answer, Refused, Replied, Unknown
from asched.kube.parsing import whole_letters
from asched.kube.sockets import connect_problem

#: kube-scheduler's default (`httpTimeout` 0 means this).
HTTP_TIMEOUT_S: Final = 5.0
#: An answer says something of each node of its question, or sends it back: what is larger than
#: this and so many times the question is none.
ANSWER_BYTES_MAX: Final = 16 << 20
ANSWER_FACTOR: Final = 4
#: Go's client follows so many redirects.
REDIRECTS_MAX: Final = 10
_OK: Final = 200
_CURE: Final = "check the extender's tlsConfig"


class ExtenderHttp:
    """To be made inside the loop, and closed."""

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
        """Where nobody knows whether it was heard the answer is Unknown."""
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
        except (ValueError, aiohttp.NonHttpUrlClientError):  # aiohttp.InvalidURL is the former
            return Refused(effect.id, 0, f'Post "{url}": no http or https URL; correct urlPrefix')
        except TimeoutError:
            what = "the answer did not end" if is_reading else "no answer"
            return Unknown(effect.id, f'Post "{url}": {what} within {timeout_s:g} s')
        except (aiohttp.ClientError, OSError) as error:
            what = "the answer broke off" if is_reading else "the connection broke"
            why = str(error) or type(error).__name__
            return Unknown(effect.id, f'Post "{url}": {what}: {why}')
        if content is None:
            return Refused(effect.id, _OK, f"the answer of {url} is too large for its question")
        try:
            return Replied(effect.id, first_value(content))
        except ValueError as error:
            return Refused(effect.id, _OK, f"the answer of {url} is no JSON: {error}")

    async def close(self) -> None:
        await self._session.close()


def _no_number(name: str) -> Any:
    """Python reads NaN and Infinity."""
    raise JSONDecodeError("no number", name, 0)


_value_at_the_start: Final = JSONDecoder(parse_constant=_no_number).raw_decode


def first_value(body: bytes) -> Any:
    """The first JSON value of an answer: Go stops there, whatever follows. Raises ValueError."""
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
    except ValueError:  # in words about this process
        raise ValueError("a number has too many digits") from None


async def _whole(response: Any, bytes_max: int) -> bytes | None:
    """What an answer contains; None if that is too much."""
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > bytes_max:
            response.close()
            return None
    return b"".join(parts)
