"""A pod beyond a stated limit is refused by name; it delays no other pod."""

from typing import Any

import pytest

from asched.core.cluster.facts import Seen
from asched.core.framework.effects import EmitEvent
from asched.core.model.kinds import NODE
from tests.builders import PodBuilder, a_node, a_pod
from tests.playbook import GANGS, Play, a_member, bound, seen_group

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def repelling(pod: PodBuilder, count: int, app: str = "none") -> PodBuilder:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
    return pod.spec(affinity={"podAntiAffinity": {REQUIRED: [term] * count}})


def spread(pod: PodBuilder, count: int) -> PodBuilder:
    constraint: dict[str, Any] = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": {}}
    constraint["whenUnsatisfiable"] = "ScheduleAnyway"
    return pod.spec(topologySpreadConstraints=[constraint] * count)


def choosing(pod: PodBuilder, terms: int, each: int) -> PodBuilder:
    expression = {"key": "zone", "operator": "NotIn", "values": ["nowhere"]}
    term = {"matchExpressions": [expression] * each}
    selector = {"nodeSelectorTerms": [term] * terms}
    return pod.spec(affinity={"nodeAffinity": {REQUIRED: selector}})


def tolerating(pod: PodBuilder, count: int) -> PodBuilder:
    keys = [{"key": f"key-{i:06d}", "operator": "Exists"} for i in range(count)]
    return pod.spec(tolerations=keys)


WITHIN = [
    repelling(a_pod("p"), 256),
    spread(a_pod("p"), 256),
    choosing(a_pod("p"), 256, 4),
    tolerating(a_pod("p"), 2_500),
]
BEYOND = [
    (repelling(a_pod("p"), 257), "257 affinity terms and topology spread constraints", "256"),
    (spread(a_pod("p"), 300), "300 affinity terms and topology spread constraints", "256"),
    (choosing(a_pod("p"), 257, 1), "257 affinity terms and topology spread constraints", "256"),
    (choosing(a_pod("p"), 25, 41), "1025 requirements of node affinity", "1024"),
    (tolerating(a_pod("p"), 6_000), "KiB of spec and labels", "128"),
]


@pytest.mark.parametrize("pod", WITHIN)
def test_up_to_the_limits_a_pod_is_placed(pod: PodBuilder) -> None:
    play = Play(a_node("n1").labels(zone="a"))

    play.see(pod)
    for _ in range(50):
        play.turn()

    assert play.node_of("uid-p") == "n1"


@pytest.mark.parametrize(("pod", "what", "limit"), BEYOND)
def test_beyond_one_it_has_one_event_and_one_condition(
    pod: PodBuilder, what: str, limit: str
) -> None:
    play = Play(a_node("n1").labels(zone="a"), a_node("n2").labels(zone="b"))

    play.see(pod)

    (event,) = play.of(EmitEvent)
    assert event.reason == "FailedScheduling"
    assert event.note.startswith("0/2 nodes are available: the pod has ")
    assert f"{what}, more than the limit of {limit}" in event.note
    assert play.condition()["message"] == event.note


def test_no_change_of_the_cluster_has_it_tried_again() -> None:
    play = Play(a_node("n1").labels(zone="a"))
    play.see(repelling(a_pod("p"), 257))

    for number in range(5):
        play.turn(after_s=20)
        play.turn(Seen(NODE, a_node(f"more-{number}").labels(zone="a").build()))
        assert not play.of(EmitEvent)


def test_a_group_with_such_a_pod_waits_and_other_pods_do_not() -> None:
    play = Play(a_node("n1").labels(zone="a"), **GANGS)
    seen_group(play, min_count=2)
    play.see(a_member("a"))
    play.see(repelling(a_member("b"), 257))

    play.see(a_pod("other"))

    assert bound(play) == {"other"}


def test_affinity_terms_of_a_placed_pod_beyond_the_limit_do_not_count() -> None:
    """Another scheduler placed it; kube-scheduler would respect its terms."""
    for count, node in ((256, "n2"), (257, "n1")):
        roomy = a_node("n1").labels(zone="a").allocatable(cpu="64", memory="64Gi", pods="110")
        small = a_node("n2").labels(zone="b").allocatable(cpu="2", memory="64Gi", pods="110")
        play = Play(roomy, small)
        play.see(repelling(a_pod("placed"), count, app="web").on("n1"))

        play.see(a_pod("p").labels(app="web").requests(cpu="1"))

        assert play.node_of("uid-p") == node
