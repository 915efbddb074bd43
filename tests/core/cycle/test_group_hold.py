"""What is held for groups: what minResources name beyond their pods, until when, and where."""

from typing import Any

import pytest

from asched.core.cycle.context import Attempt
from asched.core.cycle.group import GroupAttempt, Outcome, Result
from asched.core.cycle.group_hold import left_of, on_lifted, refuse_if_short, settle, taken
from asched.core.cycle.holding import keep
from asched.core.framework.effects import Pause, ReadPod
from asched.core.gang.holding import Shortages
from asched.core.model.kinds import COSCHEDULING_GROUP, NODE, POD
from asched.core.model.timestamp import rfc3339
from asched.core.queue.queued import QueuedPod
from asched.core.state.audit import recount
from asched.core.state.facts import Fact, Gone, Seen, WallClock
from asched.core.state.gang import gang_of
from tests.builders import PodBuilder
from tests.core.cycle.playbook import Play
from tests.core.cycle.test_coscheduling_plays import a_group, a_member, a_play, room

KEY = "scheduling.x-k8s.io:default/crew"
WALL_S = 1_800_000_000.0


class Scene:
    """One group with minMember 1; nobody is tried."""

    def __init__(self, *nodes: Any, hold_s: int = 300, **resources: str) -> None:
        self.play: Play = a_play(
            *(nodes or (room("n1", 8),)), args={"minResourcesHoldSeconds": hold_s}
        )
        self.play.machine.is_active = False
        self.context, self.cluster = self.play.machine.context, self.play.parts.cluster
        self.turn(WallClock(WALL_S - self.play.now_s))
        self.group(**(resources or {"cpu": "4"}))

    def turn(self, *facts: Fact, after_s: float = 0.0) -> None:
        self.play.turn(*facts, after_s=after_s)
        keep(self.context)

    def group(self, **resources: str) -> None:
        group = a_group(minimum=1, minResources=resources)
        self.turn(Seen(COSCHEDULING_GROUP, group))

    def see(self, *pods: PodBuilder) -> None:
        self.turn(*(Seen(POD, pod.build()) for pod in pods))

    def lose(self, pod: PodBuilder) -> None:
        self.turn(Gone(POD, pod.build()))

    def held(self) -> dict[str, dict[str, int]]:
        hold = self.cluster.holds.of(KEY)
        places = () if hold is None or hold.is_lifted else hold.places
        return {node: dict(what.accounted) for what, node in places}  # type: ignore[union-attr]

    @property
    def until_s(self) -> float:
        hold = self.cluster.holds.of(KEY)
        assert hold is not None
        return hold.until_s


def bound(name: str, ago_s: float = 0.0, node: str = "n1", cpu: str = "1") -> PodBuilder:
    said = {"type": "PodScheduled", "status": "True"}
    said["lastTransitionTime"] = rfc3339(WALL_S - ago_s)
    return a_member(name, cpu=cpu).on(node).status(conditions=[said])


def test_what_is_left_is_held_as_long_as_the_last_pod_says() -> None:
    scene = Scene()
    scene.see(bound("first", ago_s=200))
    assert scene.held() == {"n1": {"cpu": 3000}}
    assert scene.until_s == pytest.approx(scene.play.now_s + 100)
    scene.see(bound("second", ago_s=50))
    assert scene.held() == {"n1": {"cpu": 2000}}
    assert scene.until_s == pytest.approx(scene.play.now_s + 250)


def test_a_group_that_has_not_started_holds_nothing() -> None:
    scene = Scene()
    scene.see(a_member("waiting"))
    assert scene.held() == {}
    scene.see(bound("late", ago_s=300))
    assert scene.held() == {}, "its time is up"


def test_its_own_timeout_counts_if_that_is_longer() -> None:
    scene = Scene(hold_s=10)
    group = a_group(minimum=1, minResources={"cpu": "4"}, scheduleTimeoutSeconds=600)
    scene.turn(Seen(COSCHEDULING_GROUP, group))
    scene.see(bound("first"))
    assert scene.until_s == pytest.approx(scene.play.now_s + 600)


def test_pods_of_other_schedulers_start_nothing() -> None:
    scene = Scene()
    scene.see(bound("theirs").spec(schedulerName="another"))
    assert scene.held() == {}
    scene.see(bound("ours"))
    assert scene.held() == {"n1": {"cpu": 2000}}, "what theirs take is taken all the same"


NOT_SCHEDULED = {
    "type": "PodScheduled",
    "status": "False",
    "lastTransitionTime": rfc3339(WALL_S - 200),
}


@pytest.mark.parametrize(
    ("status", "ago_s"),
    [
        ({"startTime": rfc3339(WALL_S - 60)}, 60),
        ({"startTime": "nonsense"}, 0),
        ({}, 0),
        ({"startTime": rfc3339(WALL_S + 60)}, 0),
        ({"conditions": [NOT_SCHEDULED], "startTime": rfc3339(WALL_S - 60)}, 60),
        ({"conditions": [NOT_SCHEDULED]}, 90),
    ],
)
def test_when_it_got_its_place_by_what_it_says(status: dict[str, Any], ago_s: int) -> None:
    scene = Scene()
    first = a_member("first").on("n1").status(**status)
    if "conditions" in status:
        first.metadata(creationTimestamp=rfc3339(WALL_S - 90))
    scene.see(first)
    assert scene.until_s == pytest.approx(scene.play.now_s + 300 - ago_s)


def test_one_that_is_given_its_place_now_got_it_now_however_old_it_is() -> None:
    scene = Scene()
    scene.see(a_member("first").metadata(creationTimestamp=rfc3339(WALL_S - 90)))
    info = scene.cluster.classes.info_of(scene.cluster.pods_seen["default/first"])
    scene.cluster.assume(info, "n1")
    settle(scene.context, KEY)
    assert scene.until_s == scene.play.now_s + 300


def test_what_is_held_stays_where_it_is_though_other_rows_would_do() -> None:
    scene = Scene(room("n1", 4), room("n2", 4), cpu="3")
    other = a_member("other", cpu="4", group="other").on("n1")
    scene.see(other, bound("first", node="n2"))
    assert scene.held() == {"n2": {"cpu": 2000}}
    scene.lose(other)
    settle(scene.context, KEY)
    assert scene.held() == {"n2": {"cpu": 2000}}
    assert KEY not in scene.cluster.pod_groups.moved
    scene.cluster.holds.touched[KEY] = None
    settle(scene.context, KEY)
    assert scene.cluster.holds.touched == {}, "it was looked at"


def test_what_was_held_on_a_node_that_went_while_it_did_not_count_is_held_elsewhere() -> None:
    scene = Scene(room("n1", 1), room("n2", 4), room("n3", 4), cpu="3")
    scene.see(bound("first"))
    (node,) = scene.held()
    scene.cluster.holds.lift(KEY)
    scene.cluster.apply(Gone(NODE, room(node, 4).build()))
    settle(scene.context, KEY, {})
    assert list(scene.held()) == [{"n2": "n3", "n3": "n2"}[node]]


def test_each_node_holds_what_it_offers_and_no_word_of_the_rest() -> None:
    gpus = room("n2", 1).allocatable({"x.com/gpu": "4"})
    scene = Scene(room("n1", 8), gpus, **{"cpu": "8", "x.com/gpu": "2"})
    scene.see(bound("first"))
    assert scene.held()["n2"].get("x.com/gpu") == 2
    assert "x.com/gpu" not in scene.held()["n1"]


def test_what_pods_take_is_left_no_more() -> None:
    scene = Scene(cpu="4", memory="2Gi")
    gang = gang_of(scene.cluster, KEY)
    assert gang is not None
    assert left_of(scene.cluster, KEY, gang) == {"cpu": 4000, "memory": 2 << 30}
    scene.see(bound("a"), bound("b", cpu="3"))
    assert left_of(scene.cluster, KEY, gang) == {"memory": 2 << 30}
    scene.see(bound("c", cpu="1"))
    assert left_of(scene.cluster, KEY, gang) == {"memory": 2 << 30}, "never less than nothing"


def test_rows_that_its_pods_may_use_come_first_then_those_that_hold_something() -> None:
    nodes = (room("n1", 2), room("n2", 8).taints("a=b:NoSchedule"), room("n3", 4))
    scene = Scene(*nodes, cpu="5")
    scene.see(bound("first"))
    assert scene.held() == {"n3": {"cpu": 4000}}, "one that runs does not keep them to its node"
    settle(scene.context, KEY)
    assert scene.held() == {"n3": {"cpu": 4000}}


def test_what_became_free_is_told_as_a_pod_that_leaves() -> None:
    scene = Scene(cpu="4", memory="2Gi")
    scene.see(bound("first"))
    moves: list[tuple[str, dict[str, Any]]] = []

    def move(change: Any, _now_s: float) -> None:
        (container,) = change.old.spec.containers
        moves.append((change.old.spec.node_name, dict(container.resources.requests)))

    scene.context.queue.move = move  # type: ignore[method-assign,assignment]
    before = taken(scene.cluster, KEY)
    assert list(before) == ["n1"]
    settle(scene.context, KEY, before)
    assert moves == []
    scene.cluster.wall_clock_s += 400
    scene.context.now_s += 400
    settle(scene.context, KEY)
    assert scene.held() == {}
    ((node, asked),) = moves
    assert (node, asked["cpu"], asked["memory"]) == ("n1", "3000m", str(2 << 30))
    assert taken(scene.cluster, KEY) == {}


def test_its_last_pod_ends_it() -> None:
    scene = Scene()
    scene.see(bound("first"))
    scene.lose(bound("first"))
    assert scene.held() == {}
    assert recount(scene.cluster) == []


def test_what_is_held_does_not_count_while_its_own_pods_are_tried() -> None:
    scene = Scene()
    scene.see(bound("first"))
    read = scene.cluster.nodes.columns.read
    seen = []

    def steps() -> Any:
        seen.append(int(read("requested")[0, 0]))
        yield Pause()
        seen.append(int(read("requested")[0, 0]))
        yield ReadPod(pod=None)  # type: ignore[arg-type]
        seen.append(int(read("requested")[0, 0]))
        return "done"

    cycle = on_lifted(scene.context, KEY, steps())
    counted = []
    for _ in range(2):
        next(cycle)
        counted.append(int(read("requested")[0, 0]))
    with pytest.raises(StopIteration) as end:
        next(cycle)
    assert seen == [1000] * 3
    assert counted[-1] == 4000, "whoever has his turn meanwhile finds it taken"
    assert end.value.value == "done"
    assert int(read("requested")[0, 0]) == 4000


# --- the first pods ------------------------------------------------------------------------------


def tried(scene: Scene, result: Result = Result.SCHEDULED) -> Outcome:
    """The trial of its driver, whose place is counted."""
    pod = a_member("driver").spec(schedulerName="default-scheduler")
    scene.see(pod)
    info = scene.cluster.classes.info_of(scene.cluster.pods_seen["default/driver"])
    scene.cluster.assume(info, "n1")
    runner = scene.context.runners["default-scheduler"]
    attempt = Attempt(1, QueuedPod(info.pod, 0.0), info, runner, 0.0)
    group = GroupAttempt(KEY, [attempt], 1, info.pod, 0.0)
    outcome = Outcome(result, "")
    refuse_if_short(scene.context, group, outcome)
    return outcome


def test_a_group_starts_only_where_the_rest_fits_too() -> None:
    assert tried(Scene(room("n1", 4), cpu="4")).result is Result.SCHEDULED
    scene = Scene(room("n1", 4), cpu="5")
    outcome = tried(scene)
    assert outcome.result is Result.UNSCHEDULABLE
    assert outcome.message == (
        "pod group is unschedulable, minResources of the PodGroup (cpu 5) are not free: beside the"
        " pods that fit, cpu 1 found no room"
    )
    assert outcome.refusal is not None
    assert outcome.refusal.rejectors == {"Coscheduling"}
    assert KEY in scene.cluster.singleton(Shortages)
    scene.turn(Seen(NODE, room("n1", 9).build()))
    scene.cluster.forget(scene.cluster.placed["uid-driver"])
    assert tried(scene).result is Result.SCHEDULED
    assert KEY not in scene.cluster.singleton(Shortages)


def test_what_nobody_offers_is_missing() -> None:
    assert "x.com/gpu 2" in tried(Scene(room("n1", 4), **{"x.com/gpu": "2"})).message


def test_a_group_that_does_not_fit_or_has_started_is_not_asked_about_the_rest() -> None:
    assert tried(Scene(room("n1", 4), cpu="9"), Result.UNSCHEDULABLE).message == ""
    scene = Scene(room("n1", 4), cpu="9")
    scene.see(bound("earlier"))
    assert tried(scene).result is Result.SCHEDULED
