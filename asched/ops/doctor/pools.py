"""`asched doctor`: the pools of a configuration, compared with the nodes and namespaces there are.

Bounds  the nodes and namespaces that the reader reads; NAMED_MAX of them by name.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from asched.core.cluster.pools import PoolRules
from asched.core.config.pools import DEFAULT_POOL
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.model.kinds import NAMESPACE, NODE
from asched.core.model.selector import Labels
from asched.kube.errors import ClientError
from asched.ops.doctor.notes import Finding, JsonObject, State, unreadable
from asched.ops.doctor.reader import ClusterReader

CHECK: Final = "pools"
NAMED_MAX: Final = 5


async def check_pools(
    reader: ClusterReader, configuration: SchedulerConfiguration
) -> list[Finding]:
    """Nodes and namespaces that several pools select, and pools without any."""
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
    return found or [Finding(CHECK, State.OK, "each node and each namespace is in one pool")]


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
