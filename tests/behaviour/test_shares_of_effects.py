"""What a namespace causes counts in its share, not only the amounts that it asks for."""

from typing import Any

import pytest

from asched.core.cluster.facts import Gone
from asched.core.model.kinds import PROVISIONING_REQUEST
from tests.builders import a_pod, room
from tests.playbook import Batch, RequestPlay, ScaleUpPlay, lasting, request_play, restarted

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "tiny"}},
            }
        ]
    }
}


def shared(count: int, percent: int = 10, **args: Any) -> RequestPlay:
    nodes = [
        room(f"n{number:02}", 64).labels(**{"kubernetes.io/hostname": f"n{number:02}"})
        for number in range(count)
    ]
    return request_play(*nodes, args={"maxNamespacePercentage": percent, **args})


def answered(play: RequestPlay, name: str = "job") -> dict[str, tuple[str, str]]:
    """What a request says once it was tried, which may take several turns."""
    for _ in range(10):
        play.turn()
        play.settle(name)
    return play.said(name)


def test_a_place_on_each_node_is_more_than_a_tenth_of_the_nodes() -> None:
    play = shared(30, keepNodes=True)
    play.template("tiny", cpu="1m", affinity=APART)
    play.ask(sets={"tiny": 30})
    assert answered(play)["Provisioned"] == ("False", "CapacityIsNotFound")
    why = "namespace default would hold places on 30 nodes, and may on 3: 10 % of the cluster"
    assert why in play.message("Provisioned")
    assert play.held() == {}
    play.audited()


def test_small_requests_share_the_nodes_of_their_namespace() -> None:
    play = shared(30)
    play.template("tiny", cpu="1m", affinity=APART)
    for number in range(5):
        play.ask(f"job-{number}", sets={"tiny": 1})
        answered(play, f"job-{number}")
    assert len(play.held()) == 3
    play.template("plain", cpu="1m")
    play.ask("plain", sets={"plain": 4})
    assert answered(play, "plain")["Provisioned"] == ("True", "CapacityIsFound")
    assert len(play.held()) == 3
    play.turn(Gone(PROVISIONING_REQUEST, play.record("job-0")))
    play.template("tiny", cpu="1m", namespace="team")
    play.ask("team", sets={"tiny": 1}, namespace="team")
    assert answered(play, "team")["Provisioned"] == ("True", "CapacityIsFound")
    play.audited()


def test_a_request_that_spreads_is_placed_on_fewer_nodes() -> None:
    play = shared(30)
    play.template("worker", cpu="10")
    play.ask(sets={"worker": 18})
    assert answered(play)["Provisioned"] == ("True", "CapacityIsFound")
    assert sorted(play.held().values()) == [6, 6, 6]
    play.audited()


def test_a_status_with_places_on_more_nodes_holds_nothing() -> None:
    play = shared(30, percent=100)
    play.template("tiny", cpu="1m", affinity=APART)
    play.ask(sets={"tiny": 30})
    answered(play)
    assert len(play.held()) == 30
    nodes = [room(f"n{number:02}", 64) for number in range(30)]
    other = restarted(play, *nodes)
    assert not other.held()
    limited = shared(30)
    limited.now_s, limited.stored, limited.version = play.now_s, play.stored, play.version
    limited.template("tiny", cpu="1m", affinity=APART)
    limited.show("job")
    assert answered(limited)["BookingExpired"] == ("True", "CapacityIsLost")
    assert limited.held() == {}


@pytest.mark.parametrize("percent", [10, 100])
def test_a_promise_on_each_node_is_more_than_a_tenth_of_the_nodes(percent: int) -> None:
    names = [f"n{number:02}" for number in range(20)]
    args = {"maxNamespacePercentage": percent}
    nodes = [room(name, 64).labels(**{"kubernetes.io/hostname": name}) for name in names]
    play = Batch(*nodes, args=args)
    play.show(*(lasting(f"a-{name}", 100, cpu=64).on(name) for name in names))
    tiny = [
        a_pod(f"t{n}").requests(cpu="1m").spec(affinity=APART).labels(app="tiny") for n in range(20)
    ]
    play.gang("crew", *tiny)
    for _ in range(10):
        play.go(after_s=0.1)
    is_promised = play.promised("scheduling.x-k8s.io:default/crew") is not None
    assert is_promised is (percent == 100), play.told
    if percent == 10:
        assert "promises to its namespace may reserve 10 % of the cluster" in play.told["t0"]
    play.audited()


def test_requests_for_nodes_count_by_their_nodes() -> None:
    play = ScaleUpPlay(room("n1", 0), maxNodesPerNamespace=5)
    play.crew(16, name="a")  # four nodes
    play.crew(8, name="b")  # two
    play.crew(4, name="c")  # one
    assert sorted(pod_set.count for r in play.requests.values() for pod_set in r.spec.pod_sets) == [
        4,
        16,
    ]
    why = "2 new nodes would be requested beside 4, and its namespace may have 5"
    assert why in play.conditions["b-0"]["message"]
