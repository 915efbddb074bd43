"""What counts as a match, and the index that finds the counters a pod might move."""

from collections.abc import Iterable

from asched.core.model.selector import Requirement, Selector, equality_selector
from asched.core.state.counters import (
    CounterKey,
    PodCounter,
    PodPredicate,
    SelectorIndex,
    TermKind,
    term_keys,
)
from asched.core.state.nodes import NodeTable
from asched.core.state.pods import LabelSet
from asched.core.state.tally import TallyLedger
from tests.topology_world import ZONE, World, a_pod, affinity, term

WEB, DB = equality_selector({"app": "web"}), equality_selector({"app": "db"})
HAS_TIER = Selector((Requirement("tier", "Exists", frozenset()),))


def predicate(selector: Selector, *namespaces: str) -> PodPredicate:
    return PodPredicate(frozenset(namespaces) if namespaces else None, selector)


def labels(namespace: str = "x", **own: str) -> LabelSet:
    return LabelSet(0, namespace, own)


def test_all_predicates_must_match() -> None:
    both = CounterKey((predicate(WEB), predicate(HAS_TIER, "x")), counts_terminating=True)
    counter = PodCounter(TallyLedger(NodeTable()), both)

    assert counter.matches(labels(app="web", tier="t"))
    assert not counter.matches(labels(app="web"))
    assert not counter.matches(labels("y", app="web", tier="t"))


def test_predicates_hold_in_the_namespaces_that_all_of_them_name() -> None:
    named = (predicate(WEB, "x", "y"), predicate(HAS_TIER, "y", "z"))
    counter = PodCounter(TallyLedger(NodeTable()), CounterKey(named, counts_terminating=True))
    own = {"app": "web", "tier": "t"}
    assert [counter.matches(labels(ns, **own)) for ns in "xyz"] == [False, True, False]


def test_the_index_names_each_candidate_once() -> None:
    ledger = TallyLedger(NodeTable())
    index: SelectorIndex[PodCounter] = SelectorIndex()
    names = {}

    def add(name: str, selector: Selector, *namespaces: str) -> None:
        one = predicate(selector, *namespaces)
        counter = PodCounter(ledger, CounterKey((one,), counts_terminating=True))
        names[counter] = name
        index.add(one.namespaces, selector, counter)

    add("web anywhere", WEB)
    add("web in x and y", WEB, "x", "y")
    add("web or db in y", Selector((Requirement("app", "In", frozenset({"web", "db"})),)), "y")
    add("tier in x", HAS_TIER, "x")
    add("all", Selector(()))

    def found(label_set: LabelSet) -> list[str]:
        candidates: Iterable[PodCounter] = index.candidates(label_set)
        return sorted(names[counter] for counter in candidates)

    assert found(labels(app="web")) == ["all", "tier in x", "web anywhere", "web in x and y"]
    assert found(labels("y", app="db")) == ["all", "web or db in y"]
    assert found(labels("z")) == ["all"]


def test_the_keys_of_terms() -> None:
    near = term("zone", "app=web", within="team=a")
    wishes = affinity(near=[near, term("zone", None)], put_off=[(7, term("zone", "app=db"))])
    cls = World().info(a_pod("p", affinity=wishes)).cls

    keys = list(term_keys(cls.terms))

    assert [(k.kind, k.topology_key, k.selector, k.namespaces, k.weight) for k in keys] == [
        (TermKind.REQUIRED_AFFINITY, ZONE, WEB, frozenset(), 0),
        (TermKind.PREFERRED_ANTI_AFFINITY, ZONE, DB, frozenset({"default"}), 7),
    ]
