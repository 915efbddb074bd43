"""The score half: domains draw a pod, or put it off, by the pods that are in them.

Rule    raw = the sum over topology keys of what the node's domain has: the weight of each preferred
        term of the pod for each pod it matches (less for anti-affinity); the weight of each
        preferred term of placed pods that matches the pod; hardPodAffinityWeight for each required
        affinity term of placed pods that does. Points are 100 * ((raw - min) / (max - min)).
Rounding  divided first, multiplied then, cut last (float64); all 0 if max equals min.
Edges   where nothing draws or puts off, the plugin takes no part.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/interpodaffinity/scoring.go
"""

from collections.abc import Hashable, Iterator
from typing import Final

import numpy as np

from asched.core.config.args import InterPodAffinityArgs
from asched.core.framework.points import I64
from asched.core.plugins.inter_pod_affinity.terms import (
    Counted,
    Namespaces,
    Speakers,
    each_matching,
)
from asched.core.state.cluster import Cluster
from asched.core.state.counters import PodCounter, TermCounter, TermKind
from asched.core.state.pods import PodClass
from asched.core.state.tally import Tally
from asched.core.state.view import NodeView

SCORE_MAX: Final = 100.0


class Attraction:
    """All that draws a class of pods, with each domain's sum for the newest counts.

    Holds for one version of the namespaces. Raises ValueError if a term makes no sense.
    """

    __slots__ = (
        "_cluster",
        "_counted",
        "_counters",
        "_drawing",
        "_generation",
        "_hard_weight",
        "_own",
        "_speakers",
        "_stamps",
        "_summed_at",
        "_sums",
        "is_barred",
    )

    def __init__(
        self,
        cluster: Cluster,
        namespaces: Namespaces,
        cls: PodClass,
        args: InterPodAffinityArgs,
    ) -> None:
        terms = cls.terms
        self._cluster = cluster
        self._hard_weight = args.hard_pod_affinity_weight
        self._own: list[Counted] = [
            *each_matching(namespaces, terms.preferred_affinity),
            *each_matching(namespaces, terms.preferred_anti_affinity, -1),
        ]
        #: whether the arguments keep pods without preferred terms out of this
        self.is_barred = args.ignore_preferred_terms_of_existing_pods and not (
            terms.preferred_affinity or terms.preferred_anti_affinity
        )
        self._generation = -1
        #: those of `_own` whose keys nodes have, and their counters as far as they are made
        self._counted: list[Counted] = []
        self._counters: list[PodCounter] = []
        self._speakers = Speakers(cluster, namespaces, cls)
        self._drawing: tuple[tuple[TermCounter, int], ...] = ()
        self._sums: dict[str, I64] = {}
        self._summed_at: Hashable = None
        self._stamps: list[tuple[int, int]] = []

    @property
    def is_idle(self) -> bool:
        """Whether no domain has anything to add."""
        self._renew()
        return self.is_barred or not any(
            tally.total and tally.domain(key).any() for tally, key, _ in self._parts()
        )

    @property
    def is_untouched(self) -> bool:
        """Whether no term is involved at all, wherever pods may be: a stricter `is_idle`."""
        self._renew()
        return self.is_barred or not (self._own or self._drawing)

    def stamp(self) -> Hashable:
        """Equal stamps mean equal counts."""
        self._renew()
        return tuple([tally.version for tally, _, _ in self._parts()])

    def raw(self, nodes: NodeView) -> I64:
        """int64[M] raw scores; they may be negative."""
        label = nodes.table.label_column
        stamp = self.stamp()
        if stamp != self._summed_at or self._stamps != [label(key).stamp for key in self._sums]:
            self._sums = self._sum()
            self._summed_at = stamp
            self._stamps = [label(key).stamp for key in self._sums]
        raw: I64 | None = None
        for key, sums in self._sums.items():
            part = sums[nodes.label(key)[0]]
            raw = part if raw is None else raw + part
        return np.zeros(nodes.size, dtype=np.int64) if raw is None else raw

    def keep(self) -> None:
        """Say that the counters are still of use; make them before any trial begins."""
        self._renew()
        for counter in self._counters:
            self._cluster.topology.keep(counter)

    def _renew(self) -> None:
        if self._speakers.renew():
            weighed = ((term, self._weight_of(term)) for term in self._speakers.terms)
            self._drawing = tuple((term, weight) for term, weight in weighed if weight)
        nodes = self._cluster.nodes
        if self._generation != nodes.generation:
            self._generation = nodes.generation
            self._counted = [own for own in self._own if nodes.is_carried(own.topology_key)]
            self._counters = []
        elif any(counter.is_dropped for counter in self._counters):
            self._counters = []
        for counted in self._counted[len(self._counters) :]:
            self._counters.append(self._cluster.counter(counted.counter_key))

    def _weight_of(self, term: TermCounter) -> int:
        """What one carrier of the term adds to its domain."""
        match term.key.kind:
            case TermKind.REQUIRED_AFFINITY:
                return self._hard_weight
            case TermKind.PREFERRED_AFFINITY:
                return term.key.weight
            case TermKind.PREFERRED_ANTI_AFFINITY:
                return -term.key.weight
            case TermKind.REQUIRED_ANTI_AFFINITY:
                return 0

    def _parts(self) -> Iterator[tuple[Tally, str, int]]:
        """(counts, topology key, weight) of all that may add something."""
        for counter, own in zip(self._counters, self._counted, strict=True):
            yield counter, own.topology_key, own.weight
        for term, weight in self._drawing:
            yield term, term.key.topology_key, weight

    def _sum(self) -> dict[str, I64]:
        """int64[D] for each topology key."""
        sums: dict[str, I64] = {}
        for tally, key, weight in self._parts():
            if tally.total:
                part = tally.domain(key) * weight
                if key in sums:
                    sums[key] += part
                else:
                    sums[key] = part
        return sums


def between(raw: I64, least: int, largest: int) -> I64:
    """Raw scores of any sign to 0..100, where those of feasible rows lie between these; all 0 if
    they are equal.
    """
    span = largest - least
    if not span:
        return np.zeros_like(raw)
    return (SCORE_MAX * ((raw - least) / span)).astype(np.int64)
