"""After most nodes have gone, everything kept by row is as short as what lives, and right."""

import random

from asched.core.framework.runner import Decision
from asched.core.model.kinds import NODE
from asched.core.state.facts import Gone
from tests.builders import PodBuilder, a_node, a_pod
from tests.core.preemption.stage import Stage, a_high, a_low
from tests.weigh import weigh

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


def a_stage(numbers: list[int]) -> Stage:
    stage = Stage()
    for number in numbers:
        labels = {ZONE: f"z{number % 3}", HOSTNAME: f"n{number}"}
        stage.nodes(a_node(f"n{number}").labels(labels).allocatable(cpu="4"))
        stage.pod(a_low(f"low-{number}", f"n{number}", cpu="3", start=number % 60).labels(app="a"))
    return stage


def waiting() -> list[PodBuilder]:
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "b"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return [
        a_pod("plain").requests(cpu="1"),
        a_pod("even").labels(app="a").requests(cpu="1").spec(topologySpreadConstraints=[spread]),
        a_pod("apart").labels(app="b").spec(affinity=apart),
        a_high("high", cpu="3"),
    ]


def ask(stage: Stage) -> list[object]:
    """What becomes of each pod; of one that fits nowhere, where it could make room."""
    found: list[object] = []
    for pod in waiting():
        built = pod.build()
        answer = stage.attempt(built)
        if isinstance(answer, Decision):
            found.append((answer.feasible, answer.score))
        else:
            found.append(sorted(stage.candidates(built)))
    return found


def test_answers_are_those_of_a_cluster_that_was_never_larger() -> None:
    rng = random.Random(5)
    stays = sorted(rng.sample(range(60), 40))
    stage = a_stage(list(range(700)))
    ask(stage)
    for number in range(700):
        if number not in stays:
            stage.gone(stage.cluster.pods_seen[f"default/low-{number}"])
            stage.cluster.apply(Gone(NODE, stage.cluster.node_of(f"n{number}")))

    stage.cluster.begin_turn(0.0, is_quiet=True)

    assert stage.cluster.nodes.height <= 60
    small = a_stage(stays)
    assert ask(stage) == ask(small)
    assert ask(stage) == ask(small)
    pods_by_priority = stage.plugin._search._pods_by_priority
    assert len(pods_by_priority._pods) == stage.cluster.nodes.height
    large, little = (weigh(one.runner)["bytes"] for one in (stage, small))
    assert large < 3 * little
