"""Affinity terms of a pod: by kind, in the namespaces that are meant, in turns if they are many."""

from typing import Any

import pytest

from asched.core.state.affinity_terms import NO_TERMS, TermsOf
from asched.core.state.budget import Budget, OutOfTurn
from tests.builders import PodBuilder, a_pod


def term(app: str, key: str = "zone", **more: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}


def with_terms(name: str = "web", namespace: str = "team", **kinds: list[Any]) -> PodBuilder:
    """Keywords: require, avoid, prefer (weight, term), dislike (weight, term)."""

    def stanza(hard: str, soft: str) -> dict[str, Any]:
        weighted = [{"weight": w, "podAffinityTerm": t} for w, t in kinds.get(soft, ())]
        return {
            "requiredDuringSchedulingIgnoredDuringExecution": kinds.get(hard, []),
            "preferredDuringSchedulingIgnoredDuringExecution": weighted,
        }

    affinity = {
        "podAffinity": stanza("require", "prefer"),
        "podAntiAffinity": stanza("avoid", "dislike"),
    }
    return a_pod(name, namespace).spec(affinity=affinity)


def terms(pod: PodBuilder) -> TermsOf:
    return TermsOf(pod.build(), Budget())


ALL_KINDS = with_terms(
    require=[term("a"), term("b")],
    avoid=[term("c", "host")],
    prefer=[(7, term("d"))],
    dislike=[(9, term("e")), (3, term("f"))],
)


def test_each_kind_keeps_its_own() -> None:
    written = terms(ALL_KINDS)
    found = written.all()
    assert written.count == 6
    keys = [[(t.topology_key, t.weight) for t in kind] for kind in found]
    assert keys == [
        [("zone", 0), ("zone", 0)],
        [("host", 0)],
        [("zone", 7)],
        [("zone", 9), ("zone", 3)],
    ]
    (avoided,) = found.required_anti_affinity
    assert avoided.selector is not None
    assert avoided.selector.matches({"app": "c"})
    assert not avoided.selector.matches({"app": "a"})


@pytest.mark.parametrize(
    ("more", "names", "has_selector"),
    [
        ({}, {"team"}, False),
        ({"namespaces": ["x", "y"]}, {"x", "y"}, False),
        ({"namespaceSelector": {}}, set(), True),
        ({"namespaces": ["x"], "namespaceSelector": {}}, {"x"}, True),
    ],
)
def test_without_namespaces_the_pod_s_own_is_meant(
    more: dict[str, Any], names: set[str], has_selector: bool
) -> None:
    (one,) = terms(with_terms(require=[term("a", **more)])).all().required_affinity
    assert one.namespaces == names
    assert (one.namespace_selector is not None) == has_selector


def test_a_term_without_a_selector_matches_nothing() -> None:
    (one,) = terms(with_terms(avoid=[{"topologyKey": "zone"}])).all().required_anti_affinity
    assert one.selector is None


def test_a_pod_without_terms_has_none() -> None:
    assert terms(a_pod()).all() is NO_TERMS
    assert terms(with_terms()).all() is NO_TERMS
    assert terms(a_pod().spec(affinity={"podAffinity": {}})).count == 0


def test_a_selector_that_makes_no_sense_is_an_error() -> None:
    bad = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}
    with pytest.raises(ValueError):
        terms(with_terms(require=[{**bad, "topologyKey": "zone"}])).all()


def test_what_says_the_same_has_the_same_key_whoever_carries_it() -> None:
    one = terms(with_terms("a", require=[term("x")])).key
    assert one == terms(with_terms("b", require=[term("x")]).labels(app="other")).key
    assert one == terms(with_terms("a", require=[term("x")]).prefers_nodes()).key
    assert one != terms(with_terms("a", namespace="other", require=[term("x")])).key
    assert one != terms(with_terms("a", avoid=[term("x")])).key
    assert terms(a_pod("a", "team")).key == terms(a_pod("b", "team")).key != one


def test_many_terms_take_several_turns_and_none_is_compiled_twice() -> None:
    budget = Budget()
    written = TermsOf(with_terms(require=[term(str(n)) for n in range(130)]).build(), budget)
    turns = 0
    while True:
        budget.open(1)
        turns += 1
        try:
            found = written.all()
        except OutOfTurn:
            continue
        break
    assert len(found.required_affinity) == 130
    assert turns == 3
    assert budget.spent == 130
