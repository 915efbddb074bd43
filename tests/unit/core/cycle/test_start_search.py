"""The search for a start: at which moment pods fit that fit nowhere now, and where."""

from typing import Any

from asched.batch.backfill.expected_ends import DURATION, GRACE_S
from asched.batch.backfill.reservations import NodeNeed
from asched.batch.backfill.search import Start, search
from asched.core.cluster.audit import recount
from asched.core.cluster.facts import Seen
from asched.core.cycle.attempt import Attempt
from asched.core.model.kinds import POD
from asched.core.queue.queued import QueuedPod
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.playbook import Batch
from tests.unit.core.cycle.attempts import run

DAY_S = 86_400


def room(name: str, cpu: int = 4, **labels: str) -> NodeBuilder:
    return a_node(name).allocatable(cpu=str(cpu), memory="8Gi", pods="9").labels(**labels)


class Scene:
    def __init__(self, *nodes: NodeBuilder) -> None:
        self.play = Batch(*(nodes or (room("n1"),)))
        self.play.machine.is_active = False
        self.context, self.cluster = self.play.machine.context, self.play.parts.cluster
        self.now_s = self.play.now_s

    def runs(self, name: str, node: str, cpu: str = "4", seconds: int = 0) -> None:
        """A pod that its kubelet ends after so many seconds, or nobody."""
        pod = a_pod(name).requests(cpu=cpu).on(node).status(startTime=self.play.date(self.now_s))
        if seconds:
            pod.spec(activeDeadlineSeconds=seconds)
        self.cluster.apply(Seen(POD, pod.build()))

    def info(self, pod: PodBuilder) -> Any:
        built = pod.spec(schedulerName="default-scheduler").build()
        self.cluster.apply(Seen(POD, built))
        return self.cluster.classes.info_of(built)

    def found(self, *pods: PodBuilder) -> Start | None:
        infos = [self.info(pod) for pod in pods]
        runner = self.context.runners["default-scheduler"]
        first = Attempt(1, QueuedPod(infos[0].pod, 0.0), infos[0], runner, 0.0)
        found: Start | None = run(search(self.context, first, infos, (), DAY_S, 1_000))
        assert recount(self.cluster) == []
        assert not any(uid.endswith("/start") for uid in self.cluster.placed)
        return found

    def after_s(self, found: Start | None) -> float:
        assert found is not None
        return found.start_s - self.now_s


def wants(cpu: str = "4", name: str = "web") -> PodBuilder:
    return a_pod(name).requests(cpu=cpu)


def test_the_first_end_that_leaves_room_enough() -> None:
    scene = Scene(room("n1"), room("n2"))
    scene.runs("long", "n1", seconds=500)
    scene.runs("short", "n2", seconds=100)
    found = scene.found(wants())
    assert scene.after_s(found) == 100 + GRACE_S
    assert found is not None
    assert found.needs == {"n2": NodeNeed({"cpu": 4000}, 1)}
    assert found.is_hard
    assert found.end_s > found.start_s


def test_several_pods_need_several_ends() -> None:
    scene = Scene(room("n1"), room("n2"))
    scene.runs("long", "n1", seconds=500)
    scene.runs("short", "n2", seconds=100)
    found = scene.found(wants(name="a"), wants(name="b"))
    assert scene.after_s(found) == 500 + GRACE_S
    assert found is not None
    assert set(found.needs) == {"n1", "n2"}
    both = scene.found(wants("2", "c"), wants("2", "d"))
    assert both is not None
    assert both.needs == {"n2": NodeNeed({"cpu": 4000}, 2)}


def test_without_a_known_end_there_is_no_start() -> None:
    scene = Scene()
    scene.runs("endless", "n1")
    assert scene.found(wants()) is None
    assert Scene().found(wants("9")) is None


def test_it_is_as_sure_as_the_least_sure_end_on_its_nodes() -> None:
    scene = Scene(room("n1"), room("n2"))
    scene.runs("endless", "n2")
    scene.runs("sure", "n1", "2", seconds=100)
    expected = a_pod("expected").requests(cpu="2").status(startTime=scene.play.date(scene.now_s))
    expected.metadata(annotations={DURATION: "90"})
    scene.cluster.apply(Seen(POD, expected.on("n1").build()))
    found = scene.found(wants())
    assert found is not None
    assert not found.is_hard
    elsewhere = Scene(room("n1"), room("n2"))
    elsewhere.cluster.apply(Seen(POD, expected.on("n2").build()))
    elsewhere.runs("sure", "n1", "4", seconds=60)
    other = elsewhere.found(wants())
    assert other is not None
    assert (list(other.needs), other.is_hard) == (["n1"], True)
