"""Manifests of workloads to the objects that they would create in the cluster.

    Pod                                        itself, or the requested number of copies
    Deployment, ReplicaSet,                    the pods they would make, with the owners that a
    ReplicationController, StatefulSet, Job    scheduler reads, and claims of claim templates
    DaemonSet                                  a pod for each node that its controller would choose
    CronJob                                    the pods of one of its Jobs
    what a scheduler or admission reads        itself; replaces an object of the same name
    everything else                            is reported and left out

Bounds  PODS_MAX pods in all.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from asched_lab.apiserver.resources import (
    BY_KIND,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    Resource,
    find,
)
from asched_lab.whatif.daemon_sets import daemons
from asched_lab.whatif.objects import ADMISSION, CONTROLLERS, WATCHED, Json, key_of, kind_of
from asched_lab.whatif.store import RefusedError, Store

CLAIMS: Final = find("persistentvolumeclaims")
JOBS: Final = find("jobs")
QUOTAS: Final = find("resourcequotas")
PODS_MAX: Final = 500_000
TEMPLATE_HASH: Final = "pod-template-hash"
HASH_LENGTH: Final = 10


class WorkloadError(ValueError):
    """An invalid manifest, in one line."""


@dataclass(slots=True)
class Made:
    """`asked`: keys of pods, each with the workload it belongs to. `refused`: (workload, message of
    the API server).
    """

    asked: dict[str, str] = field(default_factory=dict)
    nodes: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def make(
    manifests: Iterable[Json], store: Store, *, replicas: int | None = None, namespace: str = ""
) -> Made:
    """Create the objects of manifests, those that pods may need first. `replicas`: of each
    workload, if given; `namespace`: of manifests without one. Raises WorkloadError.
    """
    made = Made()
    listed = [_placed(manifest, namespace or "default", store) for manifest in manifests]
    for manifest in sorted(listed, key=_is_workload):
        key = key_of(manifest)
        workload = f"{key[1]} {_named(manifest)}"
        res = BY_KIND.get(key)
        is_workload = _is_workload(manifest)
        if res is None or not (is_workload or key in WATCHED or key in ADMISSION):
            what = f"{kind_of(manifest)} {_named(manifest)}"
            made.notes.append(
                f"{what} is left out: asched does not read this kind and makes no pods of it"
            )
            continue
        if res.namespaced:
            _open_namespace(store, manifest["metadata"]["namespace"], made)
        try:
            if is_workload:
                _run(res, manifest, replicas, store, made, workload)
            else:
                _put(res, manifest, store, made)
        except RefusedError as refused:
            made.refused.append((workload, str(refused)))
    return made


def _placed(manifest: Json, namespace: str, store: Store) -> Json:
    """The manifest in its namespace, with the name that the API server would generate."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        raise WorkloadError(f"{manifest.get('kind', 'an object')} has no metadata.name")
    res = BY_KIND.get(key_of(manifest))
    if res is not None and res.namespaced and not metadata.get("namespace"):
        metadata = {**metadata, "namespace": namespace}
    ours = {k: v for k, v in metadata.items() if k not in ("resourceVersion", "uid")}
    if not ours.get("name") and not _is_pod(manifest):
        ours["name"] = store.new_identity(ours["generateName"])["name"]
    return {**manifest, "metadata": ours}


def _is_workload(manifest: Mapping[str, Any]) -> bool:
    return key_of(manifest) in CONTROLLERS or _is_pod(manifest)


def _is_pod(manifest: Mapping[str, Any]) -> bool:
    return key_of(manifest) == ("v1", "Pod")


def _named(manifest: Json) -> str:
    metadata = manifest["metadata"]
    name = metadata.get("name") or f"{metadata.get('generateName')}*"
    return f"{metadata['namespace']}/{name}" if metadata.get("namespace") else str(name)


def _open_namespace(store: Store, namespace: str, made: Made) -> None:
    if store.get(NAMESPACES, "", namespace) is None:
        store.create(NAMESPACES, {"metadata": {"name": namespace}})
        made.notes.append(f"namespace {namespace} does not exist; it is added")


def _put(res: Resource, manifest: Json, store: Store, made: Made) -> None:
    """Create it, or replace the object of the same name."""
    metadata = manifest["metadata"]
    namespace, name = metadata.get("namespace", ""), metadata.get("name", "")
    known = store.get(res, namespace, name)
    if known is not None:
        store.remove(res, known)
    obj = store.create(res, manifest, namespace)
    if manifest.get("status"):  # statuses of nodes and volumes carry data
        store.put(res, {**obj, "status": manifest["status"]})
    if res.kind == "Node" and known is None:
        made.nodes.append(name)


# --- pods ----------------------------------------------------------------------------------------


def _run(
    res: Resource, manifest: Json, replicas: int | None, store: Store, made: Made, workload: str
) -> None:
    """Only the first pod passes admission, since pods that differ in name alone get the same
    result; all of them do if a quota counts them.
    """
    namespace = manifest["metadata"]["namespace"]
    is_counted = any(q["metadata"]["namespace"] == namespace for q in store.listed(QUOTAS))
    first: tuple[Json, Json] | None = None
    for pod in _pods(res, manifest, replicas, store, made):
        if len(made.asked) >= PODS_MAX:
            raise WorkloadError(f"more than {PODS_MAX} pods")
        if first is not None and first[0] is pod["spec"]:
            like = first[1]
            identity = store.new_identity(pod["metadata"]["generateName"])
            stored = store.put(PODS, {**like, "metadata": {**like["metadata"], **identity}})
        else:
            stored = store.create(PODS, pod, namespace)
            if "generateName" in pod["metadata"] and not is_counted:
                first = pod["spec"], stored
        made.asked[f"{namespace}/{stored['metadata']['name']}"] = workload


def _pods(
    res: Resource, manifest: Json, replicas: int | None, store: Store, made: Made
) -> Iterator[Json]:
    spec = manifest.get("spec") or {}
    if res.kind == "Pod":
        yield from _copies(manifest, replicas)
        return
    if res.kind == "CronJob":
        store.create(res, manifest, manifest["metadata"]["namespace"])  # validates it
        res, manifest = JOBS, job_of(manifest)
        spec = manifest["spec"]
    if "template" not in spec:
        raise WorkloadError(f"{res.kind} {_named(manifest)} has no spec.template")
    if res.kind == "DaemonSet":
        yield from _daemons(res, manifest, replicas, store, made)
        return
    count = wanted(res.kind, spec) if replicas is None else replicas
    if res.kind == "Deployment":
        store.create(res, manifest, manifest["metadata"]["namespace"])  # validates it
        res, manifest = REPLICA_SETS, replica_set_of(manifest)
        spec = manifest["spec"]
    owner = _owner(res, manifest, store, made)
    template = spec["template"]
    metadata = of_template(template)
    if res.kind == "Job":
        for label in ("batch.kubernetes.io/job-name", "job-name"):
            metadata = _labelled(metadata, label, manifest["metadata"]["name"])
    for _ in range(count):
        named: Json = {"generateName": f"{manifest['metadata']['name']}-"}
        pod_spec = template.get("spec") or {}
        if res.kind == "StatefulSet":
            ordinal = _next_ordinal(manifest, store)
            named = {"name": f"{manifest['metadata']['name']}-{ordinal}"}
            pod_spec = _with_claims(manifest, named["name"], pod_spec, store)
            metadata = _labelled(metadata, "apps.kubernetes.io/pod-index", str(ordinal))
            metadata = _labelled(metadata, "statefulset.kubernetes.io/pod-name", named["name"])
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata, **named, "ownerReferences": [owner]},
            "spec": pod_spec,
        }


def _daemons(
    res: Resource, manifest: Json, replicas: int | None, store: Store, made: Made
) -> Iterator[Json]:
    """One pod for each node that has none of this DaemonSet yet."""
    if replicas is not None:
        made.notes.append(f"DaemonSet {_named(manifest)} has one pod per node, not --replicas")
    owner = _owner(res, manifest, store, made)
    metadata = manifest["metadata"]
    existing = {
        pod["spec"].get("nodeName")
        for pod in store.listed(PODS)
        if pod["metadata"]["namespace"] == metadata["namespace"] and _is_of(pod, manifest)
    }
    template = manifest["spec"]["template"]
    metadata = _labelled(of_template(template), "controller-revision-hash", _digest(template))
    metadata = _labelled(metadata, "pod-template-generation", "1")
    named: Json = {"generateName": f"{manifest['metadata']['name']}-"}
    for node, spec in daemons(template.get("spec") or {}, store.listed(NODES)):
        if node not in existing:
            owned = {**metadata, **named, "ownerReferences": [owner]}
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": owned, "spec": spec}


def _is_of(pod: Json, daemon_set: Json) -> bool:
    """Compare by name: a dump has the pods of a DaemonSet, but not the DaemonSet."""
    return any(
        (owner.get("kind"), owner.get("name")) == ("DaemonSet", daemon_set["metadata"]["name"])
        for owner in pod["metadata"].get("ownerReferences") or ()
    )


def job_of(cron_job: Json) -> Json:
    """The Job that a CronJob makes at its next time. Raises WorkloadError."""
    metadata, template = cron_job["metadata"], (cron_job.get("spec") or {}).get("jobTemplate")
    if not template:
        raise WorkloadError(f"CronJob {_named(cron_job)} has no spec.jobTemplate")
    named = {"name": f"{metadata['name']}-next", "namespace": metadata["namespace"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**of_template(template), **named},
        "spec": template.get("spec") or {},
    }


def of_template(template: Json) -> Json:
    """The metadata that the template gives to its pods."""
    metadata = template.get("metadata") or {}
    return {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}


def _copies(pod: Json, replicas: int | None) -> Iterator[Json]:
    if replicas is None:
        yield pod
        return
    metadata = {k: v for k, v in pod["metadata"].items() if k != "name"}
    base = pod["metadata"].get("name")
    for _ in range(replicas):
        named = {"generateName": f"{base}-"} if base else {}
        yield {**pod, "metadata": {**metadata, **named}}


def wanted(kind: str, spec: Json) -> int:
    """How many pods a controller runs at a time."""
    if kind != "Job":
        asked = spec.get("replicas")
        return 1 if asked is None else int(asked)
    at_a_time = spec.get("parallelism")
    most = 1 if at_a_time is None else int(at_a_time)
    completions = spec.get("completions")
    return most if completions is None else min(most, int(completions))


def replica_set_of(deployment: Json) -> Json:
    """A ReplicaSet as a Deployment makes it for its template, without pods."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    template = spec["template"]
    number = _digest(template)
    labels = {**((template.get("metadata") or {}).get("labels") or {}), TEMPLATE_HASH: number}
    selector = spec.get("selector") or {}
    chosen = {**(selector.get("matchLabels") or {}), TEMPLATE_HASH: number}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": metadata["name"],
        "uid": f"supposed-{number}",
        "controller": True,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{number}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": {
            "replicas": 0,
            "selector": {**selector, "matchLabels": chosen},
            "template": {
                **template,
                "metadata": {**(template.get("metadata") or {}), "labels": labels},
            },
        },
    }


def _owner(res: Resource, manifest: Json, store: Store, made: Made) -> Json:
    """A reference to the controller, which is stored if it does not exist yet."""
    metadata = manifest["metadata"]
    known = store.get(res, metadata["namespace"], metadata["name"])
    if known is None:
        known = store.create(res, manifest, metadata["namespace"])
    else:
        made.notes.append(f"{res.kind} {_named(manifest)} exists: these pods are added to it")
    return {
        "apiVersion": res.api_version,
        "kind": res.kind,
        "name": metadata["name"],
        "uid": known["metadata"].get("uid", ""),
        "controller": True,
    }


# --- stateful sets -------------------------------------------------------------------------------


def _next_ordinal(manifest: Json, store: Store) -> int:
    """The ordinal after the existing ones."""
    metadata = manifest["metadata"]
    number = int(((manifest["spec"].get("ordinals")) or {}).get("start") or 0)
    while store.get(PODS, metadata["namespace"], f"{metadata['name']}-{number}") is not None:
        number += 1
    return number


def _with_claims(manifest: Json, pod: str, spec: Json, store: Store) -> Json:
    """The pod's spec with the claims of its set's templates; missing claims are made."""
    namespace = manifest["metadata"]["namespace"]
    spec, claims = claims_of(manifest, pod, spec)
    for claim in claims:
        if store.get(CLAIMS, namespace, claim["metadata"]["name"]) is None:
            store.create(CLAIMS, claim, namespace)
    return spec


def claims_of(manifest: Json, pod: str, spec: Json) -> tuple[Json, list[Json]]:
    """(the spec of a StatefulSet's pod with the claims of the set's templates, these claims)."""
    volumes, claims = list(spec.get("volumes") or ()), []
    chosen = (manifest["spec"].get("selector") or {}).get("matchLabels") or {}
    for template in manifest["spec"].get("volumeClaimTemplates") or ():
        own = template["metadata"]
        name, claim = own["name"], f"{own['name']}-{pod}"
        labels = {**(own.get("labels") or {}), **chosen}
        metadata = {
            **own,
            "name": claim,
            "namespace": manifest["metadata"]["namespace"],
            "labels": labels,
        }
        spec_of = template.get("spec") or {}
        kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        claims.append({**kind, "metadata": metadata, "spec": spec_of})
        volumes = [volume for volume in volumes if volume["name"] != name]
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
    return {**spec, "volumes": volumes}, claims


def _digest(template: Json) -> str:
    digest = hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS))
    return digest.hexdigest()[:HASH_LENGTH]


def _labelled(metadata: Json, key: str, value: str) -> Json:
    return {**metadata, "labels": {**(metadata.get("labels") or {}), key: value}}
