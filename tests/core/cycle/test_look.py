"""A look at a waiting pod: who would reject it by now, or None if only an attempt can tell."""

import random
from typing import Any, ClassVar

import numpy as np
import pytest

from asched.core.cycle.look import WISH_STEPS, DryRuns
from asched.core.framework.points import (
    FilterPlugin,
    PostFilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
)
from asched.core.framework.status import SUCCESS, Status, pending, unschedulable
from asched.core.model.kinds import (
    CSI_NODE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
)
from asched.core.queue.queued import QueuedPod
from asched.core.state.facts import Gone, Seen
from asched.core.state.nodes import Aspect
from tests.builders import PodBuilder, a_node, a_pod
from tests.core.cycle.leaving import Leaving, Scene, wants
from tests.volume_builders import a_claim, a_csi_node, a_volume


def test_who_fits_is_worth_an_attempt_and_who_does_not_is_told_by_whom() -> None:
    scene = Scene()
    assert scene.look(wants()) is None
    scene.place("a")
    assert scene.look(wants()) == ({"NodeResourcesFit"}, True)
    scene.cluster.apply(Gone(POD, a_pod("a").on("n1").build()))
    assert scene.look(wants()) is None


def test_several_may_stand_against_it() -> None:
    full, tainted = a_node("n1").allocatable(cpu="1"), a_node("n2").taints("x=y:NoSchedule")
    assert Scene(full, tainted).look(wants()) == ({"NodeResourcesFit", "TaintToleration"}, True)


def test_where_nobody_can_tell_an_attempt_has_to() -> None:
    scene = Scene()
    assert DryRuns()(QueuedPod(wants().build(), 0.0)) is None, "there is no context yet"
    too_large = wants("9")
    assert scene.look(too_large, pending_on=frozenset({"Later"})) is None
    assert scene.look(too_large) is not None
    unknown = QueuedPod(wants("9").spec(schedulerName="another").build(), 0.0)
    assert scene.looks(unknown) is None
    scene.cluster.apply(Gone(NODE, a_node("n1").build()))
    assert scene.look(too_large) is None, "no node at all is an error"


def test_one_to_whom_room_is_promised_is_tried() -> None:
    scene = Scene()
    scene.place("a")
    assert scene.look(wants()) is not None
    scene.context.nominator.add(scene.cluster.pods_seen["default/web"], "n1")
    assert scene.look(wants()) is None


def test_one_that_may_evict_others_is_tried() -> None:
    scene = Scene()
    scene.place("a")
    assert scene.look(wants().priority(50)) is not None
    assert scene.look(wants(name="vip").priority(51)) is None
    assert scene.look(wants(name="mild").priority(51).spec(preemptionPolicy="Never")) is not None


class Counted(FilterPlugin):
    """Rejects all; counts how often it was asked."""

    name = "Counted"
    depends_on = Aspect.LABELS
    asked: ClassVar[int] = 0

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        type(self).asked += 1
        return np.ones(nodes.size, dtype=np.int32)

    def explain(self, pod: Any, code: int) -> Status:
        return unschedulable("no")


def test_equals_are_looked_at_once_while_nothing_moves() -> None:
    scene = Scene()
    scene.place("a")
    first = scene.look(wants())
    (runner,) = scene.context.runners.values()
    asked = []
    real = runner.fitting
    runner.fitting = lambda pod: asked.append(pod) or real(pod)  # type: ignore[method-assign]
    assert scene.look(wants(name="equal")) == first
    assert asked == []
    assert scene.look(wants(name="other", cpu="1")) is not None
    assert len(asked) >= 1


def test_who_differs_by_claims_that_nobody_uses_is_looked_at_with_the_others() -> None:
    """A thousand replicas, each with a claim of its own: one look for all of them."""
    ready = a_node("n1").allocatable(cpu="2", **{"attachable-volumes-csi-csi": "1"})
    scene = Scene(ready)
    for number in range(4):
        scene.cluster.apply(
            Seen(PERSISTENT_VOLUME, a_volume(f"v{number}", csi=("csi", f"h{number}")))
        )
        claim = a_claim(f"c{number}", volume=f"v{number}")
        scene.cluster.apply(Seen(PERSISTENT_VOLUME_CLAIM, claim))
    scene.cluster.apply(Seen(CSI_NODE, a_csi_node("n1", {"csi": 1})))
    full = ({"NodeVolumeLimits"}, True)
    scene.cluster.apply(Seen(POD, claims("a", "c0").on("n1").build()))
    assert scene.look(claims("b", "c1")) == full
    (runner,) = scene.context.runners.values()
    asked = []
    real = runner.fitting
    runner.fitting = lambda pod: asked.append(pod) or real(pod)  # type: ignore[method-assign]
    assert scene.look(claims("c", "c2")) == full
    assert asked == []
    assert scene.look(claims("d", "c2", "c3")) == full, "two volumes are another matter"
    assert scene.look(claims("e", "c0")) is None, "this volume is there already"
    assert len(asked) == 2


def claims(name: str, *wanted: str) -> PodBuilder:
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in wanted]
    return a_pod(name).spec(volumes=volumes)


def test_what_is_kept_is_forgotten_when_anything_moves() -> None:
    scene = Scene()
    scene.place("a")
    assert scene.look(wants()) is not None
    scene.cluster.apply(Seen(NODE, a_node("n2").allocatable(cpu="4").build()))
    assert scene.look(wants()) is None
    scene.place("b", "n2", "4")
    assert scene.look(wants()) is not None


def test_room_that_is_promised_to_a_more_important_pod_counts() -> None:
    scene = Scene()
    assert scene.look(wants()) is None
    vip = wants(name="vip").priority(9).spec(schedulerName="default-scheduler").build()
    scene.cluster.apply(Seen(POD, vip))
    scene.context.nominator.add(vip, "n1")
    assert scene.look(wants()) == ({"NodeResourcesFit"}, True)
    assert scene.look(wants(name="higher").priority(10)) is None


class Waiting(Counted):
    name = "Waiting"

    def explain(self, pod: Any, code: int) -> Status:
        return pending("soon")


def test_who_waits_for_something_outside_is_tried() -> None:
    assert Scene(plugins=[Waiting]).look(wants()) is None
    assert Scene(plugins=[Counted]).look(wants()) == ({"Counted"}, True)


class Failing(Counted):
    name = "Failing"

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        raise ZeroDivisionError


def test_what_fails_is_reported_by_the_attempt() -> None:
    assert Scene(plugins=[Failing]).look(wants()) is None


class Early(PreFilterPlugin):
    name = "Early"
    depends_on = Aspect(0)

    def pre_filter(self, pod: Any) -> PreFilterResult:
        return PreFilterResult(unschedulable("early"))


def test_pre_filter_may_stand_against_it() -> None:
    assert Scene(plugins=[Early]).look(wants()) == ({"Early"}, True)


class Maker(PostFilterPlugin):
    """Room may be made for each pod by itself."""

    name = "Maker"
    may = False
    asked: ClassVar[list[str]] = []

    def post_filter(self, pod: Any, rejection: Any, trial: Any) -> Any: ...

    def may_make_room(self, pod: Any, why: Any, trial: Any) -> bool:
        assert why().unschedulable_plugins
        self.asked.append(pod.pod.metadata.name)
        return type(self).may


def test_room_that_may_be_made_is_worth_an_attempt() -> None:
    Maker.asked.clear()
    maker = type("Maker", (Maker,), {"may": True})
    assert Scene(plugins=[maker]).look(wants("9")) is None
    refuses = type("Maker", (Maker,), {})
    scene = Scene(plugins=[refuses])
    assert scene.look(wants("9")) == ({"NodeResourcesFit"}, False)
    assert Maker.asked == ["web", "web"]


def test_nothing_is_measured_and_the_meter_stays() -> None:
    scene = Scene()
    (runner,) = scene.context.runners.values()
    meter = runner.meter
    scene.look(wants("9"))
    assert runner.meter is meter
    assert SUCCESS.is_success


def two_nodes() -> Leaving:
    """n1 has one core left of four, n2 none of two; pods there are of priority 50."""
    scene = Leaving(a_node("n1").allocatable(cpu="4"), a_node("n2").allocatable(cpu="2"))
    scene.place("a", "n1", "2")
    scene.place("b", "n1", "1")
    scene.place("c", "n2", "2")
    return scene


def test_a_pod_that_leaves_helps_whom_its_node_has_room_for() -> None:
    scene = two_nodes()
    assert not scene.may_help(wants("2"), "n1")
    assert not scene.may_help(wants("1", "small"), "n2")
    assert scene.may_help(wants("1", "small"), "n1")
    scene.leaves("b", "n1")
    assert scene.may_help(wants("2"), "n1")
    assert not scene.may_help(wants("2"), "n2"), "it has heard of n1"
    assert scene.may_help(wants("2"), "n3"), "nobody knows that node"


def test_what_thousands_of_classes_wish_is_found_out_once_and_counted() -> None:
    scene = two_nodes()
    resting = [scene.rests(wants(f"{2000 + i}m", f"w{i}")) for i in range(4_200)]
    budget = scene.context.queue.sliced.budget
    assert not any(scene.looks.may_help(queued, "n2") for queued in resting)
    assert budget.spent == len(resting) * WISH_STEPS
    scene.leaves("c", "n2")
    assert [queued.key for queued in resting if scene.looks.may_help(queued, "n2")] == [
        "default/w0"
    ]
    assert budget.spent == len(resting) * WISH_STEPS, "nobody was asked anew"
    resting[1].rejected_by = frozenset(("NodeName",))
    assert not scene.looks.may_help(resting[1], "n2")
    assert budget.spent == (len(resting) + 1) * WISH_STEPS, "somebody else rejected it"


def test_less_important_pods_may_make_room_there() -> None:
    scene = two_nodes()
    assert not scene.may_help(wants("3", "equal").priority(50), "n1")
    assert scene.may_help(wants("4", "vip").priority(51), "n1")
    assert not scene.may_help(wants("5", "large").priority(51), "n1")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rejected_by": frozenset({"NodePorts"})}, "ports are no amounts"),
        ({"rejected_by": frozenset()}, "nobody rejected it"),
        ({"also_blamed": frozenset({"InterPodAffinity"})}, "somebody else does by now"),
        ({"rejected_by": frozenset({"Early"})}, "no filter rejected it"),
        ({"pending_on": frozenset({"Later"})}, "it waits for something else"),
        ({"gang": "crew"}, "others are tried with it"),
    ],
)
def test_where_other_nodes_may_have_changed_for_a_pod_it_is_looked_at(
    change: dict[str, Any], why: str
) -> None:
    scene = two_nodes()
    wish = wants("2").host_port(80)
    assert not scene.may_help(wish, "n1")
    assert scene.may_help(wish, "n1", **change), why


def test_whom_room_is_promised_to_or_who_has_claims_is_looked_at() -> None:
    scene = two_nodes()
    assert scene.may_help(wants("2").status(nominatedNodeName="n2"), "n1")
    assert scene.may_help(wants("2", "claims").spec(resourceClaims=[{"name": "c"}]), "n1")
    promised = wants("2", "promised")
    scene.look(promised)
    scene.context.nominator.add(scene.cluster.pods_seen["default/promised"], "n2")
    assert scene.may_help(promised, "n1")
    assert DryRuns().may_help(QueuedPod(wants("2").build(), 0.0), "n1"), "there is no context yet"


def test_who_might_make_room_in_ways_of_its_own_is_looked_at() -> None:
    scene = Leaving(a_node("n1").allocatable(cpu="1"), plugins=[Maker])
    assert scene.may_help(wants("2"), "n1")


def test_where_others_look_at_pods_evicting_may_help_on_any_node_that_has_the_amounts() -> None:
    """One with a port, more important than those on n1: who left n2 may have had that port."""
    scene = two_nodes()
    scene.place("d", "n1", "1")

    def wish(cpu: str, name: str) -> PodBuilder:
        return wants(cpu, name).host_port(80).priority(51)

    for name, cpu in (("n1-would-do", "3"), ("large", "5")):
        assert scene.look(wish(cpu, name)) == (None if cpu == "3" else ({"NodeResourcesFit"}, True))
    assert scene.may_help(wish("3", "n1-would-do"), "n2")
    assert not scene.may_help(wish("5", "large"), "n2")


def test_who_is_not_to_be_looked_at_would_be_rejected() -> None:
    """Against whole looks: pods of several sizes, priorities, ports and dislikes come and go."""
    assert sum(map(_spared, range(60))) > 200


def _spared(seed: int) -> int:
    """How many looks were spared; each of them would have been in vain."""
    rng = random.Random(seed)
    nodes = [a_node(f"n{k}").labels(zone=f"z{k % 2}").allocatable(cpu="4") for k in range(4)]
    scene, running, spared = Leaving(*nodes), [], 0
    waiting = [_waiting(rng, number) for number in range(6)]
    for step in range(60):
        if len(running) > 8 and rng.random() < 0.6:
            gone = running.pop(rng.randrange(len(running)))
            node = gone.spec.node_name
            known = [(wish, scene.look(wish)) for wish in waiting]
            scene.cluster.apply(Gone(POD, gone))
            for wish, before in known:
                if before is None:
                    continue
                if not scene.may_help(wish, node, *before[0]):
                    spared += 1
                    assert scene.look(wish) is not None, (seed, step, wish.build())
        else:
            here = _waiting(rng, 100 + step).on(f"n{rng.randrange(4)}").build()
            running.append(here)
            scene.cluster.apply(Seen(POD, here))
    return spared


def _waiting(rng: random.Random, number: int) -> PodBuilder:
    cpu, spec = str(rng.choice([1, 2, 4])), {}
    if rng.random() < 0.3:
        term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"] = {"podAntiAffinity": required}
    pod = a_pod(f"p{number}").labels(app=rng.choice("ab")).priority(rng.choice([0, 50, 100]))
    if rng.random() < 0.3:
        pod.host_port(80)
    return pod.requests(cpu=cpu).spec(**spec)
