"""`asched doctor`: the pools of a configuration, compared with the nodes and namespaces there are,
and who holds them where each has a Lease.

Bounds  the nodes and namespaces that the reader reads; NAMED_MAX of them by name.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from asched.core.config.layout import pools_of
from asched.core.config.pool_rules import PoolRules
from asched.core.config.pools import DEFAULT_POOL
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.leader.pools import TERM_SEPARATOR, lease_of_pool
from asched.core.model.kinds import NAMESPACE, NODE
from asched.core.model.selector import Labels
from asched.kube.errors import ClientError
from asched.ops.doctor.notes import Finding, JsonObject, State, ago, seconds_since, unreadable
from asched.ops.doctor.reader import ClusterReader, namespaced, or_none

CHECK: Final = "pools"
NAMED_MAX: Final = 5


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
    if configuration.pool_leases:
        found += [await _holder(reader, configuration, pool) for pool in pools_of(configuration)]
    return found


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
