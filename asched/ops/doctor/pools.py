"""`asched doctor`: the pools of a configuration, compared with the nodes and namespaces there are;
and who holds them where each has a Lease.

Bounds  the nodes, namespaces and quotas that the reader reads; NAMED_MAX by name.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from asched import names
from asched.core.config.layout import pools_of
from asched.core.config.merge import needed_plugins
from asched.core.config.pool_rules import PoolRules
from asched.core.config.pools import DEFAULT_POOL
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.leader.pools import TERM_SEPARATOR, lease_of_pool
from asched.core.model.kinds import ELASTIC_QUOTA, NAMESPACE, NODE
from asched.core.model.selector import Labels
from asched.kube.errors import ClientError
from asched.ops.doctor.notes import Finding, JsonObject, State, ago, seconds_since, unreadable
from asched.ops.doctor.reader import ClusterReader, namespaced, or_none
from asched.ops.doctor.rules_across_pools import (
    CHECK,
    NAMED_MAX,
    KnownNamespaces,
    check_rules,
)


async def check_pools(
    reader: ClusterReader, configuration: SchedulerConfiguration
) -> list[Finding]:
    """Nodes and namespaces that several pools select, pools without any, and their holders."""
    rules = PoolRules(configuration.pools)
    try:
        nodes = await reader.of_kind(NODE)
        namespaces = await reader.of_kind(NAMESPACE)
    except ClientError as error:
        return [unreadable(CHECK, "nodes and namespaces", error)]
    found = [
        *_findings(rules, "node", nodes, lambda _, labels: rules.of_node(labels)),
        *_findings(rules, "namespace", namespaces, rules.of_namespace),
    ]
    found = found or [Finding(CHECK, State.OK, "each node and each namespace is in one pool")]
    known = KnownNamespaces(configuration.pools, namespaces)
    found += await _quotas(reader, configuration, known)
    found += await check_rules(reader, configuration, known)
    if configuration.pool_leases:
        found += [await _holder(reader, configuration, pool) for pool in pools_of(configuration)]
    return found


async def _quotas(
    reader: ClusterReader, configuration: SchedulerConfiguration, known: KnownNamespaces
) -> list[Finding]:
    """All ElasticQuotas together are one limit: CapacityScheduling needs them in one pool."""
    enabled = {name for profile in configuration.profiles for name in needed_plugins(profile)}
    if names.CAPACITY_SCHEDULING not in enabled:
        return []
    try:
        limited = await reader.namespaces_with(ELASTIC_QUOTA)
    except ClientError as error:
        return [unreadable(CHECK, "ElasticQuotas", error)]
    of_pool = {name: known.pool_of(name) for name in limited}
    if len(set(of_pool.values())) < 2:
        return []
    shown = ", ".join(f"{name} ({of_pool[name]})" for name in sorted(of_pool)[:NAMED_MAX])
    text = f"pods in namespaces with ElasticQuotas wait, since these are in several pools: {shown}"
    cure = "give these namespaces one pool, or delete the ElasticQuotas of the others"
    return [Finding(CHECK, State.PROBLEM, text, cure)]


async def _holder(
    reader: ClusterReader, configuration: SchedulerConfiguration, pool: str
) -> Finding:
    election = configuration.leader_election
    namespace, name = election.resource_namespace, lease_of_pool(election.resource_name, pool)
    path = namespaced("coordination.k8s.io/v1", namespace, "leases", name)
    try:
        lease = await or_none(reader.get(path))
    except ClientError as error:
        return unreadable(CHECK, f"lease {namespace}/{name}", error)
    spec = (lease or {}).get("spec") or {}
    holder = (spec.get("holderIdentity") or "").partition(TERM_SEPARATOR)[0]
    age_s = seconds_since(spec.get("renewTime"), datetime.now(UTC))
    if not holder or age_s is None or age_s > (spec.get("leaseDurationSeconds") or 15):
        cure = "see replicas and permissions above: a replica needs the rights to this lease"
        return Finding(CHECK, State.PROBLEM, f"no replica holds pool {pool} ({name})", cure)
    return Finding(CHECK, State.OK, f"pool {pool} is held by {holder}, renewed {ago(age_s)}")


def _findings(
    rules: PoolRules,
    kind: str,
    objects: Sequence[JsonObject],
    pools_of: Callable[[str, Labels], list[int]],
) -> Iterator[Finding]:
    counts: Counter[str] = Counter()
    several: list[str] = []
    for obj in objects:
        metadata = obj["metadata"]
        pools = pools_of(metadata["name"], metadata.get("labels") or {})
        counts.update([rules.names[pool] for pool in pools] or [DEFAULT_POOL])
        if len(pools) > 1:
            several.append(f"{metadata['name']} ({rules.listed(pools)})")
    if several:
        more = f" and {len(several) - NAMED_MAX} more" if len(several) > NAMED_MAX else ""
        what = "takes no pod" if kind == "node" else "has no pod placed"
        text = f"a {kind} of several pools {what}: {', '.join(several[:NAMED_MAX])}{more}"
        cure = f"change the labels of the {kind}, or what the pools select"
        yield Finding(CHECK, State.PROBLEM, text, cure)
    for name in rules.names:
        if not counts[name]:
            cure = f"give a {kind} the labels that the pool selects, or delete the pool"
            yield Finding(CHECK, State.WARNING, f"pool {name} has no {kind}", cure)
