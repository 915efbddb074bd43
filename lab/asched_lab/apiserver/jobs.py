"""Job: pods in parallel until enough of them succeeded, or too many failed.

As 1.38, a Job without an owner gets a Workload and a PodGroup first, which its pods name: with a
gang policy if `spec.scheduling` asks for one (KEP-5547, gate WorkloadWithJob).

Suspending, indexed completions and backoffLimit work; deadlines, the time to live after the end and
the policies for failures and success are stored without an effect.
"""

from typing import Any, Final

from asched_lab.apiserver.dependents import (
    FINISHED,
    Dependents,
    condition,
    controller_of,
    is_ready,
    pod_of,
)
from asched_lab.apiserver.replicas import CREATED_PER_SYNC
from asched_lab.apiserver.resources import JOB_GROUPS, PODS, WORKLOADS, Resource
from asched_lab.apiserver.store import Record

JsonObject = dict[str, Any]

INDEX: Final = "batch.kubernetes.io/job-completion-index"


def sync(dependents: Dependents, res: Resource, record: Record) -> None:
    """Create or delete pods as the Job requires, and write its status. Raises ApiError."""
    obj, spec, old = record.obj, record.obj["spec"], record.obj.get("status") or {}
    if any(entry["type"] in {"Complete", "Failed"} for entry in old.get("conditions") or ()):
        return
    pods = [pod.obj for pod in dependents.of(obj["metadata"]["uid"], PODS)]
    active = [
        pod
        for pod in pods
        if pod["status"]["phase"] not in FINISHED and not pod["metadata"].get("deletionTimestamp")
    ]
    is_indexed = spec["completionMode"] == "Indexed"
    done = [pod for pod in pods if pod["status"]["phase"] == "Succeeded"]
    completed = _numbers(old.get("completedIndexes", "")) | {_index(pod) for pod in done}
    # A pod that ended also counts if it was deleted meanwhile.
    succeeded = len(completed) if is_indexed else max(old.get("succeeded", 0), len(done))
    failures = sum(1 for pod in pods if pod["status"]["phase"] == "Failed")
    failed = max(old.get("failed", 0), failures)
    wanted = _wanted(spec, succeeded, len(active))
    has_failed = failed > spec["backoffLimit"]
    if has_failed or spec["suspend"]:
        wanted = 0
    for pod in active[wanted:]:
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        dependents.delete(PODS, dependents.ctx.store.table(PODS.storage).records[key])
    taken = completed | {_index(pod) for pod in active}
    template = spec["template"]
    if wanted > len(active) and JOB_GROUPS in dependents.ctx.resources:
        template = _grouped(dependents, res, record, is_new=not pods)
    for _ in range(min(wanted - len(active), CREATED_PER_SYNC)):
        number = next(n for n in range(len(taken) + 1) if n not in taken) if is_indexed else -1
        taken.add(number)
        dependents.create(res, record, PODS, _pod(template, record.key[1], number))
    live = [pod.obj for pod in dependents.pods(obj["metadata"]["uid"])]
    running = [pod for pod in live if pod["status"]["phase"] not in FINISHED]
    status = {
        "startTime": old.get("startTime") or dependents.ctx.now(),
        "active": len(running),
        "ready": sum(map(is_ready, running)),
        "succeeded": succeeded,
        "failed": failed,
    }
    status = {name: value for name, value in status.items() if value or name == "ready"}
    if is_indexed:
        status["completedIndexes"] = _text(completed)
    status["conditions"] = _conditions(dependents.ctx.now(), obj, status, has_failed=has_failed)
    if any(entry["type"] == "Complete" for entry in status["conditions"]):
        status["completionTime"] = dependents.ctx.now()
    dependents.write_status(res, record, status)


def _grouped(dependents: Dependents, res: Resource, record: Record, *, is_new: bool) -> JsonObject:
    """The template of pods in the Job's group, which is created first if the Job has no pods yet.
    A Job with an owner, or with a group in its template, gets none. Raises ApiError.
    """
    obj, spec = record.obj, record.obj["spec"]
    template: JsonObject = spec["template"]
    if controller_of(obj) is not None or template["spec"].get("schedulingGroup"):
        return template
    name = f"{record.key[1][:200]}-{obj['metadata']['uid'][:8]}"
    made = dependents.of(obj["metadata"]["uid"], JOB_GROUPS)
    if not made and not is_new:
        return template
    if not made:
        wanted = dict(spec.get("scheduling") or {})
        policy = wanted.pop("schedulingPolicy", None) or {"basic": {}}
        if "gang" in policy:
            policy = {"gang": {"minCount": spec["parallelism"], **policy["gang"]}}
        body = {**wanted, "schedulingPolicy": policy}
        if "priorityClassName" in template["spec"]:
            body["priorityClassName"] = template["spec"]["priorityClassName"]
        controller = {"apiGroup": res.group, "kind": res.kind, "name": record.key[1]}
        templates = [{"name": "pods", **body}]
        workload = {"controllerRef": controller, "podGroupTemplates": templates}
        group = {"workloadRef": {"workloadName": name, "templateName": "pods"}, **body}
        for kind, own in ((WORKLOADS, workload), (JOB_GROUPS, group)):
            dependents.create(res, record, kind, {"metadata": {"name": name}, "spec": own})
    return {**template, "spec": {**template["spec"], "schedulingGroup": {"podGroupName": name}}}


def _wanted(spec: JsonObject, succeeded: int, active: int) -> int:
    """The number of pods to run now. Without completions the first success ends new starts."""
    parallel: int = spec["parallelism"]
    if "completions" in spec:
        remaining: int = spec["completions"] - succeeded
        return max(0, min(parallel, remaining))
    return min(active, parallel) if succeeded else parallel


def _conditions(
    now: str, obj: JsonObject, status: JsonObject, *, has_failed: bool
) -> list[JsonObject]:
    spec, succeeded = obj["spec"], status.get("succeeded", 0)
    conditions: list[JsonObject] = (obj.get("status") or {}).get("conditions") or []
    if has_failed:
        words = {"message": "Job has reached the specified backoff limit"}
        reason = "BackoffLimitExceeded"
        conditions = condition(conditions, "Failed", "True", now, reason=reason, **words)
    elif not status.get("active") and succeeded and succeeded >= spec.get("completions", 1):
        reason, message = "CompletionsReached", "Reached expected number of succeeded pods"
        for kind in ("SuccessCriteriaMet", "Complete"):
            words = {"reason": reason, "message": message}
            conditions = condition(conditions, kind, "True", now, **words)
    elif spec["suspend"] or any(entry["type"] == "Suspended" for entry in conditions):
        word, reason = ("True", "JobSuspended") if spec["suspend"] else ("False", "JobResumed")
        message = f"Job {'suspended' if spec['suspend'] else 'resumed'}"
        conditions = condition(conditions, "Suspended", word, now, reason=reason, message=message)
    return conditions


def _pod(template: JsonObject, job: str, number: int) -> JsonObject:
    if number < 0:
        return pod_of(template, job)
    pod = pod_of(template, job, generateName=f"{job}-{number}-")
    for member in ("labels", "annotations"):
        pod["metadata"][member] = {**(pod["metadata"].get(member) or {}), INDEX: str(number)}
    return pod


def _index(pod: JsonObject) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(INDEX, -1))


def _numbers(text: str) -> set[int]:
    """The numbers of a text like `0-2,5`."""
    ends = [part.split("-") for part in text.split(",") if part]
    return {number for part in ends for number in range(int(part[0]), int(part[-1]) + 1)}


def _text(numbers: set[int]) -> str:
    """Numbers in the form `0-2,5`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)
