"""Answers are shared between classes of pods: what one had asked again, all of them heed."""

import pytest

from asched.core.framework.attempt import Rejection
from asched.core.framework.runner import Decision
from tests.builders import a_node, a_pod
from tests.core.preemption.stage import Stage

HOSTNAME = "kubernetes.io/hostname"
TERM = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "job"}}}
#: Wants to be the only pod of its app on a node.
ALONE = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}


@pytest.mark.parametrize("comes", [True, False], ids=["a term begins to count", "it ceases to"])
def test_a_filter_that_takes_part_anew_does_so_for_every_class(*, comes: bool) -> None:
    stage = Stage()
    stage.nodes(a_node("n1").labels({HOSTNAME: "n1"}))
    lonely = a_pod("lonely").labels(app="job").spec(affinity=ALONE).on("n1")
    classes = [stage.pod(a_pod(f"p{n}").labels(app="job").requests(cpu=f"{n}m")) for n in (1, 2, 3)]

    def answers() -> list[type]:
        return [type(stage.attempt(pod)) for pod in classes]

    there = stage.pod(lonely)  # its term is known from now on, whoever carries it
    if comes:
        stage.gone(there)
        assert answers() == [Decision] * 3
        stage.pod(lonely)
        assert answers() == [Rejection] * 3
    else:
        assert answers() == [Rejection] * 3
        stage.gone(there)
        assert answers() == [Decision] * 3
