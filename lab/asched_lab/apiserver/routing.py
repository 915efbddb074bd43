"""From a path to a resource and a subresource, and from there to the handler.

    /api/v1/... and /apis/GROUP/VERSION/...            where
    [namespaces/NS/]PLURAL[/NAME[/SUBRESOURCE]]        what

`route` answers with a `Reply`, or with a `Watch` that the owner of the connection serves.
"""

from dataclasses import dataclass
from typing import Final

from asched_lab.apiserver import auth, binding, crud, discovery, listing, patching, watching
from asched_lab.apiserver.call import Call, Reply
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.refusals import (
    ApiError,
    method_not_allowed,
    no_such_resource,
    page_not_found,
)
from asched_lab.apiserver.resources import ALPHA, BY_PATH, CUSTOM, GROUPS, LATER, Resource
from asched_lab.apiserver.watching import Watch

VERBS: Final = {
    "GET": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a path."""

    res: Resource
    namespace: str = ""
    name: str = ""
    sub: str = ""
    watch: bool = False


def parse(path: str) -> Target | None:
    """The target of a resource path; None for any other path. Raises ApiError 404."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if group not in GROUPS and group not in CUSTOM:
        raise page_not_found()
    watch = rest[0] == "watch" and len(rest) > 1
    rest = rest[1:] if watch else rest
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in {"status", "finalize"}:
        namespace, rest = rest[1], rest[2:]
    res = BY_PATH.get((group, version, rest[0]))
    if res is None or len(rest) > 3 or (namespace and not res.namespaced):
        raise no_such_resource()
    name = rest[1] if len(rest) > 1 else ""
    sub = rest[2] if len(rest) > 2 else ""
    if sub and res.sub(sub) is None:
        raise no_such_resource()
    return Target(res, namespace, name, sub, watch)


def verb_of(call: Call, target: Target) -> str:
    """The verb for authorization: reads are get, list or watch; DELETE may be of a collection."""
    verb = VERBS.get(call.method, call.method.lower())
    if verb == "get" and not target.name:
        return "watch" if target.watch or call.flag("watch") else "list"
    if verb == "get" and target.watch:
        return "watch"
    if verb == "delete" and not target.name:
        return "deletecollection"
    return verb


def chosen_name(call: Call) -> str:
    """The one name that a field selector allows; it is authorized like the object."""
    for term in call.query.get("fieldSelector", "").split(","):
        if term.startswith("metadata.name="):
            return term.removeprefix("metadata.name=").removeprefix("=")
    return ""


def route(ctx: Context, call: Call) -> Reply | Watch:
    """Answer one call. Raises ApiError."""
    if call.path.startswith("//"):
        raise page_not_found()
    try:
        target = parse(call.path)
    except ApiError:
        auth.check_path(ctx, call)
        raise
    if target is None:
        auth.check_path(ctx, call)
        return discovery.route(ctx, call)
    if target.res in ALPHA and target.res.api_version not in ctx.alpha:
        raise no_such_resource()
    if target.res in LATER and target.res not in ctx.resources:
        raise no_such_resource()
    verb = verb_of(call, target)
    name = target.name or chosen_name(call)
    auth.check(ctx, call.user, verb, target.res, target.namespace, name, target.sub)
    if target.sub:
        return route_subresource(ctx, call, target, verb)
    if not target.res.stored:
        return route_review(ctx, call, target, verb)
    return route_object(ctx, call, target, verb)


def route_object(ctx: Context, call: Call, target: Target, verb: str) -> Reply | Watch:
    res, namespace, name = target.res, target.namespace, target.name
    if verb == "watch":
        return watching.open_watch(ctx, call, res, namespace, name)
    placed = bool(namespace) == res.namespaced
    if name and placed:
        match verb:
            case "get":
                return crud.handle_get(ctx, call, res, namespace, name)
            case "update":
                return crud.handle_replace(ctx, call, res, namespace, name, "")
            case "patch":
                return patching.handle_patch(ctx, call, res, namespace, name, "")
            case "delete":
                return crud.handle_delete(ctx, call, res, namespace, name)
    elif not name:
        if verb == "list":
            return listing.handle_list(ctx, call, res, namespace)
        if verb == "create" and placed:
            return crud.handle_create(ctx, call, res, namespace)
        if verb == "deletecollection" and placed and verb in res.verbs:
            return crud.handle_delete_collection(ctx, call, res, namespace)
    raise method_not_allowed()


def route_subresource(ctx: Context, call: Call, target: Target, verb: str) -> Reply:
    res, namespace, name, sub = target.res, target.namespace, target.name, target.sub
    subresource = res.sub(sub)
    if subresource is None or verb not in subresource.verbs:
        raise method_not_allowed()
    if sub == "scale":
        return patching.handle_scale(ctx, call, res, namespace, name, verb)
    if sub in {"status", "ephemeralcontainers", "resize", "approval"}:
        match verb:
            case "get":
                return crud.handle_get(ctx, call, res, namespace, name)
            case "update":
                return crud.handle_replace(ctx, call, res, namespace, name, sub)
            case _:
                return patching.handle_patch(ctx, call, res, namespace, name, sub)
    match sub:
        case "binding":
            return binding.handle_binding(ctx, call, namespace, name)
        case "eviction":
            return binding.handle_eviction(ctx, call, namespace, name)
        case "token":
            return auth.handle_token_request(ctx, call, namespace, name)
        case "finalize":
            return crud.handle_finalize(ctx, call, res, name)
    crud.existing(ctx, res, namespace, name)
    raise ApiError(500, f"{res.plural}/{sub} needs a kubelet, and this server has none", reason="")


def route_review(ctx: Context, call: Call, target: Target, verb: str) -> Reply:
    """Kinds that are posted, not stored: bindings and the reviews."""
    if verb == "list" and "list" in target.res.verbs:
        return listing.handle_list(ctx, call, target.res, "")
    if verb != "create" or target.name or bool(target.namespace) != target.res.namespaced:
        raise method_not_allowed()
    if target.res.kind == "Binding":
        return binding.handle_binding(ctx, call, target.namespace, "")
    return auth.handle_review(ctx, call, target.res)
