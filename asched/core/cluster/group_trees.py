"""Trees of pod groups: CompositePodGroups above PodGroups, with the gate CompositePodGroup.

A PodGroup that names a parent is a leaf; the root is the composite without a parent. The pods of
all leaves are scheduled as one unit. A leaf needs minCount pods, a composite minGroupCount of its
children; one each with a basic policy. Children are tried by age, then by name.

A tree with a fault is not scheduled: a parent is missing, the parents form a cycle, there are more
than DEPTH_MAX levels or GROUPS_MAX groups, or the groups name several Workloads.

Bounds  DEPTH_MAX steps to find a root; a tree is built anew, in GROUPS_MAX steps, when it is needed
        after a change of its objects; pods change it in one step, unless a leaf gets its minimum.
Source  KEP-6012; kubernetes/kubernetes pkg/scheduler/backend/cache (hierarchyWrapper),
        framework/plugins/gangscheduling/hierarchy_tracker.go; GROUPS_MAX is our own
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from asched.core.model.workload import CompositePodGroup, PodGroup

#: Levels of a tree, its PodGroups included (upstream's WorkloadMaxTreeDepth).
DEPTH_MAX: Final = 4
GROUPS_MAX: Final = 1_000
#: Prefix of the keys of CompositePodGroups: no name has a colon.
COMPOSITE: Final = "composite:"


class TreeNode(msgspec.Struct):
    """A group of a tree; `minimum` counts pods of a leaf, and children of a composite."""

    key: str
    group: PodGroup
    children: "list[TreeNode]" = msgspec.field(default_factory=list)

    @property
    def is_leaf(self) -> bool:
        return not self.key.startswith(COMPOSITE)

    @property
    def minimum(self) -> int:
        gang = self.group.spec.scheduling_policy.gang
        if gang is None:
            return 1
        return max(gang.min_count if self.is_leaf else gang.min_group_count, 1)

    @property
    def below(self) -> "Iterator[TreeNode]":
        """The node and all nodes below it, parents first."""
        yield self
        for child in self.children:
            yield from child.below


class GroupTree(msgspec.Struct):
    """`nodes`: parents first. `fault`: why the tree is not scheduled, and may lack its root;
    `is_invalid`: objects must be changed for that, while a missing parent may still come.
    """

    nodes: list[TreeNode] = msgspec.field(default_factory=list)
    fault: str = ""
    is_invalid: bool = False
    #: leaves with enough pods, and whether the root has enough children; None: not yet known
    ready: frozenset[str] | None = None
    is_complete: bool = False

    @property
    def root(self) -> TreeNode:
        return self.nodes[0]

    @property
    def leaves(self) -> list[TreeNode]:
        return [node for node in self.nodes if node.is_leaf]


class GroupTrees:
    """All trees. `count`: the number of pods of a group, placed or not, by its key."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._groups: dict[str, PodGroup] = {}  # composites, and PodGroups with a parent
        self._children: dict[str, dict[str, None]] = {}
        self._trees: dict[str, GroupTree] = {}  # by the key of the root, or of a missing one

    def object_moved(self, key: str, group: PodGroup | None) -> None:
        """A PodGroup or CompositePodGroup was added, changed or deleted."""
        self._forget(key)
        old = self._groups.pop(key, None)
        parent = parent_of(old)
        if parent and (children := self._children.get(parent)) is not None:
            children.pop(key, None)
            if not children:
                del self._children[parent]
        if group is not None and (parent_of(group) or isinstance(group, CompositePodGroup)):
            self._groups[key] = group
            if parent := parent_of(group):
                self._children.setdefault(parent, {})[key] = None
        self._forget(key)

    def pods_moved(self, leaf: str) -> None:
        """A pod of a group was added or deleted."""
        if leaf not in self._groups:
            return
        tree = self._trees.get(self._chain(leaf)[-1])
        if tree is None or tree.ready is None:
            return
        gang = self._groups[leaf].spec.scheduling_policy.gang
        minimum = max(gang.min_count, 1) if gang is not None else 1
        if (self._count(leaf) >= minimum) is not (leaf in tree.ready):
            tree.ready = None

    def of(self, key: str) -> GroupTree | None:
        """The tree of a group; None for a PodGroup without a parent."""
        if key not in self._groups:
            return None
        chain = self._chain(key)
        if len(chain) > DEPTH_MAX + 1:
            is_cycle = len(set(chain)) < len(chain)
            fault = "the parents of its groups form a cycle" if is_cycle else _TOO_DEEP
            known = [each for each in dict.fromkeys(chain[::-1]) if each in self._groups]
            nodes = [TreeNode(each, self._groups[each]) for each in known]
            return GroupTree(nodes, fault, is_invalid=True, ready=frozenset())
        root = chain[-1]
        tree = self._trees.get(root)
        if tree is None:
            tree = self._trees[root] = self._built(root)
        if tree.ready is None:
            self._note_ready(tree)
        return tree

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
        top = self._groups.get(root)
        if top is None:
            name = root.rpartition("/")[2]
            tree.fault = f"waits for the CompositePodGroup {name}, which does not exist"
        parents: dict[str, TreeNode] = {}
        level, depth = [root], 1
        while level:
            if len(tree.nodes) + len(level) > GROUPS_MAX:
                tree.fault = f"the tree of groups has more than {GROUPS_MAX} groups"
                tree.is_invalid = True
                break
            if depth > DEPTH_MAX:
                tree.fault, tree.is_invalid = _TOO_DEEP, True
                break
            below: list[str] = []
            for key in level:
                group = self._groups.get(key)
                if group is not None:
                    node = parents[key] = TreeNode(key, group)
                    tree.nodes.append(node)
                    if (parent := parents.get(parent_of(group))) is not None:
                        parent.children.append(node)
                below += self._children.get(key, ())
                if len(below) > GROUPS_MAX:
                    break
            if len(below) <= GROUPS_MAX:
                below.sort(key=self._age)
            level, depth = below, depth + 1
        workloads = {_workload(node.group) for node in tree.nodes} - {""}
        if not tree.is_invalid and len(workloads) > 1:
            tree.fault = f"its groups name several Workloads: {', '.join(sorted(workloads)[:3])}"
            tree.is_invalid = True
        return tree

    def _age(self, key: str) -> tuple[str, str]:
        return self._groups[key].metadata.creation_timestamp or "", key

    def _note_ready(self, tree: GroupTree) -> None:
        ready = set[str]()
        for node in reversed(tree.nodes):  # children before parents
            if node.is_leaf:
                count = self._count(node.key)
            else:
                count = sum(child.key in ready for child in node.children)
            if count >= node.minimum:
                ready.add(node.key)
        tree.ready = frozenset(ready)
        tree.is_complete = not tree.fault and tree.root.key in ready


_TOO_DEEP: Final = f"the tree of groups has more than {DEPTH_MAX} levels"


def parent_of(group: PodGroup | None) -> str:
    """The key of a group's parent; empty without one."""
    name = group.spec.parent_composite_pod_group_name if group is not None else None
    return f"{COMPOSITE}{group.metadata.namespace}/{name}" if group is not None and name else ""


def _workload(group: PodGroup) -> str:
    reference = group.spec.workload_ref
    return reference.workload_name if reference is not None else ""
