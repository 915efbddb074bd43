"""Room that is promised, as amounts by row: who counts for whom, followed as it comes and goes."""

from typing import Any

from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.results.nominated_amounts import NominatedAmounts, wanted_by
from asched.core.framework.results.prepared import OperationCounts
from asched.core.model.kinds import NODE, POD
from asched.core.model.quantity import INT64_MAX
from asched.core.state.facts import Gone, Seen
from asched.core.state.nodes import ALL_ASPECTS, Aspect
from asched.core.state.nominated import Nominator
from tests.builders import PodBuilder, a_cluster, a_node, a_pod, pending
from tests.core.framework.results.kernels import Cpus, prepared


class Free(Cpus):
    """Code 1 where less than one CPU is free."""

    depends_on = Aspect.ALLOCATABLE | Aspect.POD_AMOUNTS
    reads_only_amounts = True

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        self.asked.append(nodes.size)
        return (nodes.allocatable(0) - nodes.requested(0) < 1000).astype("int32")


class Scene:
    def __init__(self, *cpus: int) -> None:
        self.cluster = a_cluster(
            *(a_node(f"n{at}").allocatable(cpu=str(cpu)) for at, cpu in enumerate(cpus))
        )
        self.nominator = Nominator.of(self.cluster)
        self.amounts = NominatedAmounts(self.cluster, self.nominator)

    def promise(self, name: str, node: str, priority: int = 5, cpu: str = "1") -> PodBuilder:
        pod = a_pod(name).requests(cpu=cpu).priority(priority)
        self.cluster.apply(Seen(POD, pod.build()))
        self.nominator.add(pod.build(), node)
        return pod

    def cpu(self, priority: int) -> list[int]:
        layer = self.amounts.layer(priority)
        return layer.amounts[0, : self.cluster.nodes.height].tolist()

    def on(self, row: int, pod: PodBuilder) -> list[str]:
        return [i.pod.metadata.name for i in self.amounts.on(row, pending(self.cluster, pod))]


def test_pods_leave_room_for_those_of_their_priority_and_above() -> None:
    scene = Scene(8, 8)
    scene.promise("low", "n0", 1, "1")
    scene.promise("high", "n0", 9, "2")
    scene.promise("other", "n1", 5, "4")
    assert scene.cpu(0) == [3000, 4000]
    assert scene.cpu(5) == [2000, 4000]
    assert scene.cpu(9) == [2000, 0]
    assert scene.cpu(10) == [0, 0]
    layer = scene.amounts.layer(0)
    assert (layer.count[:2].tolist(), layer.total, layer.rows().tolist()) == ([2, 1], 3, [0, 1])
    assert scene.on(0, a_pod("x").priority(5)) == ["high"]
    assert scene.on(0, a_pod("x").priority(1)) == ["low", "high"]
    assert scene.on(0, a_pod("high").priority(9)) == [], "itself left out"


def test_promises_that_come_and_go_are_followed_row_by_row() -> None:
    scene = Scene(8, 8)
    scene.promise("a", "n0")
    assert scene.cpu(0) == [1000, 0]
    layer = scene.amounts.layer(0)
    cursor = layer.log.end
    scene.promise("b", "n1", cpu="2")
    assert scene.cpu(0) == [1000, 2000]
    assert scene.amounts.layer(0) is layer
    assert layer.log.rows(cursor, ALL_ASPECTS) == (1,)
    scene.nominator.delete("uid-a")
    assert scene.cpu(0) == [0, 2000]
    assert (layer.total, layer.rows().tolist()) == (1, [1])


def test_who_has_its_place_by_now_is_promised_nothing() -> None:
    scene = Scene(8)
    pod = scene.promise("a", "n0")
    scene.cpu(0)
    scene.cluster.assume(pending(scene.cluster, pod), "n0")
    scene.nominator.delete("uid-a")
    assert scene.cpu(0) == [0]
    again = Scene(8)
    pod = again.promise("a", "n0")
    again.cluster.assume(pending(again.cluster, pod), "n0")
    assert again.cpu(0) == [0], "placed, whatever the nominator still says"


def test_a_node_that_goes_and_comes_keeps_its_promises() -> None:
    scene = Scene(8, 8)
    scene.promise("a", "n1")
    assert scene.cpu(0) == [0, 1000]
    node = a_node("n1").allocatable(cpu="8").build()
    scene.cluster.apply(Gone(NODE, node))
    assert scene.cpu(0) == [0, 0]
    assert scene.amounts.on(1, pending(scene.cluster, a_pod())) == []
    scene.cluster.apply(Seen(NODE, a_node("n2").build()))
    scene.cluster.apply(Seen(NODE, node))
    assert scene.cpu(0) == [0, 0, 1000]


def test_a_node_that_nobody_knows_yet_is_promised_once_it_comes() -> None:
    scene = Scene(8)
    pod = scene.promise("a", "n1")
    assert scene.cpu(0) == [0]
    assert scene.amounts.row_of(pending(scene.cluster, pod)) is None
    scene.cluster.apply(Seen(NODE, a_node("n1").build()))
    assert scene.cpu(0) == [0, 1000]
    assert scene.amounts.row_of(pending(scene.cluster, pod)) == 1
    assert scene.amounts.row_of(pending(scene.cluster, a_pod("nobody"))) is None


def test_layers_grow_with_rows_and_resources() -> None:
    scene = Scene(*[8] * 64)
    scene.promise("a", "n0")
    assert sum(scene.cpu(0)) == 1000
    scene.cluster.apply(Seen(NODE, a_node("n64").allocatable({"x.com/y": "4"}).build()))
    scene.promise("b", "n64", cpu="2")
    assert (scene.cpu(0)[0], scene.cpu(0)[64]) == (1000, 2000)


def test_sums_stay_within_64_bits_and_name_what_nodes_name() -> None:
    scene = Scene(8)
    huge = pending(scene.cluster, a_pod().requests({"memory": str(INT64_MAX), "x.com/y": "3"}))
    assert wanted_by([huge, huge], scene.cluster.nodes) == {1: INT64_MAX}


def test_a_filter_is_asked_supposing_them_there_and_only_about_their_rows() -> None:
    scene = Scene(2, 2, 2)
    plugin = Free()
    scene.promise("a", "n1", cpu="1500m")
    verdict = CachedVerdict(scene.cluster.nodes, prepared(plugin, scene.cluster), OperationCounts())
    pod = pending(scene.cluster, a_pod())

    def codes() -> list[int]:
        verdict.refresh(pod)
        return scene.amounts.layer(0).codes(verdict, pod).tolist()

    assert verdict.codes.tolist() == []
    assert codes() == [0, 1, 0]
    assert plugin.asked == [3, 1]
    scene.promise("b", "n2", cpu="500m")
    assert codes()[1:] == [1, 0]
    assert plugin.asked == [3, 1, 1]
    scene.cluster.assume(pending(scene.cluster, a_pod("c").requests(cpu="1")), "n2")
    assert codes()[1:] == [1, 1]
    scene.cluster.assume(pending(scene.cluster, a_pod("d").requests(cpu="2")), "n0")
    asked = len(plugin.asked)
    codes()
    assert plugin.asked[asked:] == [1], "nobody is nominated to n0: the filter itself is asked"
