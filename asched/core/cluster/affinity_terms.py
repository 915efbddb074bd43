"""The pod affinity terms of a pod, compiled."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from asched.core.model.pod import Pod, PodAffinityTerm, WeightedPodAffinityTerm
from asched.core.model.pod_limits import TERMS_MAX, pod_terms
from asched.core.model.selector import Selector, compile_selector, matches


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


def compile_terms(pod: Pod) -> AffinityTerms:
    """The affinity terms of a pod; none if there are more than a pod may have. Raises ValueError
    for an invalid selector.
    """
    affinity, own = pod.spec.affinity, pod.metadata.namespace
    if affinity is None or not 0 < pod_terms(affinity) <= TERMS_MAX:
        return NO_TERMS
    together, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    groups = (
        [(term, 0) for term in (together.required if together else None) or ()],
        [(term, 0) for term in (apart.required if apart else None) or ()],
        _weighed(together.preferred if together else None),
        _weighed(apart.preferred if apart else None),
    )
    return AffinityTerms(
        *[tuple([_term(term, own, weight) for term, weight in group]) for group in groups]
    )


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
