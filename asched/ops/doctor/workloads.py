"""`asched doctor`: find the workloads that run a scheduler, with their names, lease and account.

Rules   a scheduler is a container of a Deployment, or of a static pod of kube-scheduler, found by
        its program or image. Names and lease are read from its command line and its mounted
        ConfigMap, as the program would.
Bounds  LIST_MAX Deployments.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import yaml
from msgspec.structs import replace

from asched import names
from asched.core.model.decode import MalformedError, parse
from asched.ops.doctor.notes import JsonObject
from asched.ops.doctor.reader import ClusterReader, namespaced, or_none

KUBE_SYSTEM: Final = "kube-system"
KUBE_SCHEDULER: Final = "kube-scheduler"
OURS: Final = "asched"

Lease = tuple[str, str]


class ServedWorkload(msgspec.Struct, frozen=True):
    """A workload that runs a scheduler: its names and its lease (None: none)."""

    workload: str  # namespace/name
    scheduler_names: frozenset[str]
    lease: Lease | None
    is_ours: bool
    #: Namespace and name of its service account.
    account: tuple[str, str] = ("", "")
    #: The scheduler's command line, and the configuration file that it names ("" if not read).
    words: tuple[str, ...] = ()
    text: str = ""
    #: The Deployment, or the static pod.
    manifest: JsonObject = msgspec.field(default_factory=dict)

    def runs_on(self, host: str) -> bool:
        """Whether a host is, or was, a pod of this Deployment."""
        name = re.escape(self.workload.partition("/")[2])
        return re.fullmatch(rf"{name}-[a-z0-9]+-[a-z0-9]+", host) is not None

    @property
    def replicas(self) -> int:
        return int((self.manifest.get("spec") or {}).get("replicas", 1))


async def scheduler_workloads(reader: ClusterReader) -> list[ServedWorkload]:
    """All schedulers; another product's only if it has replicas. Raises ClientError."""
    deployments = await reader.items("/apis/apps/v1/deployments")
    component = f"component={KUBE_SCHEDULER}"
    pods = await reader.items(namespaced("v1", KUBE_SYSTEM, "pods"), labelSelector=component)
    owned = [(d, (d["spec"].get("template") or {}).get("spec") or {}) for d in deployments]
    # Static pods; pods of a Deployment are covered by it.
    owned += [(p, p["spec"]) for p in pods if not _is_of_replica_set(p)]
    found = await asyncio.gather(*(_served(reader, obj, spec) for obj, spec in owned))
    return [served for served in found if served is not None]


def _is_of_replica_set(pod: JsonObject) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner.get("kind") == "ReplicaSet" for owner in owners)


async def _served(
    reader: ClusterReader, obj: JsonObject, spec: JsonObject
) -> ServedWorkload | None:
    """The names and lease of the first scheduler among a pod's containers."""
    namespace = obj["metadata"]["namespace"]
    for container in spec.get("containers") or ():
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        program = words[0].rpartition("/")[2] if container.get("command") else ""
        image = container.get("image", "").rpartition("/")[2].partition("@")[0].partition(":")[0]
        is_ours = OURS in (program, image)
        if not is_ours and KUBE_SCHEDULER not in (program, image):
            continue
        if is_ours and "run" not in words and program != KUBE_SCHEDULER:
            continue
        given = flags_of(words)
        if "shadow" in given:  # it binds no pod
            continue
        text = await _mounted(reader, namespace, spec, container, given)
        try:
            document = parse(yaml.safe_load, text)
        except MalformedError:
            document = None
        return replace(
            served_by(f"{namespace}/{obj['metadata']['name']}", given, document, is_ours=is_ours),
            account=(namespace, str(spec.get("serviceAccountName") or "default")),
            words=tuple(words),
            text=text,
            manifest=obj,
        )
    return None


def flags_of(words: Iterable[str]) -> dict[str, str]:
    """`--name=value` and `--name value` of a command line, by name."""
    given: dict[str, str] = {}
    waiting = ""
    for word in words:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            waiting = "" if equals else name
            given[name.replace("_", "-")] = value if equals else "true"
        elif waiting:
            given[waiting] = word
            waiting = ""
    return given


def served_by(
    workload: str, given: Mapping[str, str], document: Any, *, is_ours: bool
) -> ServedWorkload:
    """Names and lease, from flags and the configuration document (None: no file)."""
    is_seen = isinstance(document, Mapping)
    document = document if is_seen else {}
    profiles = [p for p in document.get("profiles") or () if isinstance(p, Mapping)]
    default = names.DEFAULT_SCHEDULER_NAME
    if is_ours and not is_seen:
        # Without a readable file: the most likely name.
        default = given.get("scheduler-name", names.OUR_SCHEDULER_NAME)
    served = frozenset(str(p.get("schedulerName") or default) for p in profiles) or {default}
    election = document.get("leaderElection")
    election = election if isinstance(election, Mapping) else {}
    elects = given.get("leader-elect", str(election.get("leaderElect", True)).lower())
    lease_name = KUBE_SCHEDULER
    if is_ours and names.DEFAULT_SCHEDULER_NAME not in served:
        lease_name = names.OUR_SCHEDULER_NAME
    lease = (
        given.get("leader-elect-resource-namespace")
        or election.get("resourceNamespace")
        or KUBE_SYSTEM,
        given.get("leader-elect-resource-name") or election.get("resourceName") or lease_name,
    )
    held = lease if elects != "false" else None
    return ServedWorkload(workload, frozenset(served), held, is_ours)


async def _mounted(
    reader: ClusterReader,
    namespace: str,
    spec: JsonObject,
    container: JsonObject,
    given: JsonObject,
) -> str:
    """The configuration file that a container's flags name, if a ConfigMap contains it."""
    file = given.get("config", "")
    for mount in container.get("volumeMounts") or ():
        folder = mount["mountPath"].rstrip("/") + "/"
        if not file.startswith(folder):
            continue
        for volume in spec.get("volumes") or ():
            source = volume.get("configMap") or {}
            if volume["name"] != mount["name"] or not source:
                continue
            path = namespaced("v1", namespace, "configmaps", source["name"])
            data = (await or_none(reader.get(path)) or {}).get("data") or {}
            paths = {item["path"]: item["key"] for item in source.get("items") or ()}
            wanted = file.removeprefix(folder)
            return str(data.get(paths.get(wanted, wanted), ""))
    return ""
