"""The (anti-)affinity terms of a pod, compiled, and the namespaces that they reach."""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple, Protocol

from asched import names
from asched.core.model.pod import Pod, PodAffinityTerm, WeightedPodAffinityTerm
from asched.core.model.pod_limits import TERMS_MAX, pod_terms
from asched.core.model.selector import Labels, Selector, compile_selector, matches


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

    def covers_namespace(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
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
    listed = frozenset(term.namespaces or ())
    if not listed and term.namespace_selector is None:
        listed = frozenset((own_namespace,))
    return AffinityTerm(
        term.topology_key,
        compile_selector(term.label_selector),
        listed,
        compile_selector(term.namespace_selector),
        weight,
    )


class LabelledNamespaces(Protocol):
    """The namespaces there are."""

    def labels_of(self, name: str, /) -> Labels: ...

    def selected(self, selector: Selector, /) -> Collection[str]:
        """The names of all namespaces with matching labels."""
        ...


def reached_namespaces(
    terms: AffinityTerms, namespace: str, labels: Labels, known: LabelledNamespaces
) -> Collection[str] | None:
    """The namespaces of the pods that rules of a pod with these terms and labels may concern,
    beyond its node; None: any.

    They are those of required anti-affinity, which concerns pods of both sides, and of affinity
    that the pod itself meets: the first such pod may go anywhere. Placed pods that attract or repel
    this one are there for good.
    """
    own = known.labels_of(namespace)
    met = (
        term
        for term in terms.required_affinity
        if term.covers_namespace(namespace, own) and matches(term.selector, labels)
    )
    found: set[str] = set()
    for term in (*met, *terms.required_anti_affinity):
        if term.topology_key == names.LABEL_HOSTNAME or term.selector is None:
            continue
        wanted = term.namespace_selector
        if wanted is not None and wanted.is_everything:
            return None
        found |= term.namespaces
        if wanted is not None:
            found.update(known.selected(wanted))
    return found
