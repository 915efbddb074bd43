"""An API server that is upgraded while asched runs: noticed when streams begin again, and reported.

Rules are those of the start. Where the version could not be read at the start, and turns out to
have other rules, the process ends in order, so that its next start takes them.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from asched.core.config.versions import UnknownVersionError, VersionChoice, for_server, minor_of
from asched.kube.errors import ClientError
from asched.kube.session import read_version
from asched.kube.transport import Transport

log = logging.getLogger("asched.version")

#: Between two attempts to read a version that is not known.
RETRY_S: Final = 5.0


class ServerVersionWatch:
    """Compares the server's version with the one at the start whenever `ask` was called."""

    def __init__(
        self, transport: Transport, version: VersionChoice, stop: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._version = version
        self._stop = stop
        self._requested = asyncio.Event()
        #: the API server's version as last read; "" if it was not
        self.server = version.server
        if not self.server:
            self._requested.set()

    def ask(self) -> None:
        """The connection was lost: the server may be another version now."""
        self._requested.set()

    async def run(self) -> None:
        """Compare, again and again."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            try:
                self._compare(await read_version(self._transport))
            except (ClientError, UnknownVersionError):
                if not self.server:
                    self._requested.set()
                    await asyncio.sleep(RETRY_S)

    def _compare(self, server: str) -> None:
        before, self.server = self.server, server
        if before and minor_of(before) == minor_of(server):
            return
        rules, now = self._version.minor, for_server(server).minor
        if before:
            end = "" if self._version.is_emulated or rules == now else "; restart asched"
            log.warning("The API server is %s now; it was %s", server, f"{before}{end}")
        elif now != rules and not self._version.is_emulated:
            log.error("The API server is %s: asched ends, to start by the rules of %s", server, now)
            self._stop()
