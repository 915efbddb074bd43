"""`asched doctor`: whether an installation runs, and whether it tries the pods of its names.

Rules   an installation without a ready replica is a problem, with what its pods wait for; so are
        pods that have waited for UNTRIED_S while none was tried. Some replicas that are not ready,
        or that restart, are a warning as long as another one is ready.
Bounds  LIST_MAX pods of the installation, and of each scheduler name.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from asched.core.cluster.pod_groups import COSCHEDULING_LABEL
from asched.kube.errors import ClientError
from asched.ops.doctor.notes import Finding, JsonObject, State, ago, seconds_since, unreadable
from asched.ops.doctor.reader import ClusterReader, namespaced
from asched.ops.doctor.workloads import ServedWorkload

REPLICAS: Final = "replicas"
PODS: Final = "waiting pods"
#: A leader tries a new pod within a second; a new one takes over within 20.
UNTRIED_S: Final = 60.0
#: Restarts within this time are a crash loop, whatever the container does at the moment.
RESTARTED_S: Final = 600.0
RESTARTS_MIN: Final = 3

#: What a container or pod waits for -> the remedy, with {ns}, {pod} and {workload}.
CURES: Final = {
    "ErrImagePull": "correct the image of {workload}, or the registry's credentials",
    "ImagePullBackOff": "correct the image of {workload}, or the registry's credentials",
    "InvalidImageName": "correct the image of {workload}",
    "CreateContainerConfigError": "create the ConfigMap or Secret that the message names",
    "ContainerCreating": "kubectl -n {ns} describe pod {pod}: a volume or the network is missing",
    "CrashLoopBackOff": "kubectl -n {ns} logs {pod} --previous; asched config check FILE",
    "OOMKilled": "raise the memory limit of {workload} (docs/operate.md)",
    "Unschedulable": "free or add a node: asched must have a node of another scheduler",
    "NotReady": "kubectl -n {ns} logs {pod}; its /readyz names the check that fails",
    "FailedCreate": "correct what the message names, then kubectl -n {ns} rollout restart"
    " deployment/{name}",
}
DESCRIBE: Final = "kubectl -n {ns} describe pod {pod}"


async def check_replicas(
    reader: ClusterReader, own: Sequence[ServedWorkload], now: datetime
) -> list[Finding]:
    """A finding about each Deployment of the checked installation."""
    found: list[Finding] = []
    for workload in own:
        if not workload.manifest:
            continue
        try:
            pods = await _pods_of(reader, workload)
        except ClientError as error:
            found.append(unreadable(REPLICAS, f"pods of {workload.workload}", error))
            continue
        found.append(_replicas(workload, pods, now))
    return found


async def _pods_of(reader: ClusterReader, workload: ServedWorkload) -> list[JsonObject]:
    selector = (workload.manifest["spec"].get("selector") or {}).get("matchLabels") or {}
    if not selector:
        return []
    labels = ",".join(f"{key}={value}" for key, value in selector.items())
    namespace = workload.workload.partition("/")[0]
    pods = await reader.items(namespaced("v1", namespace, "pods"), labelSelector=labels)
    return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]


def _replicas(workload: ServedWorkload, pods: Sequence[JsonObject], now: datetime) -> Finding:
    namespace, _, name = workload.workload.partition("/")
    ready = sum(map(_is_ready, pods))
    text = f"{workload.workload} has {ready} of {workload.replicas} replicas ready"
    words = {"ns": namespace, "name": name, "workload": f"deployment {name}", "pod": ""}
    if not workload.replicas:
        cure = f"kubectl -n {namespace} scale deployment {name} --replicas=2"
        return Finding(REPLICAS, State.PROBLEM, f"{workload.workload} is scaled to 0", cure)
    for pod, reason, message in [*_reasons(pods, now), *_not_created(workload, pods)]:
        said = f"{pod['metadata']['name']}: {reason}" if pod else reason
        words["pod"] = pod["metadata"]["name"] if pod else ""
        cure = CURES.get(reason, DESCRIBE).format(**words)
        more = f" ({' '.join(message.split())[:300]})" if message else ""
        state = State.WARNING if ready else State.PROBLEM
        return Finding(REPLICAS, state, f"{text}; {said}{more}", cure)
    if ready < workload.replicas:
        cure = f"kubectl -n {namespace} get pods; wait for a rollout that has begun"
        return Finding(REPLICAS, State.WARNING if ready else State.PROBLEM, text, cure)
    return Finding(REPLICAS, State.OK, text)


def _is_ready(pod: JsonObject) -> bool:
    return _condition(pod, "Ready").get("status") == "True"


def _condition(obj: JsonObject, kind: str) -> JsonObject:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((entry for entry in conditions if entry.get("type") == kind), {})


def _reasons(pods: Iterable[JsonObject], now: datetime) -> Iterator[tuple[JsonObject, str, str]]:
    """(pod, reason, message) of pods that are not ready or restart, the first that says why."""
    unexplained: list[tuple[JsonObject, str, str]] = []
    for pod in pods:
        status = pod.get("status") or {}
        statuses = [
            *(status.get("initContainerStatuses") or ()),
            *(status.get("containerStatuses") or ()),
        ]
        for container in statuses:
            waiting = (container.get("state") or {}).get("waiting") or {}
            ended = (container.get("lastState") or {}).get("terminated") or {}
            if waiting.get("reason") and waiting["reason"] != "ContainerCreating":
                yield pod, _ended(waiting["reason"], ended), _said(waiting, ended)
            elif _restarts(container, ended, now):
                yield pod, _ended("CrashLoopBackOff", ended), _said({}, ended)
            elif waiting:
                unexplained.append((pod, "ContainerCreating", waiting.get("message") or ""))
        scheduled = _condition(pod, "PodScheduled")
        if scheduled.get("status") == "False":
            yield pod, "Unschedulable", scheduled.get("message") or ""
        elif status.get("phase") == "Running" and not _is_ready(pod):
            unexplained.append((pod, "NotReady", _condition(pod, "Ready").get("message") or ""))
        elif status.get("phase") == "Failed":
            unexplained.append((pod, status.get("reason") or "Failed", status.get("message") or ""))
        elif status.get("phase") == "Pending" and not statuses:
            unexplained.append((pod, "ContainerCreating", ""))
    yield from unexplained


def _restarts(container: JsonObject, ended: JsonObject, now: datetime) -> bool:
    age_s = seconds_since(ended.get("finishedAt"), now)
    is_recent = age_s is not None and age_s < RESTARTED_S
    return is_recent and int(container.get("restartCount") or 0) >= RESTARTS_MIN


def _ended(reason: str, ended: JsonObject) -> str:
    return "OOMKilled" if ended.get("reason") == "OOMKilled" else reason


def _said(waiting: JsonObject, ended: JsonObject) -> str:
    """The last words of a container that ended, else what the kubelet says."""
    if ended.get("message"):
        return f"exit code {ended.get('exitCode')}: {ended['message']}"
    if ended.get("exitCode") is not None:
        return f"exit code {ended['exitCode']}"
    return str(waiting.get("message") or "")


def _not_created(
    workload: ServedWorkload, pods: Sequence[JsonObject]
) -> Iterator[tuple[JsonObject | None, str, str]]:
    """Why the Deployment's controller cannot create a pod: a quota, an account, a webhook."""
    failure = _condition(workload.manifest, "ReplicaFailure")
    if len(pods) < workload.replicas and failure.get("status") == "True":
        yield None, str(failure.get("reason") or "FailedCreate"), str(failure.get("message") or "")


async def check_waiting(
    reader: ClusterReader, scheduler_names: Iterable[str], now: datetime, *, is_installed: bool
) -> list[Finding]:
    """A finding for each scheduler name whose pods wait without an attempt."""
    found: list[Finding] = []
    for name in scheduler_names:
        selector = f"spec.schedulerName={name},spec.nodeName=,status.phase=Pending"
        try:
            pods = await reader.items("/api/v1/pods", fieldSelector=selector)
        except ClientError as error:
            found.append(unreadable(PODS, "pods of all namespaces", error))
            continue
        waiting = [pod for pod in pods if not _waits_for_objects(pod)]
        ages_s = {
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": age_s
            for pod in waiting
            if not _condition(pod, "PodScheduled")
            and (age_s := seconds_since(pod["metadata"].get("creationTimestamp"), now)) is not None
            and age_s >= UNTRIED_S
        }
        if ages_s:
            found.append(_untried(name, ages_s, len(waiting), is_installed=is_installed))
    return found


def _waits_for_objects(pod: JsonObject) -> bool:
    """Whether a pod may rightly be untried: gates, other pods of its group, claims that are to be
    created.
    """
    labels, spec = pod["metadata"].get("labels") or {}, pod["spec"]
    fields = ("schedulingGates", "schedulingGroup", "workloadRef", "resourceClaims")
    return any(spec.get(field) for field in fields) or COSCHEDULING_LABEL in labels


def _untried(name: str, ages_s: dict[str, float], waiting: int, *, is_installed: bool) -> Finding:
    oldest = max(ages_s, key=lambda pod: ages_s[pod])
    text = (
        f'"{name}": {len(ages_s)} of {waiting} waiting pods have not been tried;'
        f" {oldest} was created {ago(ages_s[oldest])}"
    )
    if not is_installed:
        cure = "install or start a scheduler of that name (docs/install.md)"
        return Finding(PODS, State.WARNING, text, cure)
    if len(ages_s) < waiting:
        return Finding(PODS, State.WARNING, text, f"asched explain {oldest}")
    cure = "if replicas and lease are fine: kubectl logs of the leader, then restart it"
    return Finding(PODS, State.PROBLEM, text, cure)
