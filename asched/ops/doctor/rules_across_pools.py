"""`asched doctor`: pods that wait for a rule that reaches across pools, workloads and pods whose
next pod would, and DaemonSets whose pods such a rule of others selects.

Rules   those of the plugins: required (anti-)affinity of pods and of pod templates; devices of
        several nodes that pods have, since their next pods may be given such ones, too.
Bounds  for each scheduler name LIST_MAX pods that wait and as many that have a node; LIST_MAX
        workloads of each kind, claims and slices; NAMED_MAX by name.
"""

from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from asched import names
from asched.core.cluster.affinity_terms import (
    NO_TERMS,
    AffinityTerms,
    compile_terms,
    reached_namespaces,
)
from asched.core.config.across_pools import listed, namespaces_to_share, why_stopped
from asched.core.config.merge import needed_plugins
from asched.core.config.pool_rules import PoolRules
from asched.core.config.pools import DEFAULT_POOL, TO_SHARE, NodePool
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.model.claim import ResourceSlice, ResourceSliceSpec, is_of_several_nodes
from asched.core.model.decode import MalformedError, decode
from asched.core.model.kinds import RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.model.pod import Pod
from asched.core.model.selector import Labels, Selector, matches
from asched.kube.errors import ClientError
from asched.ops.doctor.notes import Finding, JsonObject, State, unreadable
from asched.ops.doctor.reader import ClusterReader

CHECK: Final = "pools"
NAMED_MAX: Final = 5
#: How a condition's text about a rule across pools begins (`core/config/across_pools.py`).
RULE: Final = "rule of "
#: Kinds with a template of pods, and the paths of their lists.
WORKLOADS: Final = {
    "deployment": "/apis/apps/v1/deployments",
    "statefulset": "/apis/apps/v1/statefulsets",
    "daemonset": "/apis/apps/v1/daemonsets",
    "cronjob": "/apis/batch/v1/cronjobs",
    "job": "/apis/batch/v1/jobs",
}
#: Conditions of a job that makes no more pods.
ENDED: Final = ("Complete", "Failed")
UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"


class KnownNamespaces:
    """The namespaces that were read, and their pools."""

    def __init__(self, pools: Sequence[NodePool], objects: Iterable[JsonObject]) -> None:
        self._rules = PoolRules(pools)
        self._labels: dict[str, Labels] = {
            obj["metadata"]["name"]: obj["metadata"].get("labels") or {} for obj in objects
        }

    def labels_of(self, name: str) -> Labels:
        return self._labels.get(name, {})

    def selected(self, selector: Selector) -> list[str]:
        return [name for name, labels in self._labels.items() if selector.matches(labels)]

    def pool_of(self, name: str) -> str:
        """The pool of a namespace, or all pools that select it."""
        pools = self._rules.of_namespace(name, self.labels_of(name))
        return self._rules.listed(pools) or DEFAULT_POOL


class RuleAcrossPools(NamedTuple):
    """A rule of pods of a namespace, and the namespaces that have to share a pool for it; None:
    all.
    """

    namespace: str
    plugin: str
    to_share: tuple[str, ...] | None


#: The names of those that have each rule.
Owners = dict[RuleAcrossPools, list[str]]
#: The plugins of each profile, by its scheduler name.
Plugins = Mapping[str, Collection[str]]


async def check_rules(
    reader: ClusterReader, configuration: SchedulerConfiguration, known: KnownNamespaces
) -> list[Finding]:
    """What waits for a rule across pools, and whose next pod would."""
    plugins: Plugins = {
        profile.scheduler_name: needed_plugins(profile) for profile in configuration.profiles
    }
    found: list[Finding] = []
    owners: Owners = {}
    templates = await _templates(reader, found)
    for owner, template in templates:
        if rule := _affinity_rule(template, plugins, known):
            owners.setdefault(rule, []).append(owner)
    of_workloads = frozenset(owners)
    pods = await _read(_pods(reader, plugins), "pods of all namespaces", found)
    stopped = {_key(pod): why for pod in pods if (why := _why_stopped(pod))}
    unstopped = [pod for pod in pods if _key(pod) not in stopped]
    for pod in unstopped:
        rule = _affinity_rule(pod, plugins, known)
        if rule and rule not in of_workloads:
            owners.setdefault(rule, []).append(f"pod {_key(pod)}")
    what = "resourceclaims and resourceslices"
    for pod in await _read(_with_shared_devices(reader, unstopped, plugins), what, found):
        rule = RuleAcrossPools(_namespace(pod), names.DYNAMIC_RESOURCES, None)
        owners.setdefault(rule, []).append(f"pod {_key(pod)}")
    everyone = [*templates, *((f"pod {_key(pod)}", pod) for pod in pods)]
    selected = _selected_daemons(everyone, plugins, known)
    return [*found, *_waiting(stopped), *_next_pods(owners), *_pinned(selected)]


# --- what is read ---------------------------------------------------------------------------------


async def _read(
    work: Awaitable[list[JsonObject]], what: str, found: list[Finding]
) -> list[JsonObject]:
    try:
        return await work
    except ClientError as error:
        found.append(unreadable(CHECK, what, error))
        return []


async def _templates(reader: ClusterReader, found: list[Finding]) -> list[tuple[str, JsonObject]]:
    """The templates of all workloads, as pods, each with the name of its workload."""
    templates: list[tuple[str, JsonObject]] = []
    unread: dict[str, ClientError] = {}
    for kind, path in WORKLOADS.items():
        try:
            workloads = await reader.items(path)
        except ClientError as error:
            unread[f"{kind}s"] = error
            continue
        templates += [
            (f"{kind} {_key(workload)}", _template(workload))
            for workload in workloads
            if not _has_ended(workload)
        ]
    if unread:
        found.append(unreadable(CHECK, ", ".join(unread), next(iter(unread.values()))))
    return templates


def _template(workload: JsonObject) -> JsonObject:
    """The first pod of a workload."""
    spec = workload["spec"]
    template = (spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec)["template"]
    metadata = {**(template.get("metadata") or {}), "namespace": _namespace(workload)}
    return {"metadata": metadata, "spec": template.get("spec") or {}}


def _has_ended(workload: JsonObject) -> bool:
    conditions = (workload.get("status") or {}).get("conditions") or ()
    return any(each["type"] in ENDED and each["status"] == "True" for each in conditions)


async def _pods(reader: ClusterReader, schedulers: Iterable[str]) -> list[JsonObject]:
    """The pods of these schedulers, waiting ones first, without those that have ended."""
    pods: list[JsonObject] = []
    for scheduler in schedulers:
        for where in ("spec.nodeName=", f"spec.nodeName!=,{UNFINISHED}"):
            selector = f"spec.schedulerName={scheduler},{where}"
            pods += await reader.items("/api/v1/pods", fieldSelector=selector)
    return pods


async def _with_shared_devices(
    reader: ClusterReader, pods: Sequence[JsonObject], plugins: Plugins
) -> list[JsonObject]:
    """The pods with a device of several nodes."""
    allocating = [pod for pod in pods if names.DYNAMIC_RESOURCES in plugins[_scheduler(pod)]]
    if not any(map(_claims, allocating)):
        return []
    shared = await _shared_devices(reader)
    claims = await reader.of_kind(RESOURCE_CLAIM) if shared else []
    of_shared = {_key(claim) for claim in claims if not shared.isdisjoint(_device_pools(claim))}
    return [pod for pod in allocating if not of_shared.isdisjoint(_claims(pod))]


async def _shared_devices(reader: ClusterReader) -> set[tuple[str, str]]:
    """Driver and name of the pools of devices that several nodes reach."""
    slices: dict[tuple[str, str], list[ResourceSliceSpec]] = {}
    # Those without a node by themselves, too: in a large cluster a list has only the first ones.
    for selectors in ({"fieldSelector": "spec.nodeName="}, {}):
        for obj in await reader.items(RESOURCE_SLICE.path, **selectors):
            with suppress(MalformedError):  # the scheduler does not use it either
                spec = decode(ResourceSlice, obj).spec
                slices.setdefault((spec.driver, spec.pool.name), []).append(spec)
    return {pool for pool, specs in slices.items() if is_of_several_nodes(specs)}


def _claims(pod: JsonObject) -> set[str]:
    """The claims of a pod, by "namespace/name"."""
    status = pod.get("status") or {}
    claims = [
        *(pod["spec"].get("resourceClaims") or ()),
        *(status.get("resourceClaimStatuses") or ()),
        status.get("extendedResourceClaimStatus") or {},
    ]
    found = {claim.get("resourceClaimName") for claim in claims}
    return {f"{_namespace(pod)}/{name}" for name in found if name}


def _device_pools(claim: JsonObject) -> set[tuple[str, str]]:
    """Driver and pool of the devices that a claim has."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return {(result["driver"], result["pool"]) for result in results}


# --- rules ----------------------------------------------------------------------------------------


def _affinity_rule(
    pod: JsonObject, plugins: Plugins, known: KnownNamespaces
) -> RuleAcrossPools | None:
    """The rule across pools that such a pod has by its affinity, if any."""
    namespace, labels = _namespace(pod), pod["metadata"].get("labels") or {}
    to_share, reached = None, reached_namespaces(_terms(pod, plugins), namespace, labels, known)
    if reached is not None:
        to_share = namespaces_to_share(namespace, reached, known.pool_of)
        if not to_share:
            return None
    return RuleAcrossPools(namespace, names.INTER_POD_AFFINITY, to_share)


def _terms(pod: JsonObject, plugins: Plugins) -> AffinityTerms:
    """The terms of a pod whose profile has InterPodAffinity."""
    affinity = pod["spec"].get("affinity")
    if not affinity or names.INTER_POD_AFFINITY not in plugins.get(_scheduler(pod), ()):
        return NO_TERMS
    document = {"metadata": {"namespace": _namespace(pod)}, "spec": {"affinity": affinity}}
    try:
        return compile_terms(decode(Pod, document))
    except ValueError:  # an invalid term, which the plugin itself reports
        return NO_TERMS


def _selected_daemons(
    owners: Sequence[tuple[str, JsonObject]], plugins: Plugins, known: KnownNamespaces
) -> dict[str, str]:
    """DaemonSets, each with the first owner of a required anti-affinity by another key than the
    host's name that selects its pods. These belong to the pools of their nodes.
    """
    daemons = [
        (owner, template)
        for owner, template in owners
        if owner.startswith("daemonset ") and _scheduler(template) in plugins
    ]
    selected: dict[str, str] = {}
    for owner, pod in owners if daemons else ():
        for term in _terms(pod, plugins).required_anti_affinity:
            for daemon, template in daemons if term.topology_key != names.LABEL_HOSTNAME else ():
                namespace = _namespace(template)
                labels = template["metadata"].get("labels") or {}
                covers = term.covers_namespace(namespace, known.labels_of(namespace))
                if covers and matches(term.selector, labels) and owner != daemon:
                    selected.setdefault(daemon, owner)
    return selected


def _why_stopped(pod: JsonObject) -> str:
    """What the condition of a pod says about a rule across pools; empty if nothing."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        message = condition.get("message") or ""
        if condition["type"] == "PodScheduled" and TO_SHARE in message:
            return message[max(message.find(RULE), 0) :]
    return ""


def _namespace(obj: JsonObject) -> str:
    return str(obj["metadata"]["namespace"])


def _key(obj: JsonObject) -> str:
    return f"{_namespace(obj)}/{obj['metadata']['name']}"


def _scheduler(pod: JsonObject) -> str:
    return str(pod["spec"].get("schedulerName") or names.DEFAULT_SCHEDULER_NAME)


# --- findings -------------------------------------------------------------------------------------


def _waiting(stopped: Mapping[str, str]) -> Iterator[Finding]:
    if stopped:
        first = min(stopped)
        text = f"{len(stopped)} waiting pods have a rule across pools; {first}: {stopped[first]}"
        cure = "give the namespaces one pool, or change the rule (docs/pools-reference.md)"
        yield Finding(CHECK, State.WARNING, text, cure)


def _next_pods(owners: Owners) -> Iterator[Finding]:
    if not owners:
        return
    named = [name for of_rule in owners.values() for name in of_rule]
    rule = next(iter(owners))
    text = (
        f"new pods would wait for a rule across pools, as for {_some(named)};"
        f" {named[0]}: {why_stopped(rule.plugin, rule.to_share)}"
    )
    sets = dict.fromkeys(rule.to_share for rule in owners)
    shown = [f"namespaces {listed(s)}" if s else "all namespaces" for s in sets]
    more = f"; and {len(shown) - NAMED_MAX} more" if len(shown) > NAMED_MAX else ""
    cure = f"give one pool to {'; to '.join(shown[:NAMED_MAX])}{more}; or change the rule"
    yield Finding(CHECK, State.WARNING, text, f"{cure} (docs/pools-reference.md)")


def _pinned(selected: Mapping[str, str]) -> Iterator[Finding]:
    if selected:
        shown = _some([f"{daemon} (by {owner})" for daemon, owner in selected.items()])
        text = (
            "pods pinned to nodes of several pools are selected by a required anti-affinity of pods"
            f" that one pool decides; two replicas may break it: {shown}"
        )
        cure = "give these namespaces and nodes one pool, or change the rule"
        yield Finding(CHECK, State.WARNING, text, f"{cure} (docs/pools-reference.md)")


def _some(named: Sequence[str]) -> str:
    more = f" and {len(named) - NAMED_MAX} more" if len(named) > NAMED_MAX else ""
    return ", ".join(named[:NAMED_MAX]) + more
