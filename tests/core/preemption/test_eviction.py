"""One candidate's victims: who is evicted at all, and whose promise goes with them."""

from types import SimpleNamespace
from typing import Any

from asched.core.framework.waiting import WaitingPods
from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from asched.core.preemption.eviction import Eviction
from asched.core.preemption.under_way import Preemptor, UnderWay
from asched.core.state.facts import Seen
from asched.edge.host.assemble import Parts
from tests.builders import PodBuilder, a_node
from tests.core.preemption.stage import a_high, a_low

STAMP = "2026-01-01T00:30:00Z"


class Scene:
    """Victims on n0, and pods that are nominated to it."""

    def __init__(self, *victims: PodBuilder) -> None:
        parts = Parts.fresh()
        self.cluster, self.nominator = parts.cluster, parts.nominator
        cluster = self.cluster
        cluster.apply(Seen(NODE, a_node("n0").build()))
        infos = []
        for victim in victims:
            pod = victim.build()
            cluster.apply(Seen(POD, pod))
            infos.append(cluster.placed[pod.uid])
        trial: Any = SimpleNamespace(
            cluster=cluster,
            nominator=self.nominator,
            waiting=WaitingPods(),
            scheduler_name="asched",
        )
        self.under_way = UnderWay(cluster)
        self.preemptor = a_high("pre", priority=100).build()
        self.eviction = Eviction(
            "DefaultPreemption",
            Preemptor.of_pod(self.preemptor, "n0"),
            infos,
            trial,
            self.under_way,
        )

    def nominate(self, name: str, priority: int) -> Pod:
        pod = a_high(name, priority=priority).build()
        self.cluster.apply(Seen(POD, pod))
        self.nominator.add(pod, "n0")
        return pod

    @property
    def nominated_amounts(self) -> set[str]:
        return {pod.metadata.name for pod in self.nominator.on("n0").values()}


def test_nothing_is_done_if_all_victims_are_on_their_way_out() -> None:
    scene = Scene(*(a_low(f"low-{i}", "n0").metadata(deletionTimestamp=STAMP) for i in range(2)))
    scene.nominate("less", 50)
    assert scene.eviction.begin() is None
    assert not scene.under_way.holds_back(scene.preemptor), "it is woken when they have gone"
    assert scene.nominated_amounts == {"less"}


def test_only_less_important_pods_lose_their_promise_and_get_it_back_with_a_withdrawal() -> None:
    scene = Scene(a_low("low", "n0"))
    for name, priority in (("less", 99), ("equal", 100), ("more", 101)):
        scene.nominate(name, priority)
    assert scene.eviction.begin() is not None
    assert scene.under_way.holds_back(scene.preemptor)
    assert scene.nominated_amounts == {"equal", "more"}
    scene.eviction.withdraw()
    assert scene.nominated_amounts == {"less", "equal", "more"}
    assert not scene.under_way.holds_back(scene.preemptor)
