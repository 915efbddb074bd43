"""Trees of pod groups: CompositePodGroups above PodGroups, with the gate CompositePodGroup.

A PodGroup that names a parent is a leaf; the root is the composite without a parent. The pods of
all leaves are scheduled as one unit. A leaf needs minCount pods, a composite minGroupCount of its
children; one each with a basic policy. Children are tried by age, then by name.

A tree with a fault is not scheduled: a parent is missing, the parents form a cycle, there are more
than DEPTH_MAX levels or GROUPS_MAX groups, or the groups name several Workloads.

Bounds  DEPTH_MAX steps to find a root, and to count a pod; a tree is built anew, in GROUPS_MAX
        steps, when it is needed after a change of its objects.
Source  KEP-6012; kubernetes/kubernetes pkg/scheduler/backend/cache (hierarchyWrapper),
        framework/plugins/gangscheduling/hierarchy_tracker.go; GROUPS_MAX is our own
"""

from collections.abc import Callable
from typing import Final

import msgspec

from asched.core.model.workload import CompositePodGroup, PodGroup

#: Levels of a tree, its PodGroups included (upstream's WorkloadMaxTreeDepth).
DEPTH_MAX: Final = 4
GROUPS_MAX: Final = 1_000
#: Prefix of the keys of CompositePodGroups: no name has a colon.
COMPOSITE: Final = "composite:"
_TOO_DEEP: Final = f"the tree of groups has more than {DEPTH_MAX} levels"
_TOO_LARGE: Final = f"the tree of groups has more than {GROUPS_MAX} groups"


class TreeNode(msgspec.Struct):
    """A group of a tree. `minimum` is of pods for a leaf, and of children for a composite; `count`
    are the pods there are, and the children that have their minimum.
    """

    key: str
    group: PodGroup
    minimum: int = 1
    children: "list[TreeNode]" = msgspec.field(default_factory=list)
    count: int = 0

    @property
    def is_leaf(self) -> bool:
        return not self.key.startswith(COMPOSITE)

    @property
    def is_ready(self) -> bool:
        return self.count >= self.minimum

    @property
    def leaves(self) -> tuple[str, ...]:
        """The keys of the leaves at or below the node, in the order of trials."""
        if self.is_leaf:
            return (self.key,)
        return tuple([key for child in self.children for key in child.leaves])


class GroupTree(msgspec.Struct):
    """`nodes`: by key, parents first. `fault`: why the tree is not scheduled; nodes may be missing;
    `is_invalid`: objects must be changed for that, while a missing parent may still come.
    """

    nodes: dict[str, TreeNode] = msgspec.field(default_factory=dict)
    fault: str = ""
    is_invalid: bool = False

    @property
    def root(self) -> TreeNode:
        return next(iter(self.nodes.values()))

    @property
    def is_complete(self) -> bool:
        return not self.fault and self.root.is_ready

    @property
    def leaves(self) -> tuple[str, ...]:
        """The keys of all leaves."""
        return tuple([node.key for node in self.nodes.values() if node.is_leaf])


class GroupTrees:
    """All trees. `count`: the number of pods of a group, placed or to be placed, by its key."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._groups: dict[str, PodGroup] = {}  # composites, and PodGroups with a parent
        self._children: dict[str, dict[str, None]] = {}
        self._trees: dict[str, GroupTree] = {}  # by the key of the root, or of a missing one

    def object_moved(self, key: str, group: PodGroup | None) -> None:
        """A PodGroup or CompositePodGroup was added, changed or deleted."""
        self._forget(key)
        parent = parent_of(self._groups.pop(key, None))
        if children := self._children.get(parent):
            del children[key]
            if not children:
                del self._children[parent]
        if group is not None and (parent_of(group) or isinstance(group, CompositePodGroup)):
            self._groups[key] = group
            if parent := parent_of(group):
                self._children.setdefault(parent, {})[key] = None
        self._forget(key)

    def pods_moved(self, leaf: str) -> None:
        """A pod of a group was added or deleted."""
        tree = self._trees.get(self._chain(leaf)[-1]) if leaf in self._groups else None
        node = tree.nodes.get(leaf) if tree is not None else None
        count = self._count(leaf)
        while tree is not None and node is not None:
            was_ready, node.count = node.is_ready, count
            if node.is_ready is was_ready:
                return
            change = 1 if node.is_ready else -1
            node = tree.nodes.get(parent_of(node.group))
            count = node.count + change if node is not None else 0

    def of(self, key: str) -> GroupTree | None:
        """The tree of a group; None for a PodGroup without a parent."""
        if key not in self._groups:
            return None
        chain = self._chain(key)
        if len(chain) > DEPTH_MAX + 1:
            is_cycle = len(set(chain)) < len(chain)
            fault = "the parents of its groups form a cycle" if is_cycle else _TOO_DEEP
            known = {each: self._groups[each] for each in chain[::-1] if each in self._groups}
            nodes = {each: TreeNode(each, group) for each, group in known.items()}
            return GroupTree(nodes, fault, is_invalid=True)
        root = chain[-1]
        tree = self._trees.get(root)
        if tree is None:
            tree = self._trees[root] = self._built(root)
        return tree

    def root_of(self, key: str) -> str:
        """The key of the root above a group; empty if a composite is missing. Only reads."""
        root = self._chain(key)[-1]
        return "" if root.startswith(COMPOSITE) and root not in self._groups else root

    def whole_above(self, key: str) -> str:
        """The highest group at or above a group that is evicted as a whole; else its own key."""
        for each in reversed(self._chain(key)):
            group = self._groups.get(each)
            if group is not None and group.goes_whole:
                return each
        return key

    def _chain(self, key: str) -> list[str]:
        """The keys from a group to its root, or to a missing parent; cut off where it is longer
        than any that a built tree depends on.
        """
        chain = [key]
        while len(chain) < DEPTH_MAX + 2 and (parent := parent_of(self._groups.get(chain[-1]))):
            chain.append(parent)
        return chain

    def _forget(self, key: str) -> None:
        self._trees.pop(self._chain(key)[-1], None)

    def _built(self, root: str) -> GroupTree:
        tree = GroupTree()
        if root not in self._groups:
            name = root.rpartition("/")[2]
            tree.fault = f"waits for the CompositePodGroup {name}, which does not exist"
        self._grow(tree, root, 1)
        workloads = {node.group.workload_name for node in tree.nodes.values()} - {""}
        if not tree.is_invalid and len(workloads) > 1:
            tree.fault = f"its groups name several Workloads: {', '.join(sorted(workloads)[:3])}"
            tree.is_invalid = True
        return tree

    def _grow(self, tree: GroupTree, key: str, level: int) -> list[TreeNode]:
        """Add a group, unless it is missing, and the groups below it."""
        group, below = self._groups.get(key), self._children.get(key, {})
        if level > DEPTH_MAX or len(tree.nodes) + len(below) >= GROUPS_MAX:
            tree.fault = _TOO_DEEP if level > DEPTH_MAX else _TOO_LARGE
            tree.is_invalid = True
            return []
        nodes = [] if group is None else [TreeNode(key, group, _minimum(group))]
        tree.nodes |= {node.key: node for node in nodes}
        for child in sorted(below, key=self._age):
            grown = [] if tree.is_invalid else self._grow(tree, child, level + 1)
            for node in nodes:
                node.children += grown
        for node in nodes:
            ready = sum(child.is_ready for child in node.children)
            node.count = self._count(key) if node.is_leaf else ready
        return nodes

    def _age(self, key: str) -> tuple[str, str]:
        return self._groups[key].metadata.creation_timestamp or "", key


def _minimum(group: PodGroup) -> int:
    gang = group.spec.scheduling_policy.gang
    is_composite = isinstance(group, CompositePodGroup)
    return max(gang.min_group_count if is_composite else gang.min_count, 1) if gang else 1


def parent_of(group: PodGroup | None) -> str:
    """The key of a group's parent; empty without one."""
    name = group.spec.parent_composite_pod_group_name if group is not None else None
    return f"{COMPOSITE}{group.metadata.namespace}/{name}" if group is not None and name else ""
