"""The pods of a workload in a plan, made as its controller would make them so that the controller
adopts them, and the objects they need.

    Pod                                   itself, or the requested number of copies
    ReplicaSet, ReplicationController     adopt what their selector matches
    Deployment                            adopts the ReplicaSet made of its template
    StatefulSet                           adopts pods with its names; they are of its revision once
                                          they have the label, and have claims of its templates
    Job                                   adopts what its selector matches, so it is given one;
                                          the first pods, as many as run at a time
    DaemonSet                             adopts a pod for each node that it would choose
    CronJob                               makes its Jobs later: nothing can be planned

Source  kubernetes/kubernetes v1.36 pkg/controller (statefulset, job, daemon, replicaset)
"""

import secrets
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from asched.names import PREFIX
from asched_lab.whatif.daemon_sets import daemons
from asched_lab.whatif.objects import ADMISSION, WATCHED, Json, key_of
from asched_lab.whatif.snapshot import Snapshot
from asched_lab.whatif.workloads import claims_of, of_template, replica_set_of, wanted

#: Keeps planned pods back until all of them exist; as a label it marks a Job's pods.
GATE: Final = f"{PREFIX}/plan"
#: Random bytes in the name of a pod that is made for a controller.
SUFFIX_BYTES: Final = 4
POD: Final = ("v1", "Pod")
DEPLOYMENT: Final = ("apps/v1", "Deployment")
STATEFUL_SET: Final = ("apps/v1", "StatefulSet")
DAEMON_SET: Final = ("apps/v1", "DaemonSet")
JOB: Final = ("batch/v1", "Job")
CRON_JOB: Final = ("batch/v1", "CronJob")
SETS: Final = (("apps/v1", "ReplicaSet"), ("v1", "ReplicationController"))
PLANNED: Final = (POD, DEPLOYMENT, STATEFUL_SET, DAEMON_SET, JOB, *SETS)
#: Labels by which a DaemonSet finds pods of its first template, and a StatefulSet and a Job theirs.
GENERATION: Final = "pod-template-generation"
ORDINAL: Final = "apps.kubernetes.io/pod-index"
SET_POD: Final = "statefulset.kubernetes.io/pod-name"
JOB_NAMES: Final = ("batch.kubernetes.io/job-name", "job-name")
INDEX: Final = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"


class NoPlanError(Exception):
    """There is no plan, or it is no longer valid: lines that say why."""


class Parts(NamedTuple):
    """`before`: objects that must exist before the pods; `owners`: their owners, in order of
    creation.
    """

    pods: list[Json]
    owners: list[Json]
    before: list[Json]


def taken_apart(
    manifest: Json, replicas: int | None, namespace: str, plan: str, snapshot: Snapshot
) -> Parts:
    """Everything with names. `plan` is its id. Raises NoPlanError for what cannot be planned."""
    key = key_of(manifest)
    metadata = {"namespace": namespace, **(manifest.get("metadata") or {})}
    placed: Json = {**manifest, "metadata": metadata}
    workload = f"{key[1]} {metadata.get('namespace')}/{metadata.get('name', '')}"
    if key == CRON_JOB:
        raise NoPlanError(
            f"{workload}: its Jobs are made at their time, so none can be planned; plan one of"
            f" them: kubectl create job NAME --from=cronjob/{metadata.get('name', '')}"
            " --dry-run=client -o yaml"
        )
    if key not in PLANNED:
        if key in WATCHED or key in ADMISSION:
            raise NoPlanError(f"{workload}: a plan makes pods only; create it first")
        return Parts([], [], [])
    if key == POD:
        count = 1 if replicas is None else replicas
        return Parts([_named_pod(placed, alone=replicas is None) for _ in range(count)], [], [])
    if "template" not in (manifest.get("spec") or {}):
        raise NoPlanError(f"{workload} has no spec.template")
    if not metadata.get("name"):
        raise NoPlanError(f"{workload} has no metadata.name")
    if key == DAEMON_SET:
        if replicas is not None:
            raise NoPlanError(f"{workload}: it has one pod per node, not --replicas")
        return _of_daemon_set(placed, snapshot)
    count = wanted(key[1], manifest["spec"]) if replicas is None else replicas
    if key == JOB:
        return _of_job(placed, count, plan, workload)
    scaled: Json = {**placed, "spec": {**placed["spec"], "replicas": count}}
    if key == STATEFUL_SET:
        return _of_stateful_set(scaled, count, snapshot)
    if key != DEPLOYMENT:
        return Parts(list(_of_set(scaled, count)), [scaled], [])
    replica_set = replica_set_of(scaled)
    of_set = {n: v for n, v in replica_set["metadata"].items() if n != "ownerReferences"}
    replica_set = {
        **replica_set,
        "metadata": of_set,
        "spec": {**replica_set["spec"], "replicas": count},
    }
    return Parts(list(_of_set(replica_set, count)), [replica_set, scaled], [])


def selected(owner: Json) -> dict[str, str]:
    """The labels by which an owner finds its pods."""
    selector = owner["spec"].get("selector")
    if owner["kind"] == "ReplicationController":
        return dict(
            selector or (owner["spec"]["template"].get("metadata") or {}).get("labels") or {}
        )
    return dict((selector or {}).get("matchLabels") or {})


def _named_pod(pod: Json, *, alone: bool) -> Json:
    """Give the pod a name of its own if it is one of several or has none."""
    metadata = dict(pod["metadata"])
    base = metadata.pop("generateName", "") or f"{metadata.get('name', 'pod')}-"
    if not (alone and metadata.get("name")):
        metadata["name"] = f"{base}{_suffix()}"
    return {**pod, "metadata": metadata}


def _suffix() -> str:
    return secrets.token_hex(SUFFIX_BYTES)


def _pod(owner: Json, name: str, spec: Json, labels: Json, annotations: Json | None = None) -> Json:
    """A pod of an owner's template. The owner's uid is not known yet, so the reference has an
    invented uid; by the reference a scheduler finds the set.
    """
    template = of_template(owner["spec"]["template"])
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "controller": True,
    }
    metadata: Json = {
        **template,
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": [reference],
    }
    if labels:
        metadata["labels"] = {**template.get("labels", {}), **labels}
    if annotations:
        metadata["annotations"] = {**template.get("annotations", {}), **annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _of_set(owner: Json, count: int) -> Iterator[Json]:
    spec = owner["spec"]["template"].get("spec") or {}
    for _ in range(count):
        yield _pod(owner, f"{owner['metadata']['name']}-{_suffix()}", spec, {})


def _of_stateful_set(owner: Json, count: int, snapshot: Snapshot) -> Parts:
    """Existing claims are used, as the controller does."""
    name, namespace = owner["metadata"]["name"], owner["metadata"]["namespace"]
    first = int((owner["spec"].get("ordinals") or {}).get("start") or 0)
    existing = {
        claim["metadata"]["name"]
        for claim in snapshot.objects.get(("v1", "PersistentVolumeClaim"), ())
        if claim["metadata"].get("namespace") == namespace
    }
    pods, claims = [], []
    for ordinal in range(first, first + count):
        own = f"{name}-{ordinal}"
        template = owner["spec"]["template"].get("spec") or {}
        spec, asked = claims_of(owner, own, template)
        spec = {**spec, "hostname": own}
        if owner["spec"].get("serviceName"):
            spec["subdomain"] = owner["spec"]["serviceName"]
        claims += [claim for claim in asked if claim["metadata"]["name"] not in existing]
        pods.append(_pod(owner, own, spec, {ORDINAL: str(ordinal), SET_POD: own}))
    return Parts(pods, [owner], claims)


def _of_daemon_set(owner: Json, snapshot: Snapshot) -> Parts:
    template = owner["spec"]["template"].get("spec") or {}
    pods = [
        _pod(owner, f"{owner['metadata']['name']}-{_suffix()}", spec, {GENERATION: "1"})
        for _, spec in daemons(template, snapshot.objects.get(("v1", "Node"), ()))
    ]
    return Parts(pods, [owner], [])


def _of_job(manifest: Json, count: int, plan: str, workload: str) -> Parts:
    """With a selector of its own a Job adopts pods that it has not made, and completes their
    labels.
    """
    spec, name = manifest["spec"], manifest["metadata"]["name"]
    if spec.get("suspend"):
        raise NoPlanError(f"{workload} is suspended, so it has no pods")
    if spec.get("managedBy"):
        raise NoPlanError(f"{workload} is managed by {spec['managedBy']}, which adopts no pods")
    completions = spec.get("completions")
    count = count if completions is None else min(count, int(completions))
    template = spec["template"]
    marks: dict[str, str] = {}
    if not spec.get("manualSelector"):
        marks = {GATE: plan, **dict.fromkeys(JOB_NAMES, name)}
        labels = {**((template.get("metadata") or {}).get("labels") or {}), **marks}
        template = {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}}
        chosen = {GATE: plan, JOB_NAMES[0]: name}
        spec = {**spec, "manualSelector": True, "selector": {"matchLabels": chosen}}
    spec = {**spec, "parallelism": count, "template": template}
    owner = {**manifest, "spec": spec}
    pod_spec = template.get("spec") or {}
    pods = []
    for index in range(count):
        if spec.get("completionMode") != "Indexed":
            pods.append(_pod(owner, f"{name}-{_suffix()}", pod_spec, {}))
            continue
        numbered = {INDEX: str(index)}
        failures = {INDEX_FAILURES: "0"} if spec.get("backoffLimitPerIndex") is not None else {}
        own = _indexed(pod_spec, f"{name}-{index}")
        named = f"{name}-{index}-{_suffix()}"
        pods.append(_pod(owner, named, own, numbered, {**numbered, **failures}))
    return Parts(pods, [owner], [])


def _indexed(spec: Json, hostname: str) -> Json:
    """Set the variable by which the Job's controller gives each container its index."""
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    variable: Any = {"name": INDEX_VARIABLE, "valueFrom": source}
    changed = {
        kind: [
            container
            if any(entry["name"] == INDEX_VARIABLE for entry in container.get("env") or ())
            else {**container, "env": [*(container.get("env") or ()), variable]}
            for container in spec[kind]
        ]
        for kind in ("initContainers", "containers")
        if spec.get(kind)
    }
    return {"hostname": hostname, **spec, **changed}
