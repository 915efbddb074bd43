"""Pods with many terms: one counter for all, one tally for all, and nothing left when they go."""

from random import Random
from typing import Any

import pytest

from asched.core.cycle.turn_limit import CountedLimit
from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from asched.core.model.selector import Selector
from asched.core.state import many_terms
from asched.core.state.affinity_terms import AffinityTerm, TermsOf
from asched.core.state.budget import Budget
from asched.core.state.counters import PodPredicate, TermCounter, TermKind, term_keys
from asched.core.state.facts import Gone, Seen
from asched.core.state.gradual import FEW
from asched.core.state.many_terms import Counting, ManyCarried, ManyTerms
from asched.core.state.pods import LabelSet
from asched.core.state.tally import TallyLedger
from tests.builders import a_cluster, a_node, a_pod
from tests.core.cycle.playbook import Play

MANY = 40 * FEW
SPREAD = "DuringSchedulingIgnoredDuringExecution"


def apart(
    count: int, key: str = "zone", how: str = "required", app: str = "app{}"
) -> dict[str, Any]:
    """Anti-affinity to so many apps."""
    terms: list[dict[str, Any]] = [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app.format(i)}}}
        for i in range(count)
    ]
    if how == "preferred":
        terms = [{"weight": 1 + i % 5, "podAffinityTerm": term} for i, term in enumerate(terms)]
    return {"affinity": {"podAntiAffinity": {how + SPREAD: terms}}}


def a_world() -> Play:
    play = Play(*(a_node(f"n{i}").labels(zone=f"z{i}") for i in range(3)))
    play.machine.limit = CountedLimit(1)
    return play


def settle(play: Play) -> int:
    """Turns until nothing is left to do at once."""
    turns = 0
    while play.machine.next_deadline_s() == 0.0:
        play.turn()
        turns += 1
        assert turns < 2_000, "it never ends"
    return turns


def test_a_pod_is_placed_where_none_of_its_many_terms_keeps_it_out_and_others_go_on() -> None:
    play = a_world()
    for i, app in enumerate(("app7", f"app{MANY - 1}")):
        play.see(a_pod(f"there{i}").on(f"n{i}").labels(app=app))
    picky = a_pod("picky").spec(**apart(MANY)).build()
    play.turn(Seen(POD, picky))
    assert not play.node_of("uid-picky"), "it takes several turns"

    play.see(a_pod("plain"))
    assert play.node_of("uid-plain"), "another pod does not wait for it"

    assert settle(play) > 3
    assert play.node_of("uid-picky") == "n2"
    assert len(play.parts.cluster.topology._counters) == 1, "one counter for all terms"


def test_it_waits_where_a_pod_in_each_domain_matches_one_of_its_terms_until_one_goes() -> None:
    play = a_world()
    there = [a_pod(f"there{i}").on(f"n{i}").labels(app=f"app{i}").build() for i in range(3)]
    play.turn(*(Seen(POD, pod) for pod in there))
    play.see(a_pod("picky").spec(**apart(MANY)))
    settle(play)
    assert not play.node_of("uid-picky")

    play.turn(Gone(POD, there[1]))
    settle(play)
    play.turn(after_s=20)
    settle(play)

    assert play.node_of("uid-picky") == "n1"


def test_pods_that_match_a_placed_pods_many_terms_are_kept_off_and_others_are_not() -> None:
    play = a_world()
    play.see(a_pod("picky").on("n0").spec(**apart(MANY)))
    settle(play)
    for name, app in (("kept-off", f"app{MANY - 1}"), ("free", "app-other")):
        play.see(a_pod(name).labels(app=app).spec(nodeSelector={"zone": "z0"}))
        settle(play)

    assert not play.node_of("uid-kept-off")
    assert play.node_of("uid-free") == "n0"


def test_preferred_terms_weigh_as_much_together_as_one_by_one() -> None:
    """n0 has a pod that one term of weight 5 puts off, n1 has two with weight 1 each."""
    play = a_world()
    for node, apps in (("n0", [4]), ("n1", [5, 10]), ("n2", [9, 14])):
        for app in apps:
            play.see(a_pod(f"there{app}").on(node).labels(app=f"app{app}"))
    play.see(a_pod("picky").spec(**apart(MANY, how="preferred")))
    settle(play)

    assert play.node_of("uid-picky") == "n1"


def test_nothing_is_kept_of_terms_that_nobody_carries_any_more() -> None:
    play = a_world()
    pods = [
        a_pod(f"picky{i}").on("n0").spec(**apart(MANY, app=f"of{i}-{{}}")).build() for i in range(3)
    ]
    for pod in pods:
        play.turn(Seen(POD, pod))
    topology = play.parts.cluster.topology
    assert len(topology._many) == 3
    assert not topology._terms, "none of them has a counter of its own"

    for pod in pods:
        play.turn(Gone(POD, pod))

    assert not topology._many


def test_a_senseless_term_among_many_speaks_of_nobody_and_rejects_its_own_pod() -> None:
    play = a_world()
    wish = apart(MANY)
    terms = wish["affinity"]["podAntiAffinity"]["required" + SPREAD]
    terms[-1]["labelSelector"] = {"matchExpressions": [{"key": "app", "operator": "Like"}]}
    play.see(a_pod("there").on("n0").spec(**wish))
    play.see(a_pod("plain").labels(app="app1").spec(nodeSelector={"zone": "z0"}))
    play.see(a_pod("senseless").spec(**wish))
    settle(play)

    assert play.node_of("uid-plain") == "n0"
    assert not play.node_of("uid-senseless")


def test_many_terms_are_compiled_as_few_are() -> None:
    def terms_of(count: int) -> tuple[AffinityTerm, ...]:
        pod: Pod = a_pod("p").spec(**apart(count)).build()
        return play.parts.cluster.classes.class_of(pod).terms.required_anti_affinity

    play = a_world()
    assert terms_of(MANY)[:FEW] == terms_of(FEW)


def test_terms_with_keys_of_no_node_speak_of_nobody_until_a_node_has_the_key() -> None:
    play = a_world()
    terms = [
        {"topologyKey": f"k{i}", "labelSelector": {"matchLabels": {"app": "x"}}}
        for i in range(MANY)
    ]
    apart_ = {"affinity": {"podAntiAffinity": {f"required{SPREAD}": terms}}}
    play.see(a_pod("there").on("n0").labels(app="y").spec(**apart_))
    play.see(a_pod("before").labels(app="x"))
    settle(play)
    assert play.node_of("uid-before")
    topology, known = play.parts.cluster.topology, play.parts.cluster.placed["uid-before"]
    assert not topology.terms_speaking_of(known.cls.label_set, {})

    for i in range(3):
        play.turn(Seen(NODE, a_node(f"n{i}").labels(zone=f"z{i}", k7="one").build()))
    play.see(a_pod("kept off").labels(app="x"))
    settle(play)
    assert not play.node_of("uid-kept off")

    for i in range(3):
        play.turn(Seen(NODE, a_node(f"n{i}").labels(zone=f"z{i}").build()))
    settle(play)
    assert play.node_of("uid-kept off")


KINDS = (
    ("podAffinity", "required"),
    ("podAntiAffinity", "required"),
    ("podAffinity", "preferred"),
    ("podAntiAffinity", "preferred"),
)


def a_selector(rng: Random) -> dict[str, Any]:
    if rng.random() < 0.5:
        return {"matchLabels": {rng.choice("ab"): rng.choice("vw")}} if rng.random() < 0.8 else {}
    operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    one: dict[str, Any] = {"key": rng.choice("abc"), "operator": operator}
    if operator.endswith("In"):
        one["values"] = rng.sample("vwx", rng.randint(1, 2))
    return {"matchExpressions": [one]}


def any_terms(rng: Random, count: int) -> TermsOf:
    """Of any kind, with any key, looking anywhere; some without a selector match nothing."""
    written: dict[str, dict[str, list[Any]]] = {"podAffinity": {}, "podAntiAffinity": {}}
    for _ in range(count):
        stanza, how = rng.choice(KINDS)
        one: dict[str, Any] = {"topologyKey": rng.choice(("zone", "rack", "none"))}
        if rng.random() < 0.9:
            one["labelSelector"] = a_selector(rng)
        if rng.random() < 0.4:
            one["namespaces"] = rng.sample(("red", "blue", "n3"), rng.randint(1, 2))
        if rng.random() < 0.3:
            one["namespaceSelector"] = a_selector(rng)
        if how == "preferred":
            one = {"weight": rng.randint(1, 100), "podAffinityTerm": one}
        written[stanza].setdefault(how + SPREAD, []).append(one)
    return TermsOf(a_pod("p", "red").spec(affinity=written).build(), Budget())


def any_labels(rng: Random, number: int) -> LabelSet:
    namespace = rng.choice(("red", "blue", *(f"n{i}" for i in range(9))))
    return LabelSet(
        number, namespace, {k: rng.choice("vwx") for k in rng.sample("abcd", rng.randrange(5))}
    )


@pytest.mark.parametrize("seed", range(30))
def test_terms_that_are_carried_together_speak_as_each_would_alone(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_terms, "NAMESPACES_MAX", 3)
    rng, cluster = Random(seed), a_cluster(a_node("n0").labels(zone="z", rack="r"))
    written, ledger = any_terms(rng, rng.randint(1, 30)), TallyLedger(cluster.nodes)
    many = ManyCarried(ledger, Budget(), written)
    alone = [TermCounter(ledger, key) for key in term_keys(written.all())]
    of_namespaces: dict[str, dict[str, str]] = {}
    for number in range(40):
        label_set = any_labels(rng, number)
        namespace = of_namespaces.setdefault(label_set.namespace, any_labels(rng, 0).labels)
        expected: dict[tuple[TermKind, str], list[int]] = {}
        for one in alone:
            if one.key.topology_key != "none" and one.speaks_of(label_set, namespace):
                expected.setdefault((one.key.kind, one.key.topology_key), []).append(one.key.weight)
        found = {(s.kind, s.topology_key): s for s in many.spoken(label_set, namespace)}
        assert {key: (s.number, s.weight) for key, s in found.items()} == {
            key: (len(weights), sum(weights)) for key, weights in expected.items()
        }
        assert all(spoken.tally is many for spoken in found.values())
        assert len(many._inside) <= 3


def test_which_keys_nodes_have_is_asked_once_until_a_node_brings_or_takes_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thousands of terms may have a key of their own."""
    cluster, asked = a_cluster(a_node("n0").labels(zone="z")), []
    written = TermsOf(a_pod("p").spec(**apart(3)).build(), Budget())
    many = ManyCarried(TallyLedger(cluster.nodes), Budget(), written)
    is_carried = cluster.nodes.is_carried
    monkeypatch.setattr(
        type(cluster.nodes), "is_carried", lambda _, key: asked.append(key) or is_carried(key)
    )
    label_set = LabelSet(0, "default", {"app": "app1"})
    for _ in range(3):
        assert [spoken.number for spoken in many.spoken(label_set, {})] == [1]
    assert asked == ["zone"]
    cluster.apply(Gone(NODE, a_node("n0").build()))
    assert not list(many.spoken(label_set, {}))


@pytest.mark.parametrize("counting", Counting)
@pytest.mark.parametrize("seed", range(15))
def test_pods_count_by_many_terms_as_by_each_alone(
    seed: int, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Required terms weigh one each, preferred ones what they say, those that match nobody none."""
    monkeypatch.setattr(many_terms, "LABEL_SETS_MAX", 7)
    rng, cluster = Random(seed), a_cluster()
    groups = any_terms(rng, rng.randint(2, 6)).all()
    terms = [term for group in groups for term in group]

    def predicate(term: AffinityTerm) -> PodPredicate | None:
        if term.selector is None:
            return None
        return PodPredicate(None if term.namespace_selector else term.namespaces, term.selector)

    many = ManyTerms(Budget(), terms, predicate, counting)
    counter = many.make(TallyLedger(cluster.nodes))
    assert counter.is_weighed == (counting is Counting.WEIGHTS)
    for number in rng.choices(range(12), k=40):
        label_set = any_labels(Random(number), number)
        holds = [one is not None and one.matches(label_set) for one in map(predicate, terms)]
        expected = {
            Counting.ANY: any(holds),
            Counting.ALL: all(holds),
            Counting.WEIGHTS: sum(
                term.weight or 1 for term, is_held in zip(terms, holds, strict=True) if is_held
            ),
        }[counting]
        assert counter.weight_of(label_set) == expected
        assert counter.matches(label_set) == bool(expected)
        assert len(many._weights_of) <= 7


def test_of_terms_that_all_have_to_match_one_that_matches_nobody_is_enough() -> None:
    terms = TermsOf(a_pod("p").spec(**apart(2)).build(), Budget()).all().required_anti_affinity
    everybody = PodPredicate(None, Selector(()))
    for held, counts in (((True, True), 1), ((True, False), 0), ((False, True), 0)):
        holds = dict(zip(terms, held, strict=True))
        many = ManyTerms(
            Budget(), terms, lambda one, h=holds: everybody if h[one] else None, Counting.ALL
        )
        counter = many.make(TallyLedger(a_cluster().nodes))
        assert counter.weight_of(LabelSet(0, "red", {})) == counts


def test_the_budget_hears_of_each_term_that_is_looked_at() -> None:
    budget = Budget()
    terms = TermsOf(a_pod("p").spec(**apart(MANY)).build(), Budget()).all().required_anti_affinity
    many = ManyTerms(budget, terms, lambda _: None, Counting.ANY, steps=2.0)
    many.make(TallyLedger(a_cluster().nodes))
    assert budget.spent == (many_terms.TERM_STEPS + 2.0) * MANY
