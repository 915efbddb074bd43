"""The search for the places of a gang, step by step: for whom, what is asked when, what is left."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from asched.core.cycle import group_search
from asched.core.cycle.company import Company
from asched.core.cycle.group import GroupAttempt, Outcome, Result
from asched.core.cycle.group_board import GroupBoard
from asched.core.cycle.group_search import (
    KNOWN_MAX,
    STEPS_MIN,
    TOO_LARGE,
    Searches,
    missing,
    search_if_due,
    search_places,
)
from asched.core.cycle.group_trial import try_group
from asched.core.framework.effects import Pause
from asched.core.framework.points import PermitPlugin
from asched.core.framework.status import SUCCESS, PointError, Status, unschedulable
from asched.core.gang.problem import Infeasible, Unknown
from asched.core.gang.search import MOVED, SPENT
from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP, NODE, POD, POD_GROUP
from asched.core.model.workload import CoschedulingGroup
from asched.core.state.audit import recount
from asched.core.state.budget import OutOfTurn
from asched.core.state.facts import Seen
from asched.core.state.pod_groups import COSCHEDULING_LABEL, coscheduled_key
from tests.builders import NodeBuilder, PodBuilder, a_cluster, a_node, a_pod
from tests.core.cycle.attempts import KEY, GroupScene, members, run
from tests.core.cycle.test_gang_plays import a_group, a_member

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
    assert isinstance(found, Outcome), found
    assert found.result is Result.SCHEDULED
    where: dict[str, list[str]] = {}
    for tried in found.tried:
        if tried.decision is not None:
            where.setdefault(tried.decision.node, []).append(tried.attempt.pod.metadata.name)
    return where


def unplanned(*_: Any) -> Iterator[Any]:
    """Instead of `planned`: none comes out even."""
    return iter(())


# --- what it may cost ----------------------------------------------------------------------------


def test_what_ended_in_something_known_costs_everything_again() -> None:
    searches = Searches(a_cluster())
    assert searches.steps("a", 100) == 100, "less than STEPS_MIN if there is no more"
    for found in (Infeasible("so"), Outcome(Result.SCHEDULED, "")):
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


def test_the_bounds_cost_by_the_cells_of_classes_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    charged: list[float] = []
    whole = GroupBoard.charge

    def charge(self: GroupBoard, steps: float) -> Any:
        charged.append(steps)
        return whole(self, steps)

    monkeypatch.setattr(GroupBoard, "charge", charge)
    monkeypatch.setattr(group_search, "CELLS_A_STEP", 2)
    scene = a_scene(4, 4, 4, minimum=2)
    places(run(search_places(scene.context, scene.group(*sizes(1, 2)))))
    assert charged[0] == 1 + 3 * 2 // 2


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


def test_there_is_nothing_to_be_searched_for_without_a_group_or_steps_or_beside_extenders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without = GroupScene(room("n0"))
    group = without.group(*members(2))
    assert missing(without.context, group) == 0
    found = run(search_places(without.context, group))
    assert found == Unknown("it is not a gang that can be completed")
    assert not without.cluster.placed
    scene = a_scene(4, minimum=2)
    group = scene.group(*members(2))
    scene.context.gang_search_steps = 0
    assert missing(scene.context, group) == 0
    scene.context.gang_search_steps = 1_000
    assert missing(scene.context, group) == 2
    monkeypatch.setattr(GroupAttempt, "consults", True)
    assert missing(scene.context, group) == 0


def test_all_of_a_company_must_get_places_without_a_gang(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = GroupScene(room("n0"))
    group = scene.group(*members(2))
    company = Company(scene.cluster, 2)
    group.attempts = [replace(attempt, company=company) for attempt in group.attempts]
    assert missing(scene.context, group) == 2
    monkeypatch.setattr(GroupAttempt, "consults", True)
    assert missing(scene.context, group) == 0


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


def test_where_no_plan_comes_out_even_all_orders_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of so many pods at most: more are planned only."""
    monkeypatch.setattr(group_search, "planned", unplanned)
    monkeypatch.setattr(group_search, "PODS_MAX", 5)
    scene = a_scene(6, 6, minimum=5)
    group = scene.group(*sizes(3, 3, 2, 2, 2))
    found = places(run(search_places(scene.context, group)))
    assert sorted(sorted(names) for names in found.values()) == [["p0", "p1"], ["p2", "p3", "p4"]]
    larger = a_scene(6, 6, minimum=5)
    group = larger.group(*sizes(3, 3, 2, 2, 2, 2))
    assert run(search_places(larger.context, group)) is TOO_LARGE
    assert not larger.cluster.placed


def test_prices_refute_what_counting_and_flow_do_not() -> None:
    """8 CPUs for 8, but where a large one is, the small one has no room any more."""
    scene = a_scene(4, 4, minimum=3)
    found = run(search_places(scene.context, scene.group(*sizes(3, 3, 2))))
    assert isinstance(found, Infeasible)
    assert "weighed" in found.why
    assert not scene.cluster.placed


def test_before_plans_prices_are_asked_for_a_proof_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """And of one class not even that: its count has been exact."""
    asked, whole = [], group_search.by_prices

    def by_prices(problem: Any, *, only_proof: bool = False) -> Any:
        asked.append((problem.counts, only_proof))
        return whole(problem, only_proof=only_proof)

    monkeypatch.setattr(group_search, "by_prices", by_prices)
    for cpus in ((1, 1, 1), (1, 2), (1, 1, 2)):
        scene = a_scene(4, 4, minimum=len(cpus))
        places(run(search_places(scene.context, scene.group(*sizes(*cpus)))))
    assert asked == [((1, 1), True), ((2, 1), True)]


@pytest.mark.parametrize("what", ["planned", "by_prices"])
def test_nothing_is_looked_at_that_the_budget_does_not_allow(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dear(*_: Any, **__: Any) -> Iterator[float]:
        yield 1
        yield 1e9
        raise AssertionError("it goes on")

    monkeypatch.setattr(group_search, what, dear)
    scene = a_scene(4, 4, minimum=2)
    assert run(search_places(scene.context, scene.group(*sizes(1, 2)))) is SPENT
    most = scene.context.gang_search_steps
    assert scene.cluster.singleton(Searches).steps(KEY, most) == max(most // 2, STEPS_MIN) < most


def test_it_is_described_in_as_many_turns_as_the_budget_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def out_of_turn(_: GroupBoard) -> Any:
        raise OutOfTurn

    monkeypatch.setattr(group_search, "described", out_of_turn)
    scene = a_scene(4, 4, minimum=2)
    assert run(search_places(scene.context, scene.group(*sizes(1, 2)))) is SPENT


class Refusing(PermitPlugin):
    name = "Refusing"

    def permit(self, pod: Any, node: str) -> tuple[Status, float]:
        return (unschedulable("no") if pod.pod.metadata.name == "p0" else SUCCESS), 0.0


def test_what_permit_refuses_was_not_found() -> None:
    scene = a_scene(4, 4, minimum=2, plugins=(Refusing,))
    found = run(search_places(scene.context, scene.group(*sizes(1, 2))))
    assert found == Unknown("what was found was refused at Reserve or Permit")
    assert not scene.cluster.placed
    assert recount(scene.cluster) == []


def test_a_plugin_s_mistake_ends_it_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_search, "planned", unplanned)
    whole, puts = GroupBoard.put, iter((False, True))

    def put(self: GroupBoard, *asked: Any) -> bool:
        if next(puts):
            raise PointError("boom")
        return whole(self, *asked)

    monkeypatch.setattr(GroupBoard, "put", put)
    scene = a_scene(4, 4, minimum=2)
    assert run(search_places(scene.context, scene.group(*sizes(1, 2)))) == Unknown("boom")
    assert not scene.cluster.placed


def test_places_that_were_found_and_those_of_no_gang_are_not_searched_for() -> None:
    alone = GroupScene(room("n0"))
    group = alone.group(*sizes(5))
    outcome = run(try_group(alone.context, group))
    assert run(search_if_due(alone.context, group, outcome)) is outcome
    assert outcome.proof == ""
    scene = a_scene(4, 4, minimum=2)
    group = scene.group(*sizes(1, 2))
    outcome = run(try_group(scene.context, group))
    assert outcome.result is Result.SCHEDULED
    assert run(search_if_due(scene.context, group, outcome)) is outcome
    assert len(scene.cluster.placed) == 2


@pytest.mark.parametrize(
    ("cpu", "said"),
    [
        (5, "there is no place for it: the nodes have places for 0 of 1 pods like p2"),
        (4, "no place was found for it: the budget of work for the gang is used up"),
    ],
)
def test_what_came_of_it_is_told(cpu: int, said: str) -> None:
    """Bounds have their say even if they took all there was."""
    scene = a_scene(4, 4, minimum=3)
    scene.context.gang_search_steps = 1
    group = scene.group(*sizes(1, 1, cpu))
    outcome = run(try_group(scene.context, group))
    assert run(search_if_due(scene.context, group, outcome)) is outcome
    assert (outcome.proof, scene.cluster.placed) == (said, {})


def test_room_that_was_to_be_made_is_not_needed_any_more_where_places_are_found() -> None:
    """The one to whom it had been promised before has it again."""
    weak = a_pod("weak").requests(cpu="1").priority(-10).on("n0")
    scene = a_scene(4, 4, minimum=2, placed=(weak,))
    waiting = a_pod("waiting").requests(cpu="1").priority(-5).build()
    scene.play.turn(Seen(POD, waiting))
    nominator = scene.context.nominator
    nominator.add(waiting, "n0")
    group = scene.group(a_member("a"), a_member("c", cpu="4"))
    outcome = run(try_group(scene.context, group))
    assert outcome.result is Result.WAITING_ON_PREEMPTION
    assert nominator.node_of(waiting.uid) is None

    found = run(search_if_due(scene.context, group, outcome))

    assert places(found) == {"n0": ["a"], "n1": ["c"]}
    assert nominator.node_of(waiting.uid) == "n0"


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
