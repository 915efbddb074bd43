"""One write of a status controller: status fields of one object, guarded by its uid."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
import orjson

from asched.core.model.kinds import Kind
from asched.core.model.meta import ObjectMeta
from asched.kube.errors import ClientError, NotFound
from asched.kube.session import Session, read_as
from asched.kube.writes import quoted

log = logging.getLogger("asched.host")

MERGE: Final = "application/merge-patch+json"


class _PatchMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Written(msgspec.Struct, frozen=True):
    metadata: _PatchMetadata = _PatchMetadata()


async def patch_status(
    session: Session, kind: Kind, metadata: ObjectMeta, fields: Mapping[str, object]
) -> str:
    """Merge `fields` into the status of the object with this uid; a new object of the same name is
    not changed. Returns the resulting version. Raises `ClientError`, and `NotFound` if the object
    is gone.
    """
    path = kind.object_path(quoted(metadata.namespace), quoted(metadata.name))
    body = orjson.dumps({"metadata": {"uid": metadata.uid}, "status": fields})
    reply = await session.general.request("PATCH", f"{path}/status", body, content_type=MERGE)
    return read_as(reply, _Written).metadata.resource_version


async def is_done(write: Awaitable[None], what: str, written: Callable[[str], None]) -> bool:
    """Whether a write needs no retry: it succeeded, or its object is gone. A failure is logged and
    passed to `written` as "error".
    """
    try:
        await write
    except NotFound:
        log.debug("%s is gone", what)
    except ClientError as error:
        written("error")
        log.warning("The status of %s cannot be written: %s", what, error)
        return False
    return True
