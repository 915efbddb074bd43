"""Paths that are not resources: discovery, version, health, OpenAPI, and unknown ones."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

from asched_lab.apiserver import openapi
from asched_lab.apiserver.call import JSON, TEXT, Call, Reply, answer, wanted
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.resources import ALPHA, GROUPS, RELEASES, Resource
from asched_lab.apiserver.statuses import (
    ApiError,
    method_not_allowed,
    no_such_resource,
    page_not_found,
)

JsonObject = dict[str, Any]

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
        return openapi.route(call, path)
    if path in {"/api", "/apis"}:
        return groups(ctx, call, core=path == "/api")
    parts = path.strip("/").split("/")
    alpha = [res for res in ALPHA if parts == ["apis", *res.api_version.split("/")]]
    if alpha and alpha[0].api_version in ctx.alpha:
        return answer(resource_list(parts[1], parts[2], (*ctx.resources, *alpha)))
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
