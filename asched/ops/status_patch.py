"""Status controllers: what is due, and one write of status fields, guarded by an object's uid."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
import orjson

from asched.core.config.args import CapacitySchedulingArgs, CoschedulingArgs
from asched.core.model.kinds import Kind
from asched.core.model.meta import ObjectMeta
from asched.kube.errors import ClientError, NotFound
from asched.kube.session import Session, read_as
from asched.kube.writes import quoted

log = logging.getLogger("asched.host")

#: A guess: as long as the queue's first backoff.
RETRY_S: Final = 1.0
#: How often a standby, or a controller that is off, checks whether that has changed.
LOOK_S: Final = 1.0
MERGE: Final = "application/merge-patch+json"


class _PatchMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Written(msgspec.Struct, frozen=True):
    metadata: _PatchMetadata = _PatchMetadata()


class StatusController:
    """What the status controllers have in common. `args`: the current args of the plugin by
    profile; `written` is called with the result of each write, "error" for a failed one.
    """

    def __init__(
        self,
        session: Session,
        kind: Kind,
        args: Callable[[], Mapping[str, CoschedulingArgs | CapacitySchedulingArgs]],
        may_act: Callable[[], bool],
        written: Callable[[str], None],
    ) -> None:
        self._session = session
        self._kind = kind
        self._args = args
        self._may_act = may_act
        self._written = written
        self._due: dict[str, None] = {}
        self._woken = asyncio.Event()

    @property
    def is_on(self) -> bool:
        return any(args.status_controller for args in self._args().values())

    def _mark(self, key: str) -> None:
        self._due[key] = None
        self._woken.set()

    async def _may_write(self) -> bool:
        """Whether this process writes now; if not, pause."""
        may_write = self.is_on and self._may_act()
        if not may_write:
            await asyncio.sleep(LOOK_S)
        return may_write

    async def _patch(self, metadata: ObjectMeta, fields: Mapping[str, object]) -> str:
        """Merge `fields` into the status of the object with this uid; a new object of the same name
        is not changed. Returns the resulting version. Raises `ClientError`, and `NotFound` if the
        object is gone.
        """
        path = self._kind.object_path(quoted(metadata.namespace), quoted(metadata.name))
        body = orjson.dumps({"metadata": {"uid": metadata.uid}, "status": fields})
        send = self._session.general.request
        reply = await send("PATCH", f"{path}/status", body, content_type=MERGE)
        return read_as(reply, _Written).metadata.resource_version

    async def is_done(self, write: Awaitable[None], key: str) -> bool:
        """Whether a write needs no retry: it succeeded, or its object is gone. A failure is
        logged.
        """
        what = f"{self._kind.name} {key}"
        try:
            await write
        except NotFound:
            log.debug("%s is gone", what)
        except ClientError as error:
            self._written("error")
            log.warning("The status of %s cannot be written: %s", what, error)
            return False
        return True
