"""One write of a status controller: fields of an object's status, for that very object."""

from collections.abc import Mapping
from typing import Final

import orjson

from asched.core.model.kinds import Kind
from asched.core.model.meta import ObjectMeta
from asched.edge.client.errors import api_error
from asched.edge.client.session import Session
from asched.edge.client.writes import quoted

MERGE: Final = "application/merge-patch+json"


async def patch_status(
    session: Session, kind: Kind, metadata: ObjectMeta, fields: Mapping[str, object]
) -> None:
    """Merge `fields` into the status of the object with this uid; one made anew under its name
    stays as it is. Raises `ClientError`, `NotFound` where the object is gone.
    """
    path = kind.object_path(quoted(metadata.namespace), quoted(metadata.name))
    body = orjson.dumps({"metadata": {"uid": metadata.uid}, "status": fields})
    reply = await session.general.request("PATCH", f"{path}/status", body, content_type=MERGE)
    if reply.status >= 400:
        raise api_error(reply.status, reply.body)
