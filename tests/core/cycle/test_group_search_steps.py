"""The search for the places of a gang, step by step: for whom, what is asked when, what is left."""

from typing import Any

import pytest

from asched.batch.groups.attempt import GroupOutcome, Result
from asched.batch.groups.search import KNOWN_MAX, STEPS_MIN, Searches, missing, search_places
from asched.batch.placement.problem import Infeasible, Unproven
from asched.batch.placement.search import MOVED, SPENT
from asched.core.framework.effects import Pause
from asched.core.framework.points import PermitPlugin
from asched.core.framework.status import SUCCESS, Status, unschedulable
from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP, NODE, POD_GROUP
from asched.core.model.workload import CoschedulingGroup
from asched.core.state.audit import recount
from asched.core.state.facts import Seen
from asched.core.state.pod_groups import COSCHEDULING_LABEL, coscheduled_key
from tests.builders import NodeBuilder, PodBuilder, a_cluster, a_node, a_pod
from tests.core.cycle.attempts import KEY, GroupScene, members, run
from tests.core.cycle.gang_plays import a_group, a_member

HOST = "kubernetes.io/hostname"


def room(name: str, cpu: int = 4) -> NodeBuilder:
    return a_node(name).labels({HOST: name}).allocatable(cpu=str(cpu), pods="10")


def sizes(*cpus: int) -> list[PodBuilder]:
    return [a_member(f"p{number}", cpu=str(cpu)) for number, cpu in enumerate(cpus)]


def a_scene(*cpus: int, minimum: int, **more: Any) -> GroupScene:
    """Nodes with so many CPUs."""
    return GroupScene(*(room(f"n{n}", c) for n, c in enumerate(cpus)), minimum=minimum, **more)


def places(found: Any) -> dict[str, list[str]]:
    """Who is where, by node."""
    assert isinstance(found, GroupOutcome), found
    assert found.result is Result.SCHEDULED
    where: dict[str, list[str]] = {}
    for tried in found.tried:
        if tried.decision is not None:
            where.setdefault(tried.decision.node, []).append(tried.attempt.pod.metadata.name)
    return where


# --- what it may cost ----------------------------------------------------------------------------


def test_what_ended_in_something_known_costs_everything_again() -> None:
    searches = Searches(a_cluster())
    assert searches.steps("a", 100) == 100, "less than STEPS_MIN if there is no more"
    for found in (Infeasible("so"), GroupOutcome(Result.SCHEDULED, "")):
        searches.ended("a", SPENT)
        assert searches.steps("a", 4 * STEPS_MIN) == 2 * STEPS_MIN
        searches.ended("a", found)
        assert searches.steps("a", 4 * STEPS_MIN) == 4 * STEPS_MIN


def test_of_many_groups_whose_search_was_in_vain_the_longest_ago_is_forgotten() -> None:
    searches = Searches(a_cluster())
    for number in (*range(KNOWN_MAX), 0):
        searches.ended(str(number), SPENT)
    assert searches.steps("1", 100_000) == 50_000, "there is room for so many"
    searches.ended("more", SPENT)
    kept = {key: searches.steps(key, 100_000) for key in ("0", "1", "2", "more")}
    assert kept == {"0": 25_000, "1": 100_000, "2": 50_000, "more": 50_000}


# --- for whom ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("minimum", "waiting", "there", "needed"),
    [
        (3, 3, 0, 3),
        (3, 5, 0, 3),
        (3, 3, 1, 2),
        (3, 1, 2, 1),
        (3, 3, 3, 0),  # it has started: its other pods go one by one
        (3, 2, 0, 0),  # it cannot be completed
        (None, 3, 0, 0),  # no gang
    ],
)
def test_as_many_pods_must_get_places_as_the_gang_lacks(
    minimum: int | None, waiting: int, there: int, needed: int
) -> None:
    placed = tuple(a_member(f"there{n}").on("n0") for n in range(there))
    scene = GroupScene(room("n0", 9), placed=placed)
    scene.play.turn(Seen(POD_GROUP, a_group(min_count=minimum)))
    group = scene.group(*members(waiting))
    assert missing(scene.context, group) == needed
    for attempt in group.attempts[:2]:
        scene.cluster.assume(attempt.info, "n0")
    assert missing(scene.context, group) == needed, "places that are held count for nothing"


def test_pods_that_leave_count_for_a_gang_and_not_for_coscheduling() -> None:
    """GangScheduling counts whoever has a place, scheduler-plugins who is not terminating."""
    label = {COSCHEDULING_LABEL: "crew"}
    leaves = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    plain = GroupScene(
        room("n0"), placed=(a_member("there").on("n0").metadata(**leaves),), minimum=2
    )
    assert missing(plain.context, plain.group(*members(2))) == 1
    scene = GroupScene(
        room("n0"), placed=(a_pod("there").labels(label).on("n0").metadata(**leaves),)
    )
    metadata = {"name": "crew", "namespace": "default", "uid": "uid-crew"}
    crew = decode(CoschedulingGroup, {"metadata": metadata, "spec": {"minMember": 2}})
    scene.play.turn(Seen(COSCHEDULING_GROUP, crew))
    scene.context.gang_search_steps = 1_000
    group = scene.group(*(a_pod(name).labels(label) for name in "ab"))
    group.key = coscheduled_key(KEY)
    assert missing(scene.context, group) == 2


# --- what is found -------------------------------------------------------------------------------


def test_every_pod_goes_where_the_plan_has_it() -> None:
    """The largest first, each to the emptier node, would leave 1 CPU here and there and one pod
    without a place.
    """
    scene = a_scene(6, 6, minimum=5)
    found = places(run(search_places(scene.context, scene.group(*sizes(3, 3, 2, 2, 2)))))
    assert sorted(sorted(names) for names in found.values()) == [["p0", "p1"], ["p2", "p3", "p4"]]


def test_prices_refute_what_counting_and_flow_do_not() -> None:
    """8 CPUs for 8, but where a large one is, the small one has no room any more."""
    scene = a_scene(4, 4, minimum=3)
    found = run(search_places(scene.context, scene.group(*sizes(3, 3, 2))))
    assert isinstance(found, Infeasible)
    assert "weighed" in found.why
    assert not scene.cluster.placed


class Refusing(PermitPlugin):
    name = "Refusing"

    def permit(self, pod: Any, node: str) -> tuple[Status, float]:
        return (unschedulable("no") if pod.pod.metadata.name == "p0" else SUCCESS), 0.0


def test_what_permit_refuses_was_not_found() -> None:
    scene = a_scene(4, 4, minimum=2, plugins=(Refusing,))
    found = run(search_places(scene.context, scene.group(*sizes(1, 2))))
    assert found == Unproven("what was found was refused at Reserve or Permit")
    assert not scene.cluster.placed
    assert recount(scene.cluster) == []


# --- while others have their turn ----------------------------------------------------------------


def beside(
    scene: GroupScene, pods: list[PodBuilder], pause: int, *facts: Any, slice_: int = 20
) -> tuple[int, Any]:
    """(how often a search pauses, what it finds) in short slices; `facts` come in one pause."""
    budget, pauses = scene.cluster.budget, 0
    group = scene.group(*pods)
    budget.open(slice_)
    steps = search_places(scene.context, group)
    while True:
        try:
            assert isinstance(next(steps), Pause)
        except StopIteration as end:
            budget.close()
            return pauses, end.value
        for fact in facts if pauses == pause else ():
            scene.cluster.apply(fact)
        pauses += 1
        budget.open(slice_ if pauses <= pause else 5_000)


def near_nobody() -> list[PodBuilder]:
    """No bound says that the last one has no place, and no plan."""
    term = {"labelSelector": {"matchLabels": {"app": "none"}}, "topologyKey": HOST}
    needs = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return [*members(2), a_member("x").spec(affinity=needs)]


def test_nodes_may_come_whenever_it_pauses() -> None:
    """Between two steps, while a plan is tried, and while its places are given back."""
    paused, found = beside(a_scene(4, 4, minimum=3), near_nobody(), 1_000)
    assert isinstance(found, Infeasible)
    assert paused > 10
    for pause in range(paused):
        scene = a_scene(4, 4, minimum=3)
        _, found = beside(scene, near_nobody(), pause, Seen(NODE, room("new").build()))
        assert found is MOVED, pause
        assert not scene.cluster.placed
        assert recount(scene.cluster) == []


def test_what_is_refuted_beside_a_change_is_not_known_and_what_is_found_is() -> None:
    less = Seen(NODE, room("n0", 3).build())
    scene = a_scene(4, 4, minimum=3)
    assert beside(scene, sizes(4, 4, 4), 0, less, slice_=0) == (1, MOVED)
    fits = a_scene(4, 4, minimum=2)
    assert len(places(beside(fits, sizes(4, 2), 0, less, slice_=0)[1])) == 2
