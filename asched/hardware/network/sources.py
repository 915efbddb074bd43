"""Sources of the network topology: node labels, Kueue's or KAI's Topology, Volcano's HyperNodes.

All give the same result: for each node its domains from the top level down, each named by the
path to it, so that rack 1 of block a is not rack 1 of block b. A node that lacks a level is in no
domain of that and the lower levels.

    labels     the levels are label keys, named in the args or by a Topology object
    HyperNode  the levels are tiers, the highest number on top; a node is in the HyperNodes that
               name it, and in those that hold them. Of two in one tier the first by name counts

Source  kueue.x-k8s.io/v1beta1 Topology, kai.scheduler/v1alpha1 Topology,
        topology.volcano.sh/v1alpha1 HyperNode
Bounds  LEVELS_MAX levels; DEPTH_MAX HyperNodes one in the other
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from asched.core.model.kinds import Kind
from asched.core.model.meta import ApiObject, LabelSelector, Record
from asched.core.model.node import Node
from asched.core.model.selector import compile_selector

LEVELS_MAX: Final = 16
DEPTH_MAX: Final = 32
#: From the top level down; shorter if a level is missing.
Path = tuple[str, ...]


class TopologyLevel(Record, frozen=True, gc=False):
    node_label: str = ""


class TopologySpec(Record, frozen=True, gc=False):
    levels: tuple[TopologyLevel, ...] | None = None


class Topology(ApiObject, frozen=True, gc=False):
    """Kueue's, which KAI's copies."""

    spec: TopologySpec = TopologySpec()


class ExactMatch(Record, frozen=True, gc=False):
    name: str = ""


class RegexMatch(Record, frozen=True, gc=False):
    pattern: str = ""


class MemberSelector(Record, frozen=True, gc=False):
    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class TopologyMember(Record, frozen=True, gc=False):
    type: str = ""
    selector: MemberSelector = MemberSelector()


class HyperNodeSpec(Record, frozen=True, gc=False):
    tier: int = 0
    tier_name: str = ""
    members: tuple[TopologyMember, ...] | None = None


class HyperNode(ApiObject, frozen=True, gc=False):
    spec: HyperNodeSpec = HyperNodeSpec()


KUEUE_TOPOLOGY: Final = Kind.of(
    Topology, "kueue.x-k8s.io/v1beta1", plural="topologies", namespaced=False
)
KAI_TOPOLOGY: Final = Kind.of(
    Topology, "kai.scheduler/v1alpha1", plural="topologies", namespaced=False
)
HYPER_NODE: Final = Kind.of(HyperNode, "topology.volcano.sh/v1alpha1", namespaced=False)

#: Whether a member includes a node of this name with these labels.
Matcher = Callable[[str, Mapping[str, str]], bool]


class Levels:
    """Levels by label keys."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.names = tuple(keys[:LEVELS_MAX])

    def level_of(self, name: str) -> int | None:
        """From the top; None if there is no such level."""
        return self.names.index(name) if name in self.names else None

    def path(self, node: Node) -> Path:
        labels = node.labels
        return tuple([labels[key] for key in takewhile(labels.__contains__, self.names)])


class Tiers:
    """Levels by HyperNodes. Invalid patterns match nothing."""

    def __init__(self, hyper_nodes: Iterable[HyperNode]) -> None:
        self._by_name = {node.metadata.name: node for node in hyper_nodes}
        self._exact: dict[str, set[str]] = {}  # name of a node -> HyperNodes that hold it
        self._patterns: list[tuple[Matcher, str]] = []
        self._parents: dict[str, set[str]] = {}
        self._tiers = sorted({node.spec.tier for node in self._by_name.values()}, reverse=True)
        self._tiers = self._tiers[-LEVELS_MAX:]
        self._named: dict[str, int] = {}  # the name of a tier is optional in each HyperNode
        for name in sorted(self._by_name):
            self._read(name)
        self._above: dict[str, frozenset[str]] = {}
        first = {tier: name for name, tier in reversed(self._named.items())}
        self.names = tuple(first.get(tier) or str(tier) for tier in self._tiers)

    def level_of(self, name: str) -> int | None:
        """By number or name of the tier."""
        if name in self.names:
            return self.names.index(name)
        tier = self._named.get(name)
        if tier is None and name.isascii() and name.isdigit() and len(name) < 10:
            tier = int(name)
        return self._tiers.index(tier) if tier in self._tiers else None

    def path(self, node: Node) -> Path:
        held_by = set(self._exact.get(node.name, ()))
        held_by.update(name for matches, name in self._patterns if matches(node.name, node.labels))
        containing = set[str]().union(*map(self._with_above, held_by))
        names = sorted(containing, reverse=True)
        by_tier = {self._by_name[name].spec.tier: name for name in names}
        return tuple([by_tier[tier] for tier in takewhile(by_tier.__contains__, self._tiers)])

    def _read(self, name: str) -> None:
        spec = self._by_name[name].spec
        if spec.tier_name:
            self._named.setdefault(spec.tier_name, spec.tier)
        for member in spec.members or ():
            selector = member.selector
            exact = selector.exact_match.name if selector.exact_match is not None else ""
            if member.type == "Node":
                if exact:
                    self._exact.setdefault(exact, set()).add(name)
                for matches in _matchers(selector):
                    self._patterns.append((matches, name))
            elif member.type == "HyperNode":
                if exact in self._by_name:
                    self._parents.setdefault(exact, set()).add(name)
                if selector.regex_match is not None:
                    matches_name = _pattern(selector.regex_match.pattern)
                    for other in filter(matches_name, self._by_name):
                        self._parents.setdefault(other, set()).add(name)

    def _with_above(self, name: str) -> frozenset[str]:
        """A HyperNode and all that contain it, cycles included once."""
        known = self._above.get(name)
        if known is None:
            found, new = {name}, {name}
            for _ in range(DEPTH_MAX):
                new = {up for child in new for up in self._parents.get(child, ())} - found
                if not new:
                    break
                found |= new
            known = self._above[name] = frozenset(found)
        return known


def _matchers(selector: MemberSelector) -> Iterable[Matcher]:
    if selector.regex_match is not None:
        matches_name = _pattern(selector.regex_match.pattern)
        yield lambda name, _: matches_name(name)
    if selector.label_match is not None:
        try:
            chosen = compile_selector(selector.label_match)
        except ValueError:
            return
        if chosen is not None:
            yield lambda _, labels: chosen.matches(labels)


def _pattern(text: str) -> Callable[[str], bool]:
    """Like Go's MatchString: anywhere in the name, in linear time."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        found: Any = re2.compile(text, options).search
    except re2.error:
        return lambda _: False
    return lambda name: found(name) is not None
