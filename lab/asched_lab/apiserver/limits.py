"""LimitRange and ResourceQuota, as far as they apply to new pods."""

from decimal import Decimal
from typing import Any, Final

from asched_lab.apiserver import quantities
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.defaults import containers_of
from asched_lab.apiserver.resources import Resource, find
from asched_lab.apiserver.statuses import refused

JsonObject = dict[str, Any]

LIMIT_RANGES: Final = find("limitranges")
QUOTAS: Final = find("resourcequotas")
NOTE: Final = "kubernetes.io/limit-ranger"


def _in_namespace(ctx: Context, res: Resource, namespace: str) -> list[JsonObject]:
    table = ctx.store.table(res.storage)
    return [table.records[key].obj for key in table.range(namespace)] if table.records else []


def _container_items(ctx: Context, pod: JsonObject) -> list[JsonObject]:
    return [
        item
        for limit_range in _in_namespace(ctx, LIMIT_RANGES, pod["metadata"]["namespace"])
        for item in limit_range["spec"]["limits"] or ()
        if item["type"] == "Container"
    ]


def apply_ranges(ctx: Context, pod: JsonObject) -> None:
    """Fill in requests and limits of containers."""
    for item in _container_items(ctx, pod):
        _fill_containers(pod, item)


def check_ranges(ctx: Context, res: Resource, pod: JsonObject) -> None:
    """Check containers against the bounds. Raises ApiError 403."""
    for item in _container_items(ctx, pod):
        _check_containers(res, pod, item)


def _fill_containers(pod: JsonObject, item: JsonObject) -> None:
    notes = []
    for place, container in containers_of(pod["spec"]):
        kind = "init container" if place.startswith("init") else "container"
        resources = container["resources"]
        for member, source, word in (
            ("requests", "defaultRequest", "request"),
            ("limits", "default", "limit"),
        ):
            given = []
            for name, amount in sorted(item.get(source, {}).items()):
                if name not in resources.get(member, {}):
                    resources.setdefault(member, {})[name] = amount
                    given.append(name)
            if given:
                notes.append(f"{', '.join(given)} {word} for {kind} {container['name']}")
    if notes:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[NOTE] = f"LimitRanger plugin set: {'; '.join(notes)}"


def _check_containers(res: Resource, pod: JsonObject, item: JsonObject) -> None:
    for _, container in containers_of(pod["spec"]):
        resources = container["resources"]
        for name, bound in sorted(item.get("max", {}).items()):
            for member, word in (("limits", "limit"), ("requests", "request")):
                amount = resources.get(member, {}).get(name)
                if amount is not None and quantities.value(amount) > quantities.value(bound):
                    why = f"maximum {name} usage per Container is {bound}, but {word} is {amount}"
                    raise refused(res, pod["metadata"]["name"], why)
        for name, bound in sorted(item.get("min", {}).items()):
            amount = resources.get("requests", {}).get(name)
            if amount is not None and quantities.value(amount) < quantities.value(bound):
                why = f"minimum {name} usage per Container is {bound}, but request is {amount}"
                raise refused(res, pod["metadata"]["name"], why)


def pod_usage(pod: JsonObject) -> dict[str, Decimal]:
    """The usage of one pod in a quota."""
    usage = {"pods": Decimal(1), "count/pods": Decimal(1)}
    for container in pod["spec"]["containers"] or ():
        for member in ("requests", "limits"):
            for name, amount in container["resources"].get(member, {}).items():
                for label in (
                    {f"{member}.{name}", name} if member == "requests" else {f"{member}.{name}"}
                ):
                    usage[label] = usage.get(label, Decimal(0)) + quantities.value(amount)
    return usage


def charge_quota(ctx: Context, res: Resource, pod: JsonObject) -> None:
    """Refuse a pod that exceeds a quota's status. Raises ApiError 403.

    A controller counts the usage; here the stored status decides.
    """
    quotas = _in_namespace(ctx, QUOTAS, pod["metadata"]["namespace"])
    if not quotas:
        return
    usage = pod_usage(pod)
    for quota in quotas:
        status = quota["status"]
        over = []
        for name, hard in sorted(status.get("hard", {}).items()):
            used = status.get("used", {}).get(name, "0")
            requested = usage.get(name)
            if requested and quantities.value(used) + requested > quantities.value(hard):
                over.append((name, quantities.canonical(str(requested)), used, hard))
        if over:
            requested_text = ",".join(f"{name}={requested}" for name, requested, _, _ in over)
            used_text = ",".join(f"{name}={used}" for name, _, used, _ in over)
            hard_text = ",".join(f"{name}={hard}" for name, _, _, hard in over)
            why = (
                f"exceeded quota: {quota['metadata']['name']}, requested: {requested_text},"
                f" used: {used_text}, limited: {hard_text}"
            )
            raise refused(res, pod["metadata"]["name"], why)
