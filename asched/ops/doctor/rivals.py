"""`asched doctor`: find other schedulers with our lease or our scheduler names.

Two schedulers of one name bind the same pods; two kinds of scheduler on one lease leave the pods of
one of them waiting. Another scheduler is found by three traces: the lease's holder, Deployments
(and static pods) that start a scheduler under the same name, and recent `Scheduled` events by a
reporter other than the holder.

Rules   a process belongs to a Deployment by its pod's name. A pod that is gone is no rival.
Bounds  EVENT_AGE_S; LIST_MAX objects of each list.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from asched import names
from asched.core.config.layout import layout_of
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.leader.pools import holder_of_layout, is_of_layout
from asched.kube.errors import ClientError
from asched.ops.doctor.notes import Finding, State, ago, seconds_since, unreadable
from asched.ops.doctor.reader import ClusterReader, namespaced, or_none
from asched.ops.doctor.workloads import KUBE_SCHEDULER, KUBE_SYSTEM, Lease, ServedWorkload

LEASE: Final = "lease"
NAME: Final = "scheduler name"
#: Older events are ignored: an active scheduler places pods every few seconds.
EVENT_AGE_S: Final = 300.0
#: The name of a Deployment's pod.
OF_DEPLOYMENT: Final = re.compile(r"[a-z0-9.-]+-[a-z0-9]{6,10}-[a-z0-9]{5}")


async def check_rivals(
    reader: ClusterReader,
    configuration: SchedulerConfiguration,
    served: Sequence[ServedWorkload] | None,
    own: Sequence[ServedWorkload],
    now: datetime,
) -> list[Finding]:
    """Findings about the lease and each scheduler name; `own` of `served` are being checked, and
    None means that Deployments may not be read.
    """
    found, holder_host = await check_lease(reader, configuration, own, now)
    rivals = [workload for workload in served or () if workload not in own and workload.replicas]
    for name in dict.fromkeys(profile.scheduler_name for profile in configuration.profiles):
        findings = [
            _own(name, candidate, configuration)
            for candidate in own
            if name in candidate.scheduler_names
        ]
        findings += [
            _rival(name, candidate, lease_of(configuration))
            for candidate in rivals
            if name in candidate.scheduler_names
        ]
        findings += await _reporters(reader, name, holder_host, own, now)
        if not findings and served is not None:
            findings = [Finding(NAME, State.OK, f'no other scheduler serves "{name}"')]
        found += findings
    return found


def lease_of(configuration: SchedulerConfiguration) -> Lease | None:
    election = configuration.leader_election
    return (election.resource_namespace, election.resource_name) if election.leader_elect else None


def _own(name: str, candidate: ServedWorkload, configuration: SchedulerConfiguration) -> Finding:
    text = f'"{name}" is served by {candidate.workload}, the checked installation'
    if candidate.lease == lease_of(configuration):
        return Finding(NAME, State.OK, text)
    held = f"lease {'/'.join(candidate.lease)}" if candidate.lease else "no lease"
    text = f"{text}, but under {held}: the doctor's flags or file say otherwise"
    cure = "give the doctor the installation's flags, or its file as --config"
    return Finding(NAME, State.WARNING, text, cure)


async def check_lease(
    reader: ClusterReader,
    configuration: SchedulerConfiguration,
    own: Sequence[ServedWorkload],
    now: datetime,
) -> tuple[list[Finding], str]:
    """Findings, and the host of the present holder ("" without a holder)."""
    election = configuration.leader_election
    where = f"{election.resource_namespace}/{election.resource_name}"
    if not election.leader_elect:
        text = "leader election is off: a second replica would bind the same pods"
        return [Finding(LEASE, State.WARNING, text, "run one replica only, or turn it on")], ""
    path = namespaced(
        "coordination.k8s.io/v1", election.resource_namespace, "leases", election.resource_name
    )
    try:
        lease = await or_none(reader.get(path))
    except ClientError as error:
        return [unreadable(LEASE, f"lease {where}", error)], ""
    spec = (lease or {}).get("spec") or {}
    holder = spec.get("holderIdentity") or ""
    age_s = seconds_since(spec.get("renewTime"), now)
    duration_s = spec.get("leaseDurationSeconds") or 15
    is_live = bool(holder) and age_s is not None and age_s < duration_s
    served = {profile.scheduler_name for profile in configuration.profiles}
    is_theirs = lease_of(configuration) == (KUBE_SYSTEM, KUBE_SCHEDULER)
    if is_theirs and names.DEFAULT_SCHEDULER_NAME not in served:
        text = f"{where} is kube-scheduler's own lease: only one of the two works at a time"
        cure = "set leaderElection.resourceName, or --leader-elect-resource-name=asched"
        return [Finding(LEASE, State.PROBLEM, text, cure)], _host_of(holder) if is_live else ""
    if not is_live or age_s is None:
        return [_no_holder(where, holder, age_s, own)], ""
    text = f'{where} is held by "{holder}", renewed {ago(age_s)}'
    if is_of_layout(holder):
        return [_shared(text, holder, configuration)], ""
    host = _host_of(holder)
    for candidate in own:
        if candidate.runs_on(host):
            text = f"{text}: a replica of {candidate.workload}, the checked installation"
            return [Finding(LEASE, State.OK, text)], host
    text = f"{text}: another process would stand by"
    cure = "nothing to do if that is a replica of this installation; otherwise use another lease"
    return [Finding(LEASE, State.WARNING, text, cure)], host


def _shared(text: str, holder: str, configuration: SchedulerConfiguration) -> Finding:
    """Replicas that share pools hold the lease together."""
    layout = layout_of(configuration) if configuration.pool_leases else ""
    if holder == holder_of_layout(layout):
        return Finding(LEASE, State.OK, f"{text}: replicas with these pools")
    text = f"{text}: replicas with other pools, or other lease times; none of this one decides"
    cure = "restart all replicas with one configuration"
    return Finding(LEASE, State.PROBLEM, text, cure)


def _no_holder(
    where: str, holder: str, age_s: float | None, own: Sequence[ServedWorkload]
) -> Finding:
    """A problem for an installation: one of its replicas should have the lease."""
    text = f"{where} has no holder"
    if not own:
        return Finding(LEASE, State.OK, text)
    if holder and age_s is not None:
        text = f'{text}: "{holder}" renewed it {ago(age_s)}'
    namespace, _, name = own[0].workload.partition("/")
    cure = (
        f"see replicas and permissions above; kubectl -n {namespace} logs deployment/{name} says"
        " why none gets it"
    )
    return Finding(LEASE, State.PROBLEM, f"{text}; no replica schedules", cure)


def _rival(name: str, other: ServedWorkload, lease: Lease | None) -> Finding:
    if other.lease is not None and other.lease == lease:
        text = f'"{name}" is served by {other.workload} under the same lease'
        cure = "intended when asched replaces it; otherwise give asched another schedulerName"
        return Finding(NAME, State.WARNING, f"{text}: its holder serves the pods", cure)
    held = f"lease {'/'.join(other.lease)}" if other.lease else "no lease"
    text = f'"{name}" is served by {other.workload} too, under {held}: both would bind its pods'
    cure = "give one of them another profiles[].schedulerName, or delete the other"
    namespace, account = other.account
    if other.is_ours:
        cure += (
            "; if that is the installation to check, give the doctor its file as --config, or"
            f" --as=system:serviceaccount:{namespace}:{account}"
        )
    return Finding(NAME, State.PROBLEM, text, cure)


async def _reporters(
    reader: ClusterReader, name: str, holder_host: str, own: Sequence[ServedWorkload], now: datetime
) -> list[Finding]:
    """Other processes that recently placed pods under this name."""
    selector = f"reason={names.EVENT_SCHEDULED},reportingComponent={name}"
    try:
        events = await reader.items("/api/v1/events", fieldSelector=selector)
    except ClientError as error:
        return [unreadable(NAME, "events", error)]
    latest: dict[str, float] = {}
    for event in events:
        age_s = seconds_since(event.get("eventTime") or event.get("lastTimestamp"), now)
        reporter = event.get("reportingInstance") or "an unnamed process"
        host = reporter.removeprefix(f"{name}-")
        is_known = host == holder_host or any(candidate.runs_on(host) for candidate in own)
        if age_s is not None and age_s < EVENT_AGE_S and not is_known:
            latest[reporter] = min(age_s, latest.get(reporter, age_s))
    for reporter in list(latest):
        if await _is_gone(reader, reporter.removeprefix(f"{name}-")):
            del latest[reporter]
    cure = "stop it, unless it is the instance to be replaced"
    return [
        Finding(NAME, State.WARNING, f'"{name}": {reporter} placed a pod {ago(age_s)}', cure)
        for reporter, age_s in sorted(latest.items())
    ]


async def _is_gone(reader: ClusterReader, host: str) -> bool:
    """Whether a host was a pod of a Deployment that does not exist any more."""
    if not OF_DEPLOYMENT.fullmatch(host):
        return False
    try:
        return not await reader.items("/api/v1/pods", fieldSelector=f"metadata.name={host}")
    except ClientError:
        return False


def _host_of(holder: str) -> str:
    """Identities are `<hostname>_<uuid>`."""
    return holder.rpartition("_")[0]
