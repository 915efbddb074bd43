"""`asched doctor`: find other schedulers with our lease or our scheduler names.

Two schedulers of one name bind the same pods; two kinds of scheduler on one lease leave the pods of
one of them waiting. Another scheduler is found by three traces: the lease's holder, Deployments
(and static pods) that start a scheduler under the same name, and recent `Scheduled` events by a
reporter other than the holder.

Rules   names and lease of a Deployment are read from its command line and its mounted ConfigMap, as
        the program would. A Deployment is the checked installation if it has the same lease, or the
        account that is named, or if no lease is used and it is the only one with these names. A
        process belongs to it by its pod's name.
Bounds  EVENT_AGE_S; LIST_MAX objects of each list.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
import yaml
from kubernetes_asyncio.client import V1LeaseSpec
from msgspec.structs import replace

from asched import names
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.model.decode import MalformedError, parse
from asched.kube.errors import ClientError
from asched.ops.doctor.notes import (
    Finding,
    Identity,
    JsonObject,
    State,
    ago,
    seconds_since,
    unreadable,
)
from asched.ops.doctor.reader import ClusterReader, or_none

LEASE: Final = "lease"
NAME: Final = "scheduler name"
#: Older events are ignored: an active scheduler places pods every few seconds.
EVENT_AGE_S: Final = 300.0
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

    def runs_on(self, host: str) -> bool:
        """Whether a host is a pod of this Deployment."""
        return host.startswith(self.workload.partition("/")[2] + "-")


async def check_rivals(
    reader: ClusterReader,
    configuration: SchedulerConfiguration,
    other: Identity | None,
    now: datetime,
) -> list[Finding]:
    """Findings about the lease and each scheduler name. `other` is the account that is checked."""
    served: list[ServedWorkload] = []
    unread: list[Finding] = []
    try:
        served = await _workloads(reader)
    except ClientError as error:
        unread.append(unreadable(NAME, "deployments and pods", error))
    own = installation(served, configuration, other)
    leases, holder_host = await check_lease(reader, configuration, own, now)
    rivals = [workload for workload in served if workload not in own]
    found = [*leases, *unread]
    for name in dict.fromkeys(profile.scheduler_name for profile in configuration.profiles):
        findings = [
            _own(name, candidate, configuration)
            for candidate in own
            if name in candidate.scheduler_names
        ]
        findings += [
            _rival(name, candidate, _lease_of(configuration))
            for candidate in rivals
            if name in candidate.scheduler_names
        ]
        findings += await _reporters(reader, name, holder_host, own, now)
        if not findings and not unread:
            findings = [Finding(NAME, State.OK, f'no other scheduler serves "{name}"')]
        found += findings
    return found


def installation(
    served: Sequence[ServedWorkload], configuration: SchedulerConfiguration, other: Identity | None
) -> list[ServedWorkload]:
    """The workloads that are the checked installation."""
    lease = _lease_of(configuration)
    wanted = {profile.scheduler_name for profile in configuration.profiles}
    ours = [
        candidate
        for candidate in served
        if candidate.is_ours and wanted & candidate.scheduler_names
    ]
    account = other.service_account if other is not None else ("", "")
    if any(account):
        named = [candidate for candidate in ours if candidate.account == account]
        if named:
            return named
    if lease is not None:
        return [candidate for candidate in ours if candidate.lease == lease]
    return ours if len(ours) == 1 and ours[0].lease is None else []


def _lease_of(configuration: SchedulerConfiguration) -> Lease | None:
    election = configuration.leader_election
    return (election.resource_namespace, election.resource_name) if election.leader_elect else None


def _own(name: str, candidate: ServedWorkload, configuration: SchedulerConfiguration) -> Finding:
    text = f'"{name}" is served by {candidate.workload}, the checked installation'
    if candidate.lease == _lease_of(configuration):
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
    read = reader.coordination.read_namespaced_lease
    try:
        lease = await or_none(read(election.resource_name, election.resource_namespace))
    except ClientError as error:
        return [unreadable(LEASE, f"lease {where}", error)], ""
    spec = (lease and lease.spec) or V1LeaseSpec()
    holder = spec.holder_identity or ""
    age_s = (now - spec.renew_time).total_seconds() if spec.renew_time else None
    is_live = bool(holder) and age_s is not None and age_s < (spec.lease_duration_seconds or 15)
    served = {profile.scheduler_name for profile in configuration.profiles}
    is_theirs = _lease_of(configuration) == (KUBE_SYSTEM, KUBE_SCHEDULER)
    if is_theirs and names.DEFAULT_SCHEDULER_NAME not in served:
        text = f"{where} is kube-scheduler's own lease: only one of the two works at a time"
        cure = "set leaderElection.resourceName, or --leader-elect-resource-name=asched"
        return [Finding(LEASE, State.PROBLEM, text, cure)], _host_of(holder) if is_live else ""
    if not is_live or age_s is None:
        return [Finding(LEASE, State.OK, f"{where} has no holder")], ""
    text = f'{where} is held by "{holder}", renewed {ago(age_s)}'
    host = _host_of(holder)
    for candidate in own:
        if candidate.runs_on(host):
            text = f"{text}: a replica of {candidate.workload}, the checked installation"
            return [Finding(LEASE, State.OK, text)], host
    text = f"{text}: another process would stand by"
    cure = "nothing to do if that is a replica of this installation; otherwise use another lease"
    return [Finding(LEASE, State.WARNING, text, cure)], host


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
    list_events = reader.core.list_event_for_all_namespaces
    try:
        events = await reader.items(list_events, field_selector=selector)
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
    cure = "stop it, unless it is the instance to be replaced"
    return [
        Finding(NAME, State.WARNING, f'"{name}": {reporter} placed a pod {ago(age_s)}', cure)
        for reporter, age_s in sorted(latest.items())
    ]


async def _workloads(reader: ClusterReader) -> list[ServedWorkload]:
    deployments = await reader.items(reader.apps.list_deployment_for_all_namespaces)
    list_pods = reader.core.list_namespaced_pod
    component = f"component={KUBE_SCHEDULER}"
    pods = await reader.items(list_pods, KUBE_SYSTEM, label_selector=component)
    owned = [(d, (d["spec"].get("template") or {}).get("spec") or {}) for d in deployments]
    # Static pods; pods of a Deployment are covered by it.
    owned += [(p, p["spec"]) for p in pods if not _is_of_replica_set(p)]
    running = [pair for pair in owned if pair[0]["spec"].get("replicas", 1) != 0]
    found = await asyncio.gather(*(_served(reader, obj["metadata"], spec) for obj, spec in running))
    return [served for served in found if served is not None]


def _is_of_replica_set(pod: JsonObject) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner.get("kind") == "ReplicaSet" for owner in owners)


async def _served(
    reader: ClusterReader, metadata: JsonObject, spec: JsonObject
) -> ServedWorkload | None:
    """The names and lease of the first scheduler among a pod's containers."""
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
        document = await _mounted(reader, metadata["namespace"], spec, container, given)
        where = f"{metadata['namespace']}/{metadata['name']}"
        account = (metadata["namespace"], str(spec.get("serviceAccountName") or "default"))
        return replace(served_by(where, given, document, is_ours=is_ours), account=account)
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
) -> Any:
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
            read = reader.core.read_namespaced_config_map
            config_map = await or_none(read(source["name"], namespace))
            data = (config_map and config_map.data) or {}
            paths = {item["path"]: item["key"] for item in source.get("items") or ()}
            wanted = file.removeprefix(folder)
            try:
                return parse(yaml.safe_load, data.get(paths.get(wanted, wanted), ""))
            except MalformedError:
                return None
    return None


def _host_of(holder: str) -> str:
    """Identities are `<hostname>_<uuid>`."""
    return holder.rpartition("_")[0]
