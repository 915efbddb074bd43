"""Paths that are not resources: discovery, version, health, OpenAPI, and unknown ones.

The OpenAPI documents are generated from `schema.TYPES`, for kubectl's create, apply and explain.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

from asched_lab.apiserver import schema
from asched_lab.apiserver.call import JSON, TEXT, Call, Reply, answer, wanted
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.refusals import (
    ApiError,
    method_not_allowed,
    no_such_resource,
    page_not_found,
)
from asched_lab.apiserver.resources import ALPHA, GROUPS, RELEASES, RESOURCES, Resource

JsonObject = dict[str, Any]
#: What `kubectl explain` says of a type, or of a field of a type; others have no text.
TEXTS: Final = dict(
    line.split(" = ")
    for line in """
Pod = One or more containers that run together on one node.
Node = A machine that runs pods, with its resources and its state.
Deployment = Pods of one template, replaced step by step when the template changes.
ReplicaSet = A fixed number of equal pods.
ReplicationController = A fixed number of equal pods; replaced by ReplicaSet.
Job = Pods that run until enough of them have succeeded.
Namespace = A scope for names, rights and quotas.
Service = One address for the pods of a selector.
ConfigMap = Configuration that is not secret, as names and texts.
PriorityClass = A name for a priority; pods of higher priority are scheduled first.
PodDisruptionBudget = How many pods of a selector must stay during evictions.
PersistentVolume = Storage of the cluster that a claim may be bound to.
PersistentVolumeClaim = A request for storage that pods may mount.
StorageClass = A kind of storage, and its provisioner.
Lease = The holder of a lock, and its expiry.
ResourceClaim = A request for devices that pods may share.
ResourceSlice = Devices that a node or a network offers.
Event = Something that happened to an object, as text.
PodSpec.affinity = Rules about nodes and other pods that attract or repel this pod.
PodSpec.containers = The containers of the pod; at least one.
PodSpec.nodeName = The node that the pod is bound to; a scheduler sets it.
PodSpec.nodeSelector = Labels a node must have to be considered.
PodSpec.overhead = Resources of the pod in addition to those of its containers.
PodSpec.preemptionPolicy = Whether the pod may preempt other pods: PreemptLowerPriority or Never.
PodSpec.priority = The number behind priorityClassName; admission sets it.
PodSpec.priorityClassName = The class that sets the priority.
PodSpec.resourceClaims = The claims for devices that its containers may use.
PodSpec.restartPolicy = What happens when containers end: Always, OnFailure or Never.
PodSpec.schedulerName = The scheduler that binds the pod; default-scheduler unless set.
PodSpec.schedulingGates = Names that must all be removed before the pod is scheduled.
PodSpec.tolerations = Taints of nodes that do not exclude the pod.
PodSpec.topologySpreadConstraints = How evenly equal pods are spread over zones, nodes or others.
PodSpec.volumes = Volumes that containers may mount.
Container.image = The image of the container.
Container.ports = Ports it listens on; only one pod of a node can have a given hostPort.
Container.resources = Its requests, which scheduling counts, and its limits.
NodeSpec.taints = Taints that exclude pods without a matching toleration.
NodeSpec.unschedulable = Whether new pods are excluded; kubectl cordon sets it.
NodeStatus.allocatable = The sum that pods may request of the node.
NodeStatus.capacity = All resources of the node.
DeploymentSpec.replicas = The wanted number of pods; 1 unless set.
DeploymentSpec.strategy = RollingUpdate within maxSurge and maxUnavailable, or Recreate.
DeploymentSpec.template = The template of the pods.
JobSpec.completions = How many pods must succeed.
JobSpec.parallelism = How many pods may run at a time.
JobSpec.template = The template of the pods.
""".strip().splitlines()
)


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


def openapi(call: Call, path: str) -> Reply:
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
    if name in TEXTS:
        made["description"] = TEXTS[name]
    schemas[key] = made
    if res is not None:
        for field in ROOT_FIELDS:
            properties[field] = {"type": "string"}
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
        if about := TEXTS.get(f"{name}.{known.name}"):
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


AGGREGATED: Final = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
HEALTH: Final = ("/healthz", "/livez", "/readyz")
CHECKS: Final = ("ping", "log", "etcd")
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
SERVER_ADDRESSES: Final = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]


def route(ctx: Context, call: Call) -> Reply:
    """Answer a path that names no resource. Raises ApiError."""
    path = call.path.rstrip("/") or "/"
    if path.startswith(HEALTH):
        return health(call, path)
    if call.method != "GET":
        raise method_not_allowed()
    if path == "/version":
        return answer(version_document(ctx.options.minor))
    if path == "/metrics":
        name = "apiserver_storage_revision"
        text = f"# TYPE {name} gauge\n{name} {ctx.store.revision}\n"
        return Reply(200, text.encode(), METRICS_TYPE)
    if path == "/":
        return answer({"paths": sorted({"/api", "/apis", "/version", "/openapi/v3", *HEALTH})})
    if path.startswith("/openapi/"):
        return openapi(call, path)
    if path in {"/api", "/apis"}:
        return groups(ctx, call, core=path == "/api")
    parts = path.strip("/").split("/")
    if parts[0] == "apis" and "/".join(parts[1:]) in ctx.alpha:
        return answer(resource_list(parts[1], parts[2], (*ctx.resources, *ALPHA)))
    return group_documents(ctx, call, parts)


def version_document(minor: str) -> JsonObject:
    """`/version`."""
    major, _, number = minor.partition(".")
    return {
        "major": major,
        "minor": number,
        "emulationMajor": major,
        "emulationMinor": number,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(number) - 1),
        "gitVersion": RELEASES[minor],
        "gitCommit": "embedded",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "none",
        "platform": "linux/amd64",
    }


def health(call: Call, path: str) -> Reply:
    """`/healthz`, `/livez`, `/readyz`, each as a whole or one of its checks."""
    name, _, check = path.strip("/").partition("/")
    if check not in {"", *CHECKS}:
        raise page_not_found()
    if check or "verbose" not in call.query:
        return Reply(200, b"ok", TEXT)
    lines = [*(f"[+]{passed} ok" for passed in CHECKS), f"{name} check passed\n"]
    return Reply(200, "\n".join(lines).encode(), TEXT)


def group_documents(ctx: Context, call: Call, parts: list[str]) -> Reply:
    """`/api/v1`, `/apis/GROUP`, `/apis/GROUP/VERSION`."""
    wanted(call.headers.get("accept", ""), stream=False)
    match parts:
        case ["api", version]:
            if version not in GROUPS[""]:
                raise no_such_resource()
            return answer(resource_list("", version, ctx.resources))
        case ["apis", group] if group in GROUPS:
            return answer({"kind": "APIGroup", "apiVersion": "v1", **group_document(group)})
        case ["apis", group, version] if group in GROUPS:
            if version not in GROUPS[group]:
                raise no_such_resource()
            return answer(resource_list(group, version, ctx.resources))
    raise page_not_found()


def group_document(group: str) -> JsonObject:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version} for version in GROUPS[group]
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def resource_list(group: str, version: str, resources: Sequence[Resource]) -> JsonObject:
    """The APIResourceList of one group version."""
    entries = []
    for res in resources_in(resources, group, version):
        entry: JsonObject = {
            "name": res.plural,
            "singularName": res.kind.lower(),
            "namespaced": res.namespaced,
            "kind": res.kind,
            "verbs": list(res.verbs),
        }
        if res.short_names:
            entry["shortNames"] = list(res.short_names)
        if res.categories:
            entry["categories"] = list(res.categories)
        if res.stored:
            entry["storageVersionHash"] = res.storage_hash
        entries.append(entry)
        for sub in res.subresources:
            sub_entry: JsonObject = {
                "name": f"{res.plural}/{sub.name}",
                "singularName": "",
                "namespaced": res.namespaced,
                "kind": sub.kind,
                "verbs": list(sub.verbs),
            }
            if sub.group:
                sub_entry |= {"group": sub.group, "version": sub.version}
            entries.append(sub_entry)
    document: JsonObject = {"kind": "APIResourceList"}
    # The core document is the only one without an apiVersion.
    if group:
        document["apiVersion"] = "v1"
    group_version = f"{group}/{version}" if group else version
    return document | {"groupVersion": group_version, "resources": entries}


def resources_in(resources: Sequence[Resource], group: str, version: str) -> list[Resource]:
    return [res for res in resources if (res.group, res.version) == (group, version)]


def groups(ctx: Context, call: Call, *, core: bool) -> Reply:
    """`/api` and `/apis`: aggregated for clients that request it, else only the names."""
    accept = call.headers.get("accept", "")
    offers = [offer.replace(" ", "") for offer in accept.split(",")]
    if AGGREGATED in offers:
        body, etag = aggregated(ctx.resources, core=core)
        if call.headers.get("if-none-match") == etag:
            return Reply(304, b"", "", {"ETag": etag})
        return Reply(200, body, AGGREGATED, {"ETag": etag})
    if offers and all("as=APIGroupDiscoveryList" in offer for offer in offers):
        raise ApiError(406, "406: Not Acceptable", details={})
    if core:
        return answer(
            {
                "kind": "APIVersions",
                "versions": GROUPS[""],
                "serverAddressByClientCIDRs": SERVER_ADDRESSES,
            }
        )
    listed = [group_document(group) for group in GROUPS if group]
    return answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": listed})


@lru_cache(maxsize=4)
def aggregated(resources: tuple[Resource, ...], *, core: bool) -> tuple[bytes, str]:
    """The aggregated document of the core group or of the other groups, and its ETag."""
    items = []
    for group, versions in GROUPS.items():
        if core != (not group):
            continue
        listed = [
            {
                "version": version,
                "resources": [
                    aggregated_resource(res) for res in resources_in(resources, group, version)
                ],
                "freshness": "Current",
            }
            for version in versions
        ]
        items.append({"metadata": {"name": group} if group else {}, "versions": listed})
    body = orjson.dumps(
        {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }
    )
    return body, f'"{hashlib.sha512(body).hexdigest().upper()}"'


def aggregated_resource(res: Resource) -> JsonObject:
    entry: JsonObject = {
        "resource": res.plural,
        "responseKind": {"group": "", "version": "", "kind": res.kind},
        "scope": "Namespaced" if res.namespaced else "Cluster",
        "singularResource": res.kind.lower(),
        "verbs": list(res.verbs),
    }
    if res.short_names:
        entry["shortNames"] = list(res.short_names)
    if res.categories:
        entry["categories"] = list(res.categories)
    if res.subresources:
        entry["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": {"group": sub.group, "version": sub.version, "kind": sub.kind},
                "verbs": list(sub.verbs),
            }
            for sub in res.subresources
        ]
    return entry
