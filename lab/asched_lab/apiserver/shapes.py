"""The forms of objects and lists: whole, as metadata only, or as rows of a table."""

from collections.abc import Sequence
from typing import Any

import orjson

from asched_lab.apiserver import bodies, tables
from asched_lab.apiserver.call import JSON, YAML, Call, Reply, Wanted, answer, wanted
from asched_lab.apiserver.context import Record
from asched_lab.apiserver.refusals import ApiError
from asched_lab.apiserver.resources import Resource

JsonObject = dict[str, Any]


def partial(obj: JsonObject) -> JsonObject:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }


def wanted_of(call: Call, *, stream: bool = False) -> Wanted:
    return wanted(call.headers.get("accept", ""), stream=stream)


def object_reply(
    call: Call,
    res: Resource,
    record: Record,
    *,
    status: int = 200,
    now_s: float = 0.0,
    warnings: Sequence[str] = (),
) -> Reply:
    """One object in the requested form."""
    want = wanted_of(call)
    if want.shape == "PartialObjectMetadataList":
        raise ApiError(
            406,
            "you requested PartialObjectMetadataList, but the requested object is not a list"
            f" (*{internal_name(res)})",
        )
    if want.shape == "Table":
        version = record.obj["metadata"].get("resourceVersion", "")
        table = tables.table(
            res, [record.obj], {"resourceVersion": version}, now_s, include=include_of(call)
        )
        reply = answer(table, status=status, media=want.media)
    elif want.shape:
        reply = answer(partial(record.obj), status=status, media=want.media)
    elif want.media == YAML:
        reply = answer(bodies.shown(res, record.obj), status=status, media=YAML)
    else:
        reply = Reply(status, bodies.encoded(res, record.obj, record.body))
    reply.warnings = [f"299 - {orjson.dumps(warning).decode()}" for warning in warnings]
    return reply


def list_reply(
    call: Call, res: Resource, records: Sequence[Record], metadata: JsonObject, now_s: float
) -> Reply:
    """Many objects in the requested form; the plain form joins stored encodings."""
    want = wanted_of(call, stream=True)
    if want.shape == "PartialObjectMetadata":
        raise ApiError(
            406,
            "you requested PartialObjectMetadata, but the requested object is a list"
            f" (*{internal_name(res)}List)",
        )
    if want.shape == "Table":
        objects = [record.obj for record in records]
        table = tables.table(res, objects, metadata, now_s, include=include_of(call))
        return answer(table, media=want.media)
    if want.shape:
        return answer(
            {
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": [partial(record.obj) for record in records] or None,
            },
            media=want.media,
        )
    head = f'{{"kind":"{res.kind}List","apiVersion":"{res.api_version}","metadata":'.encode()
    if res.kind == "Event" and res.group:
        items = b",".join(orjson.dumps(bodies.to_v1(record.obj)) for record in records)
    else:
        items = b",".join([record.body for record in records])
    body = b"".join((head, orjson.dumps(metadata), b',"items":[', items, b"]}"))
    if want.media == YAML:
        return answer(orjson.loads(body), media=YAML)
    return Reply(200, body, JSON)


def include_of(call: Call) -> str:
    return call.query.get("includeObject", "Metadata")


def internal_name(res: Resource) -> str:
    return f"{res.group.partition('.')[0] or 'core'}.{res.kind}"
