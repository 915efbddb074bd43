"""The pod affinity terms of a pod, compiled within the budget."""

from collections.abc import Mapping
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from asched.core.cluster.budget import Budget, Gradual
from asched.core.model.pod import Pod, PodAffinityTerm, WeightedPodAffinityTerm
from asched.core.model.selector import Selector, compile_selector, matches

#: Steps of the budget for compiling a term.
TERM_STEPS: Final = 1.0
_encoder: Final = msgspec.msgpack.Encoder(order="deterministic")


class AffinityTerm(NamedTuple):
    """A compiled (anti-)affinity term of a pod. `selector` None matches nothing.

    `namespaces`: the names given, or the pod's own; `namespace_selector`: None if the term has
    none.
    """

    topology_key: str
    selector: Selector | None
    namespaces: frozenset[str]
    namespace_selector: Selector | None
    weight: int = 0

    def looks_into(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Whether it concerns pods of a namespace with these labels."""
        return namespace in self.namespaces or matches(self.namespace_selector, labels)


class AffinityTerms(NamedTuple):
    """All terms of a pod, by kind."""

    required_affinity: tuple[AffinityTerm, ...]
    required_anti_affinity: tuple[AffinityTerm, ...]
    preferred_affinity: tuple[AffinityTerm, ...]
    preferred_anti_affinity: tuple[AffinityTerm, ...]


NO_TERMS: Final = AffinityTerms((), (), (), ())


class TermsOf:
    """The affinity terms of a pod as written, and the terms compiled so far."""

    __slots__ = ("_compiled", "_counts", "_key", "_written", "count")

    def __init__(self, pod: Pod, budget: Budget) -> None:
        affinity = pod.spec.affinity
        self._key = b""
        self._written = (pod.metadata.namespace, affinity)
        together = affinity.pod_affinity if affinity else None
        apart = affinity.pod_anti_affinity if affinity else None
        groups = [
            [(term, 0) for term in (together.required if together else None) or ()],
            [(term, 0) for term in (apart.required if apart else None) or ()],
            _weighed(together.preferred if together else None),
            _weighed(apart.preferred if apart else None),
        ]
        own = pod.metadata.namespace
        self._counts = [len(group) for group in groups]
        self._compiled = Gradual(
            budget,
            [term for group in groups for term in group],
            lambda term: _term(term[0], own, term[1]),
            TERM_STEPS,
        )
        self.count = sum(self._counts)

    @property
    def key(self) -> bytes:
        """Equal for equal terms of any pods."""
        if not self._key:
            namespace, affinity = self._written
            both = affinity and (affinity.pod_affinity, affinity.pod_anti_affinity)
            self._key = _encoder.encode((namespace, both))
        return self._key

    def all(self) -> AffinityTerms:
        """All terms. Raises ValueError for an invalid selector, OutOfTurn if there are too many for
        one turn: then call it again.
        """
        if not self.count:
            return NO_TERMS
        compiled = iter(self._compiled.all())
        return AffinityTerms(*[tuple(islice(compiled, count)) for count in self._counts])


def _weighed(
    terms: tuple[WeightedPodAffinityTerm, ...] | None,
) -> list[tuple[PodAffinityTerm, int]]:
    return [(term.pod_affinity_term, term.weight) for term in terms or ()]


def _term(term: PodAffinityTerm, own_namespace: str, weight: int = 0) -> AffinityTerm:
    names = frozenset(term.namespaces or ())
    if not names and term.namespace_selector is None:
        names = frozenset((own_namespace,))
    return AffinityTerm(
        term.topology_key,
        compile_selector(term.label_selector),
        names,
        compile_selector(term.namespace_selector),
        weight,
    )
