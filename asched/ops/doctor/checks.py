"""`asched doctor`: all checks of a start or of an installation, each finding with a fix.

Order   reach, clock, versions, installation, account, kinds, permissions, flow control, replicas,
        lease, scheduler names, waiting pods, pools, autoscalers. If the server cannot be reached,
        that is the only finding.
Bounds  SKEW_WARN_S; about fifty short requests.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from asched.core.config.args import CheckAndHoldArgs
from asched.core.config.default_plugins import KnownPlugins
from asched.core.config.layout import pools_of
from asched.core.config.merge import UnusableProfileError, needed_plugins, resolve
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.config.versions import BASE, OLDEST_SERVER, VersionChoice, for_server, minor_of
from asched.core.model.kinds import (
    COMPOSITE_POD_GROUP,
    COSCHEDULING_GROUP,
    DEVICE_TAINT_RULE,
    ELASTIC_QUOTA,
    KINDS,
    LOCAL_QUEUE,
    POD_GROUP,
    PROVISIONING_REQUEST,
    Kind,
)
from asched.kube.errors import ClientError, ConnectError
from asched.kube.kind_versions import versions_of
from asched.kube.session import ConnectionOptions, Session, connect, read_as
from asched.kube.transport import Reply
from asched.ops.doctor.access import check_flow, check_permissions, who
from asched.ops.doctor.autoscalers import check_autoscalers
from asched.ops.doctor.installation import INSTALLATION, Settings, chosen, matching, settings_of
from asched.ops.doctor.notes import Finding, Identity, State, unreadable
from asched.ops.doctor.permissions import READERS, WATCHES, Right, needed
from asched.ops.doctor.pools import check_pools
from asched.ops.doctor.reader import ClusterReader, or_none, path_of
from asched.ops.doctor.replicas import check_replicas, check_waiting
from asched.ops.doctor.rivals import check_rivals, lease_of
from asched.ops.doctor.shipped_plugins import SHIPPED_POINTS
from asched.ops.doctor.workloads import ServedWorkload, flags_of, scheduler_workloads

#: Tokens and certificates begin to be refused at about a minute; event times are confusing before.
#: The Date header has whole seconds, so less than two cannot be detected. A guess.
SKEW_WARN_S: Final = 5.0
#: Raised by code that reads an object with missing or unexpected fields.
SENSELESS: Final = (AttributeError, LookupError, TypeError, ValueError)


class Examination(msgspec.Struct, frozen=True):
    """What to check: a configuration, a connection, and an account."""

    configuration: SchedulerConfiguration
    connection: ConnectionOptions
    #: The account whose rights are checked; None: that of the credentials.
    other: Identity | None = None
    #: Reads what an installation runs with; None: flags say what to check.
    settings: Settings | None = None
    #: Namespace and name of the Deployment in one of whose pods the doctor runs, with its flags.
    inside: str = ""
    is_serving: bool = True
    #: Whether the statuses of PodGroups and ElasticQuotas are written (--status-controllers).
    writes_statuses: bool = False
    #: Whose rules the start would decide by.
    kubernetes: VersionChoice = VersionChoice(BASE)
    known: KnownPlugins = msgspec.field(default_factory=lambda: SHIPPED_POINTS)
    #: The rights that a user's plugin declares, by its name.
    rights_of: Callable[[str], Sequence[Right]] = lambda _name: ()
    clock_s: Callable[[], float] = time.time


async def examine(examination: Examination) -> list[Finding]:
    """All findings, in order. Never raises for errors of the cluster."""
    try:
        session = await connect(examination.connection, handshake=False)
    except ConnectError as error:
        return [Finding("reach", State.PROBLEM, str(error), "correct the kubeconfig or --master")]
    try:
        return await _examine(session, examination)
    finally:
        await session.close()


async def _examine(session: Session, examination: Examination) -> list[Finding]:
    reader = ClusterReader.over(session)
    started_s = examination.clock_s()
    try:
        reply = await reader.page("/version")
    except ClientError as error:
        cure = "check the address, the network and that the API server runs"
        return [Finding("reach", State.PROBLEM, f"{error}", cure)]
    middle_s = (started_s + examination.clock_s()) / 2
    if reply.status == 401:
        text = f"{session.url} answers, but does not accept the credentials"
        cure = "renew the token or certificate in the kubeconfig"
        return [Finding("reach", State.PROBLEM, text, cure)]
    found = [Finding("reach", State.OK, f"{session.url} answers")]
    found += _check_clock(reply, middle_s)
    found += _check_version(reply, examination.kubernetes)
    served: list[ServedWorkload] | None = None
    own = [_around(examination)] if examination.inside else []
    try:
        served = await scheduler_workloads(reader)
        examination, own, findings = _installed(examination, served)
        found += findings
    except SENSELESS as error:
        found.append(senseless(INSTALLATION, error))
    except ClientError as error:
        found.append(unreadable(INSTALLATION, "deployments and pods", error))
    identity, finding = await _identity(reader, examination)
    found.append(finding)
    found += await _sure("kinds", _check_kinds(reader, _kinds(examination)))
    if ELASTIC_QUOTA in _kinds(examination):
        found += await _sure("quotas", _check_quotas(reader))
    found += await _sure("rights", _check_access(reader, examination, identity))
    now = datetime.fromtimestamp(examination.clock_s(), UTC)
    found += await _sure("replicas", check_replicas(reader, own, now))
    configuration = examination.configuration
    found += await _sure("rivals", check_rivals(reader, configuration, served, own, now))
    if served is not None:
        names = [profile.scheduler_name for profile in configuration.profiles]
        waiting = check_waiting(reader, names, now, is_installed=bool(own))
        found += await _sure("waiting pods", waiting)
    if examination.configuration.pools:
        found += await _sure("pools", check_pools(reader, examination.configuration))
    autoscalers = check_autoscalers(reader, examination.configuration, examination.known)
    found += await _sure("autoscaler", autoscalers)
    return found


async def _identity(
    reader: ClusterReader, examination: Examination
) -> tuple[Identity | None, Finding]:
    """The account whose rights are checked, and a finding that names it."""
    try:
        identity = examination.other or await who(reader)
    except SENSELESS as error:
        return None, senseless("account", error)
    except ClientError as error:
        return None, unreadable("account", "the own identity (SelfSubjectReview)", error)
    return identity, Finding("account", State.OK, f'checking the rights of "{identity.user}"')


def _around(examination: Examination) -> ServedWorkload:
    """The installation in one of whose pods the doctor runs."""
    configuration = examination.configuration
    served = frozenset(profile.scheduler_name for profile in configuration.profiles)
    return ServedWorkload(examination.inside, served, lease_of(configuration), is_ours=True)


def _installed(
    examination: Examination, served: Sequence[ServedWorkload]
) -> tuple[Examination, list[ServedWorkload], list[Finding]]:
    """The examination of the installation that is found, which it is, and findings about it."""
    configuration, settings = examination.configuration, examination.settings
    if settings is None:
        return examination, matching(served, configuration, examination.other), []
    wanted = frozenset(profile.scheduler_name for profile in configuration.profiles)
    own, findings = chosen(served, wanted, examination.other)
    for workload in own:
        configuration, finding = settings_of(workload, settings, configuration)
        account = Identity.named(f"system:serviceaccount:{':'.join(workload.account)}")
        examination = replace(
            examination,
            configuration=configuration,
            other=examination.other or account,
            writes_statuses="status-controllers" in flags_of(workload.words),
        )
        findings.append(finding)
    return examination, own, findings


async def _sure(check: str, work: Awaitable[list[Finding]]) -> list[Finding]:
    """The findings of a check; invalid answers of the server become a finding."""
    try:
        return await work
    except SENSELESS as error:
        return [senseless(check, error)]


def senseless(check: str, error: Exception) -> Finding:
    text = f"the server's answer is not that of an API server: {error!r}"
    return Finding(check, State.PROBLEM, text, "is this the API server's address?")


async def _check_access(
    reader: ClusterReader, examination: Examination, identity: Identity | None
) -> list[Finding]:
    configuration = examination.configuration
    plugins: list[str] = []
    for index, profile in enumerate(configuration.profiles):
        try:
            plugins += resolve(profile, examination.known, index).plugin_names
        except UnusableProfileError as error:
            cure = "run asched config check FILE"
            return [Finding("configuration", State.PROBLEM, str(error), cure)]
    election = configuration.leader_election
    declared = {name: examination.rights_of(name) for name in plugins}
    own = {name: rights for name, rights in declared.items() if rights}
    needs = needed(
        plugins,
        election,
        is_serving=examination.is_serving,
        gates=configuration.gates,
        writes_statuses=examination.writes_statuses,
        keeps_nodes=any(
            isinstance(entry.args, CheckAndHoldArgs) and entry.args.keep_nodes
            for profile in configuration.profiles
            for entry in profile.plugin_configs
        ),
        pools=pools_of(configuration) if configuration.pool_leases else (),
        own=own,
    )
    found = await check_permissions(reader, needs, examination.other)
    if identity is not None:
        namespace, elects = election.resource_namespace, election.leader_elect
        found += await check_flow(reader, identity, namespace, is_elected=elects)
    return found


def _check_clock(reply: Reply, now_s: float) -> list[Finding]:
    text = reply.header("Date")
    try:
        server_s = parsedate_to_datetime(text or "").timestamp()
    except ValueError:
        cure = "compare the clocks by hand"
        return [Finding("clock", State.SKIPPED, "the server sends no usable Date", cure)]
    # The header is truncated to whole seconds: assume half of one.
    skew_s = now_s - (server_s + 0.5)
    if abs(skew_s) < SKEW_WARN_S:
        return [Finding("clock", State.OK, "agrees with the server's within a few seconds")]
    which = "ahead of" if skew_s > 0 else "behind"
    text = f"this machine is {abs(skew_s):.0f} s {which} the API server"
    cure = "synchronise the clocks (NTP): tokens and certificates depend on them, leases do not"
    return [Finding("clock", State.WARNING, text, cure)]


def _check_version(reply: Reply, kubernetes: VersionChoice) -> list[Finding]:
    own = f"asched on Python {sys.version_info.major}.{sys.version_info.minor}"
    try:
        version = read_as(reply, dict[str, str])
        shown = version["gitVersion"]
        minor, rules = minor_of(shown), for_server(shown)
    except (ClientError, KeyError, ValueError):
        cure = "is the address that of a Kubernetes API server?"
        text = f"/version answers with status {reply.status} and without a version"
        return [Finding("versions", State.PROBLEM, text, cure)]
    if kubernetes.is_emulated:
        rules = kubernetes
    text = f"server {shown}, {own}; decides as Kubernetes {rules.minor}"
    if minor < minor_of(OLDEST_SERVER):
        cure = f"upgrade the cluster to {OLDEST_SERVER} or newer"
        text = f"{text}: the server is older than asched needs"
        return [Finding("versions", State.WARNING, text, cure)]
    if rules.warning:
        cure = "upgrade asched, or decide as a released version with --emulated-version"
        return [Finding("versions", State.WARNING, f"{text}: {rules.warning}", cure)]
    return [Finding("versions", State.OK, text)]


#: The kinds that are watched if a feature gate is on.
GATED_KINDS: Final = {
    "GenericWorkload": POD_GROUP,
    "CompositePodGroup": COMPOSITE_POD_GROUP,
    "DRADeviceTaintRules": DEVICE_TAINT_RULE,
}


def _kinds(examination: Examination) -> tuple[Kind, ...]:
    gates = examination.configuration.gates
    upstream = [kind for gate, kind in GATED_KINDS.items() if gates.get(gate)]
    profiles = examination.configuration.profiles
    enabled = {name for profile in profiles for name in needed_plugins(profile)}
    of_plugins = (kind for name, kinds in WATCHES.items() if name in enabled for kind in kinds)
    return (*KINDS, *upstream, *of_plugins)


async def _check_kinds(reader: ClusterReader, kinds: tuple[Kind, ...]) -> list[Finding]:
    """Whether the server has every watched kind; a missing kind counts as empty."""
    spoken = [version for kind in kinds for version in versions_of(kind)]
    groups = tuple(dict.fromkeys(kind.group_version for kind in spoken))
    try:
        served = await asyncio.gather(*(_resources(reader, group) for group in groups))
    except ClientError as error:
        return [unreadable("kinds", "discovery", error)]
    known = dict(zip(groups, served, strict=True))
    missing = [
        kind
        for kind in kinds
        if not any(version.plural in known[version.group_version] for version in versions_of(kind))
    ]
    if not missing:
        return [Finding("kinds", State.OK, f"the server has all {len(kinds)} kinds")]
    return [_missing_kind(kind) for kind in missing]


async def _check_quotas(reader: ClusterReader) -> list[Finding]:
    """Two quotas limit a namespace twice: Kueue admits pods that CapacityScheduling refuses."""
    try:
        quotas = await reader.namespaces_with(ELASTIC_QUOTA)
        both = sorted(quotas & await reader.namespaces_with(LOCAL_QUEUE)) if quotas else []
    except ClientError as error:
        return [unreadable("quotas", "ElasticQuotas and LocalQueues", error)]
    if not both:
        return []
    text = f"{', '.join(both[:5])}: an ElasticQuota and a LocalQueue; both quotas apply"
    cure = "delete one of the two, or keep Kueue's within the ElasticQuota's max"
    return [Finding("quotas", State.WARNING, text, cure)]


async def _resources(reader: ClusterReader, group_version: str) -> frozenset[str]:
    found = await or_none(reader.get(path_of(group_version)))
    return frozenset(resource["name"] for resource in (found or {}).get("resources") or ())


#: What follows from a missing kind, and the fix.
MISSING: Final = {
    POD_GROUP: (
        "; pods that name a group are not scheduled",
        (
            "start the API server with --feature-gates=GenericWorkload=true"
            f" --runtime-config={POD_GROUP.group_version}=true, or turn the scheduler's gate off"
        ),
    ),
    DEVICE_TAINT_RULE: (
        "",
        (
            "start the API server with --feature-gates=DRADeviceTaintRules=true"
            f" --runtime-config={DEVICE_TAINT_RULE.group_version}=true,"
            " or turn the scheduler's gate off"
        ),
    ),
    COSCHEDULING_GROUP: (
        "; pods whose label names a group are not scheduled",
        (
            "install the CRD of kubernetes-sigs/scheduler-plugins (Trainer, training-operator, MPI"
            " and Spark operators need it, too), or remove Coscheduling from the profile"
        ),
    ),
    ELASTIC_QUOTA: (
        "; no namespace has a quota",
        (
            "install the CRD of kubernetes-sigs/scheduler-plugins, or remove CapacityScheduling"
            " from the profile"
        ),
    ),
    PROVISIONING_REQUEST: (
        "; no slots are reserved for Kueue, no nodes requested for gangs",
        (
            "install the CRD of cluster-autoscaler (docs/batch.md names the command), or remove"
            " CheckAndHold and GroupScaleUp from the profile"
        ),
    ),
}


def _missing_kind(kind: Kind) -> Finding:
    otherwise = "upgrade the cluster if {} needs them; otherwise nothing to do"
    effect, cure = MISSING.get(kind) or ("", otherwise.format(READERS.get(kind, "a plugin")))
    text = f"the server has no {kind.plural} ({kind.group_version}): treated as empty{effect}"
    return Finding("kinds", State.WARNING, text, cure)
