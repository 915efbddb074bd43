"""The wall clock is set by a day: what lasts for seconds lasts as long as before."""

import pytest

from asched.core.cluster.facts import WallClock
from tests.builders import PodBuilder, a_node, a_pod
from tests.playbook import EPOCH_S, Play, placed, refused

DAY_S = 86_400.0
STEPS = pytest.mark.parametrize("step_s", [-DAY_S, 0.0, DAY_S])


def of_web(name: str, cpu: str = "1") -> PodBuilder:
    built = a_pod(name).requests(cpu=cpu)
    reference = {"kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    built.json["metadata"]["ownerReferences"] = [reference]
    return built


@STEPS
def test_a_node_that_refused_a_pod_is_avoided_for_seconds(step_s: float) -> None:
    play = Play(a_node("n1").allocatable(cpu="64"))
    play.turn(WallClock(EPOCH_S - play.now_s))
    assert placed(play, of_web("refused")) == "n1"
    refused(play, of_web("refused").build())
    assert not placed(play, of_web("next"))

    play.turn(WallClock(EPOCH_S + step_s - play.now_s))
    play.turn(after_s=5.0)
    assert not play.node_of(of_web("next").build().uid)
    for _ in range(12):
        play.turn(after_s=1.0)
    assert play.node_of(of_web("next").build().uid) == "n1"
