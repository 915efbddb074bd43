"""The search for a start: at which moment pods fit that fit nowhere now, and where."""

from collections.abc import Generator
from typing import Any

import pytest

from asched.batch.backfill.search import END_STEPS, TRIALS_MAX, FoundStart, is_beyond, search
from asched.core.cycle.context import Attempt
from asched.core.model.kinds import POD
from asched.core.model.timestamp import rfc3339
from asched.core.queue.queued import QueuedPod
from asched.core.state.audit import recount
from asched.core.state.consumers import CONSUMES
from asched.core.state.ends import DURATION, GRACE_S
from asched.core.state.facts import Seen
from asched.core.state.reservations import NodeNeed, Reservation, Reservations, StartOrder
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod, all_rows
from tests.core.cycle.attempts import run
from tests.core.cycle.batch_stage import Batch

DAY_S = 86_400
HOSTNAME = "kubernetes.io/hostname"


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
    ) -> FoundStart | None:
        infos = [self.info(pod) for pod in pods]
        runner = self.context.runners["default-scheduler"]
        first = Attempt(1, QueuedPod(infos[0].pod, 0.0), infos[0], runner, 0.0)
        found: FoundStart | None = run(search(self.context, first, infos, respected, horizon_s))
        assert recount(self.cluster) == []
        assert not any(uid.endswith("/start") for uid in self.cluster.placed)
        return found

    def steps(self, *pods: PodBuilder) -> Generator[Any, Any, FoundStart | None]:
        infos = [self.info(pod) for pod in pods]
        runner = self.context.runners["default-scheduler"]
        first = Attempt(1, QueuedPod(infos[0].pod, 0.0), infos[0], runner, 0.0)
        return search(self.context, first, infos, (), DAY_S)

    def promised(self, node: str, cpu: int = 4000) -> Reservation:
        """So many milli-CPUs to others, from a time soon on."""
        start_s = self.now_s + 100 + GRACE_S
        return Reservation(
            "default/crew",
            "default-scheduler",
            StartOrder(0, 0.0, 1),
            start_s,
            start_s + 10 * DAY_S,
            True,
            {node: NodeNeed({"cpu": cpu, "memory": 1 << 30}, 1)},
            (self.info(a_pod("theirs")),),
            start_s,
        )

    def after_s(self, found: FoundStart | None) -> float:
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


def test_ends_beyond_the_horizon_are_not_waited_for() -> None:
    scene = Scene()
    scene.runs("long", "n1", seconds=500)
    assert scene.found(wants(), horizon_s=500) is None
    assert scene.found(wants(), horizon_s=600) is not None


def test_moments_at_which_amounts_do_not_suffice_cost_no_trial() -> None:
    scene = Scene()
    for number in range(1, 9):
        scene.runs(f"tiny-{number}", "n1", "500m", seconds=100 * number)
    assert scene.after_s(scene.found(wants())) == 800 + GRACE_S


def test_nor_do_those_at_which_a_node_has_pods_enough() -> None:
    scene = Scene()
    for number in range(1, 10):
        scene.runs(f"tiny-{number}", "n1", "1m", seconds=100 * number)
    found = scene.found(*(wants("1m", f"w{number}") for number in range(9)))
    assert scene.after_s(found) == 900 + GRACE_S
    assert found is not None
    assert found.needs == {"n1": NodeNeed({"cpu": 9}, 9)}


def test_nodes_that_never_suit_cost_no_trial() -> None:
    scene = Scene(*(room(f"n{n}", zone="a") for n in range(1, 8)), room("n8", zone="b"))
    for number in range(1, 9):
        scene.runs(f"p{number}", f"n{number}", seconds=100 * number)
    found = scene.found(wants().selects(zone="b"))
    assert found is not None
    assert (scene.after_s(found), list(found.needs)) == (800 + GRACE_S, ["n8"])


def shunned(count: int, *more: NodeBuilder) -> tuple[Scene, PodBuilder]:
    """Nodes that come free one after the other, and a pod that amounts alone would let there."""
    names = [f"n{n}" for n in range(1, count + 1)]
    scene = Scene(*(room(name, 5).labels({HOSTNAME: name}) for name in names), *more)
    for number, name in enumerate(names, 1):
        scene.runs(f"p{number}", name, seconds=100 * number)
        enemy = a_pod(f"enemy-{number}").labels(app="enemy").requests(cpu="1").on(name)
        scene.cluster.apply(Seen(POD, enemy.build()))
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "enemy"}}}
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return scene, wants().spec(affinity={"podAntiAffinity": apart})


def test_after_so_many_trials_in_vain_no_start_is_known() -> None:
    """At each moment the nodes that leave most are tried, and then all."""
    scene, pod = shunned(2, room("last"))
    scene.runs("p", "last", seconds=300)
    found = scene.found(pod)
    assert found is not None
    assert (scene.after_s(found), list(found.needs)) == (300 + GRACE_S, ["last"])
    scene, pod = shunned(TRIALS_MAX // 2, room("last", 8))
    scene.runs("p", "last", "8", seconds=5000)
    assert scene.found(pod) is None


def test_it_is_as_sure_as_the_least_sure_end_on_its_nodes() -> None:
    scene = Scene(room("n1"), room("n2"))
    scene.runs("endless", "n2")
    scene.runs("sure", "n1", "2", seconds=100)
    expected = a_pod("expected").requests(cpu="2").status(startTime=rfc3339(scene.now_s))
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


def test_it_pays_for_a_look_at_everybody_who_is_placed() -> None:
    scene = Scene(a_node("n1").allocatable(cpu="4", memory="8Gi", pods="999"))
    scene.runs("short", "n1", seconds=100)
    spent = scene.cluster.budget.spent
    scene.found(wants())
    few = scene.cluster.budget.spent - spent
    for number in range(400):
        scene.runs(f"idle-{number}", "n1", "0")
    spent = scene.cluster.budget.spent
    scene.found(wants())
    # ... for when they end, and for who of them leaves the row of the trial
    many = scene.cluster.budget.spent - spent
    assert many == pytest.approx(few + 2 * 400 * END_STEPS)


def test_who_is_too_large_for_every_node_is_told_so_without_a_look_at_anybody() -> None:
    scene = Scene()
    assert scene.found(wants("5")) is None
    spent = scene.cluster.budget.spent
    assert scene.found(wants("5")) is None
    few = scene.cluster.budget.spent - spent
    for number in range(4):
        scene.runs(f"long-{number}", "n1", "1", seconds=100)
    spent = scene.cluster.budget.spent
    assert scene.found(wants("5")) is None
    assert scene.cluster.budget.spent - spent == few


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


def test_pods_are_promised_as_well_as_amounts() -> None:
    scene = Scene(a_node("n1").allocatable(cpu="8", memory="8Gi", pods="2"), room("n2"))
    scene.runs("a", "n1", "1", seconds=100)
    scene.runs("b", "n1", "1", seconds=100)
    scene.runs("long", "n2", seconds=500)
    theirs = scene.promised("n1", 1)
    one, other = wants("1", "one"), wants("2", "other")
    assert scene.after_s(scene.found(one, respected=[theirs])) == 100 + GRACE_S
    both = scene.found(one, other, respected=[theirs])
    assert scene.after_s(both) == 500 + GRACE_S
    assert both is not None
    assert {name: need.pods for name, need in both.needs.items()} == {"n1": 1, "n2": 1}


def test_promises_that_are_not_to_be_respected_stop_no_trial() -> None:
    scene = Scene()
    scene.runs("short", "n1", seconds=100)
    scene.cluster.singleton(Reservations).put(scene.promised("n1"))
    assert scene.after_s(scene.found(wants())) == 100 + GRACE_S
    late = wants().spec(activeDeadlineSeconds=DAY_S)
    kept_off = scene.cluster.singleton(Reservations).codes(
        scene.info(late), all_rows(scene.cluster)
    )
    assert kept_off.tolist() == [1], "and binds the pod as before, now that nobody tries it"


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
    consuming = wants(name="consuming").metadata(annotations={CONSUMES: "request"})
    assert is_beyond(runner, [plain, scene.info(consuming)])
    assert is_beyond(runner, [plain, scene.info(wants().spec(**spec))]) == beyond
    runner.consults = lambda pod: True  # type: ignore[method-assign]
    assert is_beyond(runner, [plain])
