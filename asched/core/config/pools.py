"""Pools: parts of the cluster, each with nodes of its own and the namespaces whose pods they take.

Rules   a pod goes to nodes of its namespace's pool; what no pool names belongs to the pool
        `default`. Two pools whose selectors or names must select the same node or namespace are
        refused here; what depends on labels shows only while the scheduler runs
        (`core/cluster/pools.py`).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec.structs import replace

from asched import names
from asched.core.config.args import ConstraintSelector
from asched.core.config.fields import (
    POSITIVE,
    ConfigRecord,
    FieldMark,
    MapOf,
    OptionalDuration,
    Scalar,
)
from asched.core.config.problem import (
    Path,
    Problem,
    did_you_mean,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    quoted,
    required,
)
from asched.core.config.qualified import (
    label_value_faults,
    qualified_name_faults,
    subdomain_faults,
)

#: The pool of all nodes and namespaces that no pool names.
DEFAULT_POOL: Final = names.DEFAULT_POOL
#: In the reason of a pod with a rule that may concern pods of other pools.
TO_SHARE: Final = "have to share a pool"
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


class PoolLease(ConfigRecord, frozen=True):
    """Timing of a pool's Lease; what is left out is that of leaderElection.

    lease_duration_ns: Age at which the Lease is free for another replica
    renew_deadline_ns: Time to renew before the holder stops
    retry_period_ns: Time between two attempts to get or renew the Lease
    """

    lease_duration_ns: Annotated[OptionalDuration, POSITIVE] = None
    renew_deadline_ns: Annotated[OptionalDuration, POSITIVE] = None
    retry_period_ns: Annotated[OptionalDuration, POSITIVE] = None


class NodePool(ConfigRecord, frozen=True):
    """A part of the cluster.

    name: Name of the pool; `default` is the pool of everything that no pool names
    node_selector: Labels of its nodes; without it `asched.dev/pool` with the pool's name
    namespaces: Namespaces whose pods go to these nodes
    namespace_selector: Label selector of such namespaces
    profile: The profile that decides for its pods, whichever of ours they name; without it the one
        that a pod names
    lease: Timing of the pool's Lease, with poolLeases
    """

    name: str = ""
    node_selector: Annotated[Mapping[str, str] | None, MapOf(Scalar.STRING)] = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: ConstraintSelector | None = None
    lease: PoolLease | None = None
    profile: Annotated[str, FieldMark.OMIT_EMPTY] = ""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of its nodes."""
        return self.node_selector or {names.POOL_LABEL: self.name}


def pool_faults(pools: Sequence[NodePool]) -> list[Problem]:
    """Every fault of the pools of a configuration."""
    faults: list[Problem] = []
    pool_of_namespace: dict[str, str] = {}
    seen: list[NodePool] = []
    for i, pool in enumerate(pools):
        path: Path = ("pools", i)
        faults += _faults(pool, path)
        if pool.name and any(pool.name == other.name for other in seen):
            faults.append(duplicate((*path, "name"), pool.name))
        for j, namespace in enumerate(pool.namespaces):
            other_pool = pool_of_namespace.setdefault(namespace, pool.name)
            if other_pool != pool.name:
                text = f"also a namespace of pool {quoted(other_pool)}; delete one"
                faults.append(invalid((*path, "namespaces", j), namespace, text))
        for other in seen:
            if other.name != pool.name:
                faults += _overlaps(pool, other, path)
        seen.append(pool)
    return faults


def profile_faults(pools: Sequence[NodePool], served: Collection[str]) -> list[Problem]:
    """The pools whose profile serves none of these scheduler names."""
    text = "no profile has this schedulerName"
    return [
        replace(
            invalid(("pools", i, "profile"), pool.profile, text),
            hint=did_you_mean(pool.profile, served),
        )
        for i, pool in enumerate(pools)
        if pool.profile and pool.profile not in served
    ]


def _faults(pool: NodePool, path: Path) -> list[Problem]:
    faults = []
    name_path = (*path, "name")
    if not pool.name:
        faults.append(required(name_path))
    elif pool.name == DEFAULT_POOL:
        text = "is the pool of all nodes and namespaces that no pool names"
        faults.append(forbidden(name_path, f"{quoted(DEFAULT_POOL)} {text}"))
    elif wrong := [*label_value_faults(pool.name), *subdomain_faults(pool.name)]:
        faults.append(invalid(name_path, pool.name, wrong[0]))
    if pool.node_selector is not None and not pool.node_selector:
        text = f"name at least one label, or delete the line for {names.POOL_LABEL}"
        faults.append(required((*path, "nodeSelector"), text))
    faults += _label_faults(pool.node_selector, (*path, "nodeSelector"))
    if not pool.namespaces and pool.namespace_selector is None:
        text = "a pool without namespaces takes no pods; name namespaces or a namespaceSelector"
        faults.append(required((*path, "namespaces"), text))
    for j, namespace in enumerate(pool.namespaces):
        if wrong := subdomain_faults(namespace):
            faults.append(invalid((*path, "namespaces", j), namespace, wrong[0]))
        elif namespace in pool.namespaces[:j]:
            faults.append(duplicate((*path, "namespaces", j), namespace))
    if pool.namespace_selector is not None:
        faults += _selector_faults(pool.namespace_selector, (*path, "namespaceSelector"))
    return faults


def _selector_faults(selector: ConstraintSelector, path: Path) -> list[Problem]:
    if not selector.match_labels and not selector.match_expressions:
        text = "an empty selector selects every namespace; name labels, or use no pools"
        return [required(path, text)]
    faults = _label_faults(selector.match_labels, (*path, "matchLabels"))
    for i, wanted in enumerate(selector.match_expressions):
        item_path = (*path, "matchExpressions", i)
        if wrong := qualified_name_faults(wanted.key):
            faults.append(invalid((*item_path, "key"), wanted.key, "; ".join(wrong)))
        if wanted.operator not in OPERATORS:
            faults.append(not_supported((*item_path, "operator"), wanted.operator, OPERATORS))
        elif wanted.operator in ("In", "NotIn") and not wanted.values:
            text = f"operator {wanted.operator} needs at least one value"
            faults.append(required((*item_path, "values"), text))
        elif wanted.operator in ("Exists", "DoesNotExist") and wanted.values:
            text = f"operator {wanted.operator} takes no values"
            faults.append(forbidden((*item_path, "values"), text))
        for j, value in enumerate(wanted.values):
            if wrong := label_value_faults(value):
                faults.append(invalid((*item_path, "values", j), value, wrong[0]))
    return faults


def _label_faults(labels: Mapping[str, Any] | None, path: Path) -> list[Problem]:
    faults = []
    for key, value in (labels or {}).items():
        if wrong := qualified_name_faults(key):
            faults.append(invalid((*path, key), key, "; ".join(wrong)))
        if wrong := label_value_faults(value):
            faults.append(invalid((*path, key), value, wrong[0]))
    return faults


def _overlaps(pool: NodePool, other: NodePool, path: Path) -> list[Problem]:
    """That every node or namespace of one of these pools is one of the other, too."""
    faults = []
    ours, theirs = pool.labels.items(), other.labels.items()
    if ours <= theirs or theirs <= ours:
        text = f"nodes of pool {quoted(other.name)} have these labels, too"
        faults.append(invalid((*path, "nodeSelector"), dict(ours), text))
    if pool.namespace_selector is not None and pool.namespace_selector == other.namespace_selector:
        text = f"the same as that of pool {quoted(other.name)}"
        faults.append(forbidden((*path, "namespaceSelector"), text))
    return faults
