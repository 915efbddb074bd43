"""Pods with many terms: one counter for all, one tally for all, and nothing left when they go."""

from typing import Any

from asched.core.cluster.affinity_terms import TermsOf
from asched.core.cluster.budget import FEW, Budget
from asched.core.cluster.counters import PodPredicate, TallyLedger
from asched.core.cluster.facts import Gone, Seen
from asched.core.cluster.many_terms import Counting, ManyTerms
from asched.core.cluster.pods import LabelSet
from asched.core.cycle.turn_limit import CountedLimit
from asched.core.model.kinds import NODE, POD
from asched.core.model.selector import Selector
from tests.builders import a_cluster, a_node, a_pod
from tests.plays.playbook import Play

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
