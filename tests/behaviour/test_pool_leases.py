"""Several processes share the pools: what one does about those that it holds, and no others."""

import pytest

from asched.core.cluster.facts import Seen
from asched.core.cycle.orders import PoolsHeld
from asched.core.framework.effects import Bind, EmitEvent, PatchPodStatus
from asched.core.model.decode import decode
from asched.core.model.kinds import NAMESPACE, NODE
from asched.core.model.node import Node
from asched.core.model.workload import Namespace
from tests.builders import a_node, a_pod
from tests.playbook import Play, explained

POOL, TEAM = "asched.dev/pool", "team"
POOLS = [
    {"name": name, "namespaceSelector": {"matchLabels": {TEAM: name}}} for name in ("batch", "web")
]


def node(name: str, pool: str, version: int = 1) -> Seen:
    made = a_node(name).labels({POOL: pool}).allocatable(cpu="4", pods="10")
    made.json["metadata"]["resourceVersion"] = str(version)
    found: Node = made.build()
    return Seen(NODE, found)


def namespace(name: str, team: str, version: int = 1) -> Seen:
    metadata = {"name": name, "uid": name, "labels": {TEAM: team}, "resourceVersion": str(version)}
    return Seen(NAMESPACE, decode(Namespace, {"metadata": metadata}))


def held(batch: tuple[int, int] | None = None, web: tuple[int, int] | None = None) -> PoolsHeld:
    """These pools, and up to which versions of nodes and namespaces the others have let go."""
    versions = {"batch": batch, "web": web}
    return PoolsHeld({name: known for name, known in versions.items() if known is not None})


@pytest.fixture
def play() -> Play:
    made = Play(pools=POOLS)
    made.turn(PoolsHeld({}))
    made.turn(node("b", "batch"), node("w", "web"))
    made.turn(namespace("jobs", "batch"), namespace("site", "web"))
    return made


def bound(play: Play) -> dict[str, str]:
    return {bind.pod.name: bind.node for bind in play.of(Bind)}


def test_nothing_is_said_or_done_about_pods_of_pools_that_are_not_held(play: Play) -> None:
    play.see(a_pod("p", "jobs"))
    assert not play.of(Bind)
    assert not play.of(PatchPodStatus)
    assert not play.of(EmitEvent)


def test_pods_that_waited_are_tried_once_their_pool_is_held(play: Play) -> None:
    play.see(a_pod("p", "jobs"))
    play.see(a_pod("q", "site"))
    play.turn(held(batch=(1, 1)))
    assert bound(play) == {"p": "b"}


def test_a_pool_that_is_given_up_is_left_alone_until_it_is_held_again(play: Play) -> None:
    play.turn(held(batch=(1, 1), web=(1, 1)))
    play.turn(held(web=(1, 1)))
    play.see(a_pod("p", "jobs"))
    assert not play.effects
    play.see(a_pod("q", "site"))
    assert bound(play) == {"q": "w"}
    play.turn(held(batch=(1, 1), web=(1, 1)))
    assert bound(play) == {"p": "b"}


def test_a_node_that_comes_to_a_pool_is_used_once_other_pools_have_let_go(play: Play) -> None:
    play.turn(held(batch=(1, 1)))
    play.turn(node("b", "web", 2))
    play.turn(node("w", "batch", 3))
    play.see(a_pod("p", "jobs"))
    assert not play.of(Bind)
    assert "not free to be used by their pool" in play.condition()["message"]
    play.turn(held(batch=(2, 1)))
    assert not play.of(Bind)
    play.turn(held(batch=(3, 1)), after_s=10.0)
    assert bound(play) == {"p": "w"}


def test_a_node_that_leaves_and_comes_back_is_new(play: Play) -> None:
    play.turn(held(batch=(1, 1)))
    play.turn(node("b", "web", 2))
    play.see(a_pod("p", "jobs"))
    play.turn(node("b", "batch", 3), after_s=10.0)
    assert not play.of(Bind)
    play.turn(held(batch=(3, 1)), after_s=10.0)
    assert bound(play) == {"p": "b"}


def test_the_pods_of_a_namespace_that_comes_wait_until_other_pools_have_let_go(play: Play) -> None:
    play.turn(held(batch=(1, 1)))
    play.turn(namespace("site", "batch", 2))
    play.see(a_pod("p", "site"))
    assert not play.of(Bind)
    play.turn(held(batch=(1, 2)))
    assert bound(play) == {"p": "b"}


def test_the_pods_of_a_namespace_with_new_labels_wait_until_other_pools_have_seen_them(
    play: Play,
) -> None:
    """A pod with a rule about namespaces with such a label may be on its way."""
    play.turn(held(batch=(1, 1)))
    labels = {TEAM: "batch", "kind": "shared"}
    metadata = {"name": "jobs", "uid": "jobs", "labels": labels, "resourceVersion": "2"}
    play.turn(Seen(NAMESPACE, decode(Namespace, {"metadata": metadata})))
    play.see(a_pod("p", "jobs"))
    assert not play.of(Bind)
    play.turn(held(batch=(1, 2)))
    assert bound(play) == {"p": "b"}
    metadata |= {"resourceVersion": "3", "annotations": {"a": "b"}}
    play.turn(Seen(NAMESPACE, decode(Namespace, {"metadata": metadata})))
    play.see(a_pod("q", "jobs"))
    assert bound(play) == {"q": "b"}


def test_a_rule_about_pods_of_a_namespace_waits_until_other_pools_have_let_go_of_it(
    play: Play,
) -> None:
    """A binding of its former pool's holder may still be under way."""
    play.turn(held(batch=(1, 1)))
    play.turn(namespace("site", "batch", 2))
    selector = {"matchLabels": {"app": "x"}}
    term = {"topologyKey": "zone", "labelSelector": selector, "namespaces": ["jobs", "site"]}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    play.see(a_pod("p", "jobs").labels(app="x").spec(affinity=apart))
    assert not play.of(Bind)
    assert "not let go of namespace site yet" in play.condition()["message"]
    play.turn(held(batch=(1, 2)), after_s=10.0)
    assert bound(play) == {"p": "b"}


def test_a_pool_that_is_taken_anew_waits_for_all_that_it_has(play: Play) -> None:
    play.turn(held(batch=(1, 1)))
    play.turn(node("b", "batch", 5))  # its kubelet wrote its status
    play.turn(PoolsHeld({"batch": (1, 1)}, ("batch",)))
    play.see(a_pod("p", "jobs"))
    assert not play.of(Bind)
    play.turn(held(batch=(5, 1)), after_s=10.0)
    assert bound(play) == {"p": "b"}


def test_a_pod_of_a_daemon_set_belongs_to_the_pool_of_its_node(play: Play) -> None:
    play.turn(held(web=(1, 1)))
    field = {"key": "metadata.name", "operator": "In", "values": ["w"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    play.see(a_pod("p", "jobs").spec(affinity=affinity))
    assert bound(play) == {"p": "w"}


def test_a_namespace_that_is_not_known_yet_is_not_decided(play: Play) -> None:
    play.turn(PoolsHeld({"default": (9, 9)}))
    play.see(a_pod("p", "new"))
    assert not play.effects


def test_explain_names_the_lease_of_a_pool_that_another_replica_holds(play: Play) -> None:
    play.see(a_pod("p", "jobs"))
    election = {"resourceNamespace": "there", "resourceName": "mine"}
    written = {"pools": POOLS, "poolLeases": True, "leaderElection": election}
    assert "--lease there/mine-pool-batch" in explained(play, "p", "jobs", **written)
