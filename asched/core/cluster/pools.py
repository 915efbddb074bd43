"""Which pool each node and each namespace belongs to, and which of them this process may use.

Rules   what no pool of the configuration names belongs to the pool `default`. A node that two
        pools select is used by none; of a namespace that two pools select no pod is placed.
        Where several processes share the pools, `pool_tenure.py` says what this one may use.
Cost    rows are compared again when their labels change; namespaces when one of them changes.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched import names
from asched.core.cluster.changes import Change
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pod_groups import group_key
from asched.core.cluster.pods import PodClass, PodInfo
from asched.core.cluster.pool_tenure import Tenure, Versions
from asched.core.config.pool_rules import PoolRules
from asched.core.config.pools import DEFAULT_POOL, NodePool
from asched.core.model.kinds import NAMESPACE
from asched.core.model.meta import Record
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.selector import Labels
from asched.core.model.storage import storage_of
from asched.core.model.workload import Namespace

I32 = npt.NDArray[np.int32]

#: In place of a pool's number: selected by more than one pool.
SEVERAL: Final = -1
#: In place of a row's pool: this process may not use the node, or not yet.
NOT_OURS: Final = -2
IN_SEVERAL: Final = "belongs to several pools: {}"
DO_NOT_SCHEDULE: Final = "DoNotSchedule"
_LABELS: Final = int(Aspect.LABELS | Aspect.LIVE)
NO_LABELS: Final[Labels] = {}


class PodPool(NamedTuple):
    """The pool that a pod belongs to, for people; `name` is empty if it belongs to none.
    `is_decided_here`: this process decides for the pod, or placed it. `profile`: the profile that
    the pool names, if it names one.
    """

    name: str
    why: str
    is_decided_here: bool = True
    profile: str = ""


class Pools:
    """The pools of one configuration, in a cluster. A pool is its number in `names`; the last is
    `default`.
    """

    def __init__(self, pools: Sequence[NodePool], cluster: Cluster) -> None:
        self.rules = PoolRules(pools)
        self.names = (*self.rules.names, DEFAULT_POOL)
        #: by number: the profile that a pool names, or ""
        self._profiles = (*(pool.profile for pool in pools), "")
        self.cluster = cluster
        self._rows: I32 = np.zeros(0, dtype=np.int32)
        self._cursor = -1
        self._of_namespace: dict[str, int] = {}
        self._epoch = -1
        #: None: this process uses all pools.
        self.tenure: Tenure | None = None

    @classmethod
    def of(cls, pools: Sequence[NodePool], cluster: Cluster) -> "Pools | None":
        """The same object for the same pools: a reload does not end what is held. None without
        pools.
        """
        made = cluster.singleton(_Made)
        if made.written != tuple(pools):
            made.written, made.pools = tuple(pools), cls(pools, cluster) if pools else None
        return made.pools

    @classmethod
    def of_cluster(cls, cluster: Cluster) -> "Pools | None":
        """The pools of the newest configuration; None if it has none."""
        return cluster.singleton(_Made).pools

    @property
    def version(self) -> int:
        """Changes with every change of a namespace."""
        return self.cluster.epoch_of(NAMESPACE)

    def of_namespace(self, name: str) -> int:
        """The pool of a namespace, or SEVERAL."""
        epoch = self.cluster.epoch_of(NAMESPACE)
        if epoch != self._epoch:
            self._epoch = epoch
            self._of_namespace = {}
        pool = self._of_namespace.get(name)
        if pool is None:
            pool = self._of_namespace[name] = self._only(self.selecting(name))
        return pool

    def of_waiting(self, pod: Pod) -> int:
        """The pool that decides for a pod without a node, or SEVERAL."""
        if not (name := self._pinned_to(pod)):
            return self.of_namespace(pod.metadata.namespace)
        node = self.cluster.node_of(name)
        return SEVERAL if node is None else self.with_labels(node.labels)

    @property
    def has_profiles(self) -> bool:
        """Whether a pool names a profile."""
        return any(self._profiles)

    def profile_of(self, pod: Pod) -> str:
        """The profile that the pod's pool names; empty if it names none."""
        pool = self.of_waiting(pod)
        return "" if pool == SEVERAL else self._profiles[pool]

    def is_visitor(self, info: PodInfo) -> bool:
        """Whether the namespace of a placed pod belongs to another pool than its node."""
        node = self.cluster.node_of(info.node_name)
        if node is None:
            return False
        return self.of_namespace(info.pod.metadata.namespace) != self.with_labels(node.labels)

    def _pinned_to(self, pod: Pod) -> str:
        """The node whose pool the pod belongs to, whatever its namespace; empty without one."""
        name = only_node(pod)
        return name if name and is_of_one_node(self.cluster.classes.class_of(pod)) else ""

    # --- where several processes share the pools -------------------------------------------------

    def hold(self, let_go: Mapping[str, Versions], new: Sequence[str]) -> set[int]:
        """Use these pools only, by name, from now on (`Tenure.hold`)."""
        if self.tenure is None:
            self.tenure = Tenure()
        before = self.of_rows().copy()
        number = self.names.index
        by_number = {number(name): versions for name, versions in let_go.items()}
        changed = self.tenure.hold(by_number, map(number, new))
        for name in self.cluster.all(NAMESPACE):
            self.may_use_namespace(name)  # which notes its pool
        self.cluster.epoch += 1  # what is cached of classes is about what was held before
        self._cursor = -1
        nodes = self.cluster.nodes
        for row in np.flatnonzero(self.of_rows()[: len(before)] != before).tolist():
            nodes.log.add(row, _LABELS)
        return changed

    def may_decide(self, pod: Pod) -> bool:
        """Whether this process may decide now for a pod without a node."""
        if self.tenure is None:
            return True
        if name := self._pinned_to(pod):
            return self.may_use_node(name)
        return self.may_use_namespace(pod.metadata.namespace)

    def may_use_node(self, name: str) -> bool:
        """Whether this process may use a node, and decide for the pods there."""
        if self.tenure is None:
            return True
        row = self.cluster.nodes.row_of.get(name)
        return row is not None and bool(self.of_rows()[row] >= 0)

    def may_use_namespace(self, name: str) -> bool:
        """Whether this process may decide for the pods of a namespace."""
        if self.tenure is None:
            return True
        known = self.cluster.get(NAMESPACE, name)
        if known is None:
            return False
        version = known.metadata.resource_version
        return self.tenure.may_use_namespace(name, self.of_namespace(name), version)

    def is_let_go(self, namespace: str) -> bool:
        """Whether no other process decides for pods of a namespace of a pool that is held."""
        is_known = self.cluster.get(NAMESPACE, namespace) is not None
        return not is_known or self.may_use_namespace(namespace)

    def saw(self, change: Change) -> None:
        """Note the pool of a node or a namespace that has changed."""
        if self.tenure is None:
            return
        old, new = change.old, change.new
        match new:
            case Node():
                pool = self.with_labels(new.labels)
                self.tenure.note_node(new.name, pool, new.metadata.resource_version)
            case Namespace():
                name, labels = new.metadata.name, labels_of(new)
                pool = self._only(self.rules.of_namespace(name, labels))
                version, is_new = new.metadata.resource_version, labels_of(old) != labels
                self.tenure.note_namespace(name, pool, version, is_new=is_new)
            case _ if isinstance(old, Node):
                self.tenure.nodes.pop(old.name, None)
            case _ if isinstance(old, Namespace):
                self.tenure.namespaces.pop(old.metadata.name, None)

    # --- of one configuration --------------------------------------------------------------------

    def selecting(self, namespace: str) -> list[int]:
        """The pools that select a namespace."""
        labels = labels_of(self.cluster.get(NAMESPACE, namespace))
        return self.rules.of_namespace(namespace, labels)

    def of_pod(self, cls: PodClass) -> PodPool:
        """The pool of a pod, and why it is that."""
        namespace = cls.label_set.namespace
        if is_of_one_node(cls):
            node = self.cluster.node_of(only_node(cls.example))
            pool = SEVERAL if node is None else self.with_labels(node.labels)
            why = f"its node affinity allows only node {only_node(cls.example)}"
            return self._pod_pool(pool, why)
        pools = self.selecting(namespace)
        if len(pools) > 1:
            return PodPool(
                "", f"namespace {namespace} {IN_SEVERAL.format(self.rules.listed(pools))}"
            )
        if not pools:
            return PodPool(DEFAULT_POOL, f"no pool selects namespace {namespace}")
        how = "names" if self.rules.is_named(namespace, pools[0]) else "selects by its labels"
        return self._pod_pool(pools[0], f"the pool {how} namespace {namespace}")

    def _pod_pool(self, pool: int, why: str) -> PodPool:
        if pool == SEVERAL:
            return PodPool("", why)
        return PodPool(self.names[pool], why, profile=self._profiles[pool])

    def with_labels(self, labels: Labels) -> int:
        """The pool of a node with these labels, or SEVERAL."""
        return self._only(self.rules.of_node(labels))

    def of_rows(self) -> I32:
        """int32[H]: the pool of each row, SEVERAL or NOT_OURS. Read-only; rows without a node have
        any.
        """
        nodes = self.cluster.nodes
        height, log = nodes.height, nodes.log
        if self._cursor != log.end:
            changed = log.rows(self._cursor, _LABELS)
            self._cursor = log.end
            if len(self._rows) < height:
                self._rows = np.resize(self._rows, 2 * height)
            for row in range(height) if changed is None else changed:
                node = nodes.node_at[row] if row < height else None
                if node is not None:
                    self._rows[row] = self._of_row(node)
        return self._rows[:height]

    def nodes_in_several(self) -> list[str]:
        """The names of the nodes that are used by no pool, because several select them."""
        node_at = self.cluster.nodes.node_at
        found = (node_at[row] for row in np.flatnonzero(self.of_rows() == SEVERAL).tolist())
        return [node.name for node in found if node is not None]

    def _of_row(self, node: Node) -> int:
        pool = self.with_labels(node.labels)
        if self.tenure is None:
            return pool
        is_ours = self.tenure.may_use_node(node.name, pool, node.metadata.resource_version)
        return pool if is_ours or pool == SEVERAL else NOT_OURS

    def _only(self, pools: Sequence[int]) -> int:
        if len(pools) > 1:
            return SEVERAL
        return pools[0] if pools else len(self.names) - 1


class _Made:
    """The pools of the newest configuration."""

    def __init__(self, _cluster: Cluster) -> None:
        self.written: tuple[NodePool, ...] = ()
        self.pools: Pools | None = None


def labels_of(namespace: Record | None) -> Labels:
    """The labels of a namespace; none of one that does not exist."""
    known = namespace if isinstance(namespace, Namespace) else None
    return (known and known.metadata.labels) or NO_LABELS


def deciding_profile(pod: Pod, pools: Pools | None) -> str:
    """The name of the profile that the pod's pool names, or else of the one that the pod names."""
    return (pools.profile_of(pod) if pools is not None else "") or pod.spec.scheduler_name


def only_node(pod: Pod) -> str:
    """The only node that the required node affinity of a pod allows; else empty."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    allowed = affinity.node_names if affinity else None
    return next(iter(allowed)) if allowed is not None and len(allowed) == 1 else ""


def is_of_one_node(cls: PodClass) -> bool:
    """Whether such a pod may go to one node only, and its rules are about that node alone."""
    spec = cls.example.spec
    if not only_node(cls.example):
        return False
    spreads = any(
        constraint.when_unsatisfiable == DO_NOT_SCHEDULE
        for constraint in spec.topology_spread_constraints or ()
    )
    terms = (*cls.terms.required_affinity, *cls.terms.required_anti_affinity)
    reaches = any(term.topology_key != names.LABEL_HOSTNAME for term in terms)
    is_of_group = spec.scheduling_group is not None or bool(group_key(cls.example))
    shares = is_of_group or spec.resource_claims or storage_of(cls.example).claims
    return not (spreads or reaches or shares)
