"""The filter half: required affinity and anti-affinity, the pod's own and that of placed pods.

Rule    affinity: the node has every term's key, and each of those domains holds a pod that matches
        all terms; the first of a group, that matches its own terms, may go anywhere with the keys
        while no domain holds such a pod. Anti-affinity: no domain of the node holds a pod that one
        of the pod's terms matches; nor one with a term that matches the pod. Asked in this order.
Cost    each domain is judged once, then one gather over the rows for each key.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/interpodaffinity/filtering.go
"""

from collections.abc import Callable, Hashable
from typing import Final

import numpy as np

from asched.core.framework.points import Codes, Mask
from asched.core.framework.status import Reason
from asched.core.plugins.inter_pod_affinity.terms import (
    Counted,
    Namespaces,
    Speakers,
    all_matching,
    each_matching,
)
from asched.core.state.cluster import Cluster
from asched.core.state.counters import PodCounter, TermCounter, TermKind
from asched.core.state.nodes import LabelColumn
from asched.core.state.pods import PodClass
from asched.core.state.view import NodeView

NOT_NEAR: Final = Reason("node(s) didn't match pod affinity rules", resolvable=False)
TOO_NEAR: Final = Reason("node(s) didn't match pod anti-affinity rules", resolvable=True)
UNWANTED: Final = Reason(
    "node(s) didn't satisfy existing pods anti-affinity rules", resolvable=True
)
CODE_NOT_NEAR: Final = 1
CODE_TOO_NEAR: Final = 2
CODE_UNWANTED: Final = 3


class Nearness:
    """The required terms that concern a class of pods, with each domain judged for the newest
    counts.

    Holds for one version of the namespaces. Raises ValueError if a term makes no sense.
    """

    __slots__ = (
        "_affinity",
        "_affinity_keys",
        "_anti",
        "_cluster",
        "_counted",
        "_counters",
        "_generation",
        "_judged",
        "_judged_at",
        "_matches_itself",
        "_missing",
        "_speakers",
        "_stamps",
        "_told",
        "_unwanted",
        "has_terms",
    )

    def __init__(self, cluster: Cluster, namespaces: Namespaces, cls: PodClass) -> None:
        terms = cls.terms
        self._cluster = cluster
        self.has_terms = bool(terms.required_affinity or terms.required_anti_affinity)
        wanted = terms.required_affinity
        self._affinity = all_matching(namespaces, wanted) if wanted else None
        self._affinity_keys = tuple(dict.fromkeys(term.topology_key for term in wanted))
        self._anti = each_matching(namespaces, terms.required_anti_affinity)
        self._matches_itself = self._affinity is not None and all(
            predicate.matches(cls.label_set) for predicate in self._affinity.predicates
        )
        self._generation = -1
        #: a key of affinity that no node has: then none will do
        self._missing: str | None = None
        #: `_affinity` (if it can match at all) and those of `_anti` whose keys nodes have ...
        self._counted: list[Counted] = []
        #: ... and their counters, as far as there was time to make them
        self._counters: list[PodCounter] = []
        self._speakers = Speakers(cluster, namespaces, cls)
        self._unwanted: tuple[TermCounter, ...] = ()
        self._judged: list[tuple[int, str, Mask]] = []
        self._judged_at: list[int] | None = None
        self._stamps: list[tuple[int, int]] = []
        self._told: Hashable = None

    @property
    def is_idle(self) -> bool:
        """Whether no node can be refused: no own term, and nobody's anti-affinity speaks of it."""
        self._judge_anew()
        return not self.has_terms and not any(refused.any() for _, _, refused in self._judged)

    @property
    def is_untouched(self) -> bool:
        """Whether no term is involved at all, wherever pods may be: a stricter `is_idle`."""
        self._renew()
        return not self.has_terms and not self._unwanted

    def stamp(self) -> Hashable:
        """The verdicts on all domains: counts may move and change none of them."""
        self._judge_anew()
        if self._told is None:
            self._told = tuple(
                [(code, key, refused.tobytes()) for code, key, refused in self._judged]
            )
        return self._told

    def codes(self, nodes: NodeView) -> Codes:
        """int32[M]: 0 fits, else the code of the first rule that refuses the row."""
        self._judge_anew()
        codes = np.zeros(nodes.size, dtype=np.int32)
        for code, key, refused in self._judged:  # the first rule last, so that it has its way
            codes[refused[nodes.label(key)[0]]] = code
        return codes

    def keep(self) -> None:
        """Say that the counters are still of use; make them before any trial begins."""
        self._renew()
        for counter in self._counters:
            self._cluster.topology.keep(counter)

    def _renew(self) -> None:
        if self._speakers.renew():
            self._unwanted = tuple(
                term
                for term in self._speakers.terms
                if term.key.kind is TermKind.REQUIRED_ANTI_AFFINITY
            )
        if self._generation != self._cluster.nodes.generation:
            self._generation = self._cluster.nodes.generation
            self._choose()
        elif any(counter.is_dropped for counter in self._counters):
            self._counters = []
        for counted in self._counted[len(self._counters) :]:
            self._counters.append(self._cluster.counter(counted.counter_key))

    def _choose(self) -> None:
        """Leave out what no node can be refused by: a pod may have thousands of terms."""
        is_carried = self._cluster.nodes.is_carried
        self._missing = next((k for k in self._affinity_keys if not is_carried(k)), None)
        self._counters, self._counted, self._judged_at = [], [], None
        if self._missing is None:
            anti = [counted for counted in self._anti if is_carried(counted.topology_key)]
            near = [] if self._affinity is None else [Counted(self._affinity, "")]
            self._counted = near + anti

    def _judge_anew(self) -> None:
        """Judge every domain again if counts have moved or there are other domains."""
        self._renew()
        label = self._cluster.nodes.label_column
        moved = [tally.version for tally in (*self._counters, *self._unwanted)]
        if moved != self._judged_at or self._stamps != _stamps(label, self._judged):
            self._judged = self._judge()
            self._judged_at = moved
            self._stamps = _stamps(label, self._judged)
            self._told = None

    def _judge(self) -> list[tuple[int, str, Mask]]:
        """(code, topology key, bool[D] of refused domains), the weakest rule first."""
        if self._missing is not None:
            return [(CODE_NOT_NEAR, self._missing, np.ones(1, dtype=np.bool_))]
        unwanted: dict[str, Mask] = {}
        for term in self._unwanted:
            if term.total:
                key = term.key.topology_key
                _add(unwanted, key, term.domain(key) > 0)
        too_near: dict[str, Mask] = {}
        first = 0 if self._affinity is None else 1
        own = zip(self._counted[first:], self._counters[first:], strict=True)
        for counted, counter in own:
            _add(too_near, counted.topology_key, counter.domain(counted.topology_key) > 0)
        judged = [(CODE_UNWANTED, key, refused) for key, refused in unwanted.items()]
        judged += [(CODE_TOO_NEAR, key, refused) for key, refused in too_near.items()]
        return judged + self._judge_affinity()

    def _judge_affinity(self) -> list[tuple[int, str, Mask]]:
        label = self._cluster.nodes.label_column
        if self._affinity is None:  # no terms, or such that no pod can match
            return [
                (CODE_NOT_NEAR, key, np.ones(len(label(key).values), dtype=np.bool_))
                for key in self._affinity_keys
            ]
        counter = self._counters[0]
        refused = {key: counter.domain(key) <= 0 for key in self._affinity_keys}
        if self._matches_itself and all(mask.all() for mask in refused.values()):
            for mask in refused.values():  # the first of its group needs the keys alone
                mask[1:] = False
        return [(CODE_NOT_NEAR, key, mask) for key, mask in refused.items()]


def _add(masks: dict[str, Mask], key: str, mask: Mask) -> None:
    if key in masks:
        masks[key] |= mask
    else:
        masks[key] = mask


def _stamps(
    label: Callable[[str], LabelColumn], judged: list[tuple[int, str, Mask]]
) -> list[tuple[int, int]]:
    """What the ids stood for by which domains were judged."""
    return [label(key).stamp for _, key, _ in judged]
