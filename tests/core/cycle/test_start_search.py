"""The search for a start: at which moment pods fit that fit nowhere now, and where."""

from math import inf
from typing import Any

import pytest

from asched.core.cycle.context import Attempt
from asched.core.cycle.start_search import Found, is_beyond, search
from asched.core.model.kinds import POD
from asched.core.model.timestamp import rfc3339
from asched.core.queue.queued import QueuedPod
from asched.core.state.audit import recount
from asched.core.state.ends import GRACE_S, START_S
from asched.core.state.facts import Seen
from asched.core.state.reservations import Need, Order, Reservation, Reservations
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.core.cycle.attempts import run
from tests.core.cycle.batch_stage import Batch

DAY_S = 86_400


def room(name: str, cpu: int = 4, **labels: str) -> NodeBuilder:
    return a_node(name).allocatable(cpu=str(cpu), memory="8Gi", pods="9").labels(**labels)


class Scene:
    def __init__(self, *nodes: NodeBuilder) -> None:
        self.play = Batch(*(nodes or (room("n1"),)))
        self.play.machine.is_active = False
        self.context, self.cluster = self.play.machine.context, self.play.parts.cluster
        self.now_s = self.cluster.wall_clock_s

    def runs(self, name: str, node: str, cpu: str = "4", seconds: int = 0) -> None:
        """A pod that its kubelet ends after so many seconds, or nobody."""
        pod = a_pod(name).requests(cpu=cpu).on(node).status(startTime=rfc3339(self.now_s))
        if seconds:
            pod.spec(activeDeadlineSeconds=seconds)
        self.cluster.apply(Seen(POD, pod.build()))

    def info(self, pod: PodBuilder) -> Any:
        built = pod.spec(schedulerName="default-scheduler").build()
        self.cluster.apply(Seen(POD, built))
        return self.cluster.classes.info_of(built)

    def found(
        self, *pods: PodBuilder, respected: Any = (), horizon_s: float = DAY_S
    ) -> Found | None:
        infos = [self.info(pod) for pod in pods]
        runner = self.context.runners["default-scheduler"]
        first = Attempt(1, QueuedPod(infos[0].pod, 0.0), infos[0], runner, 0.0)
        found: Found | None = run(search(self.context, first, infos, respected, horizon_s))
        assert recount(self.cluster) == []
        assert not any(uid.endswith("/start") for uid in self.cluster.placed)
        return found

    def promised(self, node: str) -> Reservation:
        """Four CPUs to others, from a time soon on."""
        start_s = self.now_s + 100 + GRACE_S
        return Reservation(
            "default/crew",
            "default-scheduler",
            Order(0, 0.0, 1),
            start_s,
            start_s + 10 * DAY_S,
            True,
            {node: Need({"cpu": 4000}, 1)},
            (self.info(a_pod("theirs")),),
            start_s,
        )

    def after_s(self, found: Found | None) -> float:
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
    assert found.needs == {"n2": Need({"cpu": 4000}, 1)}
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
    assert both.needs == {"n2": Need({"cpu": 4000}, 2)}


def test_without_a_known_end_there_is_no_start() -> None:
    scene = Scene()
    scene.runs("endless", "n1")
    assert scene.found(wants()) is None
    assert Scene().found(wants("9")) is None


def test_ends_beyond_the_horizon_are_not_waited_for() -> None:
    scene = Scene()
    scene.runs("long", "n1", seconds=500)
    assert scene.found(wants(), horizon_s=500) is None
    assert scene.found(wants(), horizon_s=600) is not None


def test_rules_beyond_amounts_have_their_say() -> None:
    scene = Scene(room("n1", zone="a"), room("n2", zone="b"))
    scene.runs("first", "n1", seconds=100)
    scene.runs("second", "n2", seconds=500)
    found = scene.found(wants().selects(zone="b"))
    assert found is not None
    assert (scene.after_s(found), list(found.needs)) == (500 + GRACE_S, ["n2"])


def test_what_is_promised_to_others_is_theirs() -> None:
    scene = Scene(room("n1"), room("n2"))
    scene.runs("long", "n1", seconds=500)
    scene.runs("short", "n2", seconds=100)
    theirs = scene.promised("n2")
    found = scene.found(wants(), respected=[theirs])
    assert found is not None
    assert (scene.after_s(found), list(found.needs)) == (500 + GRACE_S, ["n1"])


def test_pods_of_two_kinds_share_what_the_others_leave() -> None:
    scene = Scene(room("n1", 8), room("n2"))
    scene.runs("short", "n1", "8", seconds=100)
    scene.runs("long", "n2", seconds=500)
    theirs = scene.promised("n1")
    beside = scene.found(wants("4", "one"), respected=[theirs])
    assert beside is not None
    assert (scene.after_s(beside), list(beside.needs)) == (100 + GRACE_S, ["n1"])
    found = scene.found(wants("4", "a"), wants("3", "b"), respected=[theirs])
    assert found is not None
    assert (scene.after_s(found), set(found.needs)) == (500 + GRACE_S, {"n1", "n2"})
    assert scene.after_s(scene.found(wants("4", "c"), wants("3", "d"))) == 100 + GRACE_S


def test_promises_that_are_not_to_be_respected_stop_no_trial() -> None:
    scene = Scene()
    scene.runs("short", "n1", seconds=100)
    scene.cluster.singleton(Reservations).put(scene.promised("n1"))
    assert scene.after_s(scene.found(wants())) == 100 + GRACE_S


def test_how_long_it_is_promised_is_how_long_the_longest_of_them_lasts() -> None:
    scene = Scene(room("n1", 8))
    scene.runs("short", "n1", "8", seconds=100)
    brief = wants("2", "brief").spec(activeDeadlineSeconds=60)
    longer = wants("2", "longer").spec(activeDeadlineSeconds=600)
    found = scene.found(brief, longer)
    assert found is not None
    assert found.end_s - found.start_s == START_S + 600 + GRACE_S
    endless = scene.found(wants("2", "endless"), brief)
    assert endless is not None
    assert endless.end_s == inf


@pytest.mark.parametrize(
    ("spec", "beyond"),
    [
        ({}, False),
        ({"resourceClaims": [{"name": "gpu"}]}, True),
        ({"volumes": [{"name": "a", "emptyDir": {}}]}, False),
        ({"volumes": [{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}, True),
    ],
)
def test_pods_that_nobody_can_suppose_elsewhere(spec: Any, beyond: bool) -> None:
    scene = Scene()
    runner = scene.context.runners["default-scheduler"]
    plain = scene.info(wants(name="plain"))
    assert is_beyond(runner, [plain, scene.info(wants().spec(**spec))]) == beyond
    runner.consults = lambda pod: True  # type: ignore[method-assign]
    assert is_beyond(runner, [plain])
