"""OpenAPI documents, generated from `schema.TYPES`, for kubectl's create, apply and explain."""

import hashlib
from functools import lru_cache
from typing import Any, Final

import orjson

from asched_lab.apiserver import explanations, schema
from asched_lab.apiserver.call import JSON, TEXT, Call, Reply
from asched_lab.apiserver.resources import GROUPS, RESOURCES, Resource
from asched_lab.apiserver.statuses import ApiError, page_not_found

JsonObject = dict[str, Any]

SCALARS: Final[dict[str, JsonObject]] = {
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "qty": {"type": "string", "format": "quantity"},
    "amount": {"type": "string", "format": "quantity"},
    "time": {"type": "string", "format": "date-time"},
    "micro": {"type": "string", "format": "date-time"},
    "ios": {"type": "string", "format": "int-or-string"},
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
WRITE_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation")
ROOT_FIELDS: Final = ("apiVersion", "kind")


def route(call: Call, path: str) -> Reply:
    """`/openapi/v2`, `/openapi/v3` and its documents. Raises ApiError."""
    if path == "/openapi/v3":
        return cached(call, index(), TEXT)
    if path == "/openapi/v2":
        offers = call.headers.get("accept", "")
        if offers and JSON not in offers and "*/*" not in offers:
            raise ApiError(406, "406: Not Acceptable", details={})
        info = {"title": "asched embedded API server", "version": "embedded"}
        body = orjson.dumps({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}})
        return Reply(200, body, JSON, {"ETag": etag(body)})
    parts = path.removeprefix("/openapi/v3/").split("/")
    match parts:
        case ["api", version] if version in GROUPS[""]:
            body = document("", version)
        case ["apis", group, version] if version in GROUPS.get(group, ()):
            body = document(group, version)
        case _:
            raise page_not_found()
    reply = cached(call, body, JSON)
    if "hash" in call.query:
        # The path has a hash of the content, so a client may cache it.
        reply.headers["Cache-Control"] = "public, immutable, max-age=31536000"
    return reply


def cached(call: Call, body: bytes, content_type: str) -> Reply:
    """A document, or 304 if the client has it."""
    headers = {"ETag": etag(body)}
    if call.headers.get("if-none-match") == headers["ETag"]:
        return Reply(304, b"", "", headers)
    return Reply(200, body, content_type, headers)


@lru_cache(maxsize=64)
def etag(body: bytes) -> str:
    return f'"{hashlib.sha512(body).hexdigest().upper()}"'


@lru_cache(maxsize=1)
def index() -> bytes:
    paths = {}
    for group, versions in GROUPS.items():
        for version in versions:
            name = f"apis/{group}/{version}" if group else f"api/{version}"
            digest = hashlib.sha256(document(group, version)).hexdigest().upper()
            paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}
    return orjson.dumps({"paths": paths})


@lru_cache(maxsize=64)
def document(group: str, version: str) -> bytes:
    """The OpenAPI v3 document of one group version."""
    paths: JsonObject = {}
    schemas: JsonObject = {}
    for res in RESOURCES:
        if (res.group, res.version) == (group, version):
            paths |= paths_of(res)
            add_schema(schemas, schema.type_name(res), res)
    info = {"title": "asched embedded API server", "version": "embedded"}
    return orjson.dumps(
        {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}
    )


def paths_of(res: Resource) -> JsonObject:
    base = f"/apis/{res.group}/{res.version}" if res.group else f"/api/{res.version}"
    if res.namespaced:
        base += "/namespaces/{namespace}"
    kind = {"group": res.group, "version": res.version, "kind": res.kind}
    ref = {"$ref": f"#/components/schemas/{schema_name(res)}"}
    content = {JSON: {"schema": ref}}
    write = {
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
            for name in WRITE_PARAMETERS
        ],
        "requestBody": {"content": content},
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-group-version-kind": kind,
    }
    read = {"responses": write["responses"], "x-kubernetes-group-version-kind": kind}
    collection = {
        "get": {**read, "x-kubernetes-action": "list"},
        "post": {**write, "x-kubernetes-action": "post"},
    }
    item = {
        "get": {**read, "x-kubernetes-action": "get"},
        "put": {**write, "x-kubernetes-action": "put"},
        "patch": {**write, "x-kubernetes-action": "patch"},
    }
    return {f"{base}/{res.plural}": collection, f"{base}/{res.plural}/{{name}}": item}


def schema_name(res: Resource) -> str:
    """The name of a resource's schema; unique, also for kinds without a description."""
    name = schema.type_name(res)
    return f"{res.kind}.Anything" if name == "Anything" else name


def add_schema(schemas: JsonObject, name: str, res: Resource | None = None) -> None:
    """Add a type and everything it refers to."""
    key = schema_name(res) if res is not None else name
    if key in schemas:
        return
    properties: JsonObject = {}
    made: JsonObject = {"type": "object", "properties": properties}
    if about := explanations.of_type(name):
        made["description"] = about
    schemas[key] = made
    if res is not None:
        for field in ROOT_FIELDS:
            about = explanations.of_field(name, field)
            properties[field] = {"type": "string", "description": about}
        made["x-kubernetes-group-version-kind"] = [
            {"group": res.group, "version": res.version, "kind": res.kind}
        ]
    if name == "Anything":
        made["x-kubernetes-preserve-unknown-fields"] = True
    for known in schema.TYPES[name].values():
        entry = form_schema(schemas, known.form)
        if known.keys is not None:
            entry["x-kubernetes-patch-strategy"] = "merge"
            if known.keys:
                entry["x-kubernetes-patch-merge-key"] = known.keys[0]
        if about := explanations.of_field(name, known.name):
            entry["description"] = about
        properties[known.name] = entry


def form_schema(schemas: JsonObject, form: str) -> JsonObject:
    if form.startswith("["):
        return {"type": "array", "items": form_schema(schemas, form[1:-1])}
    if form.startswith("{"):
        return {"type": "object", "additionalProperties": form_schema(schemas, form[1:-1])}
    if form in SCALARS:
        return dict(SCALARS[form])
    add_schema(schemas, form)
    return {"allOf": [{"$ref": f"#/components/schemas/{form}"}]}
