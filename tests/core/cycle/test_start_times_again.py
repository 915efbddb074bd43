"""What becomes of promises when their owners are tried: the search for a start is by hand here."""

from collections.abc import Callable, Generator
from math import inf
from typing import Any

import pytest
from msgspec.structs import replace

from asched.core.cycle import start_times
from asched.core.cycle.context import Attempt
from asched.core.cycle.start_keeping import LOST, REPLAN_S, WAITING_MAX, drop
from asched.core.cycle.start_recall import told
from asched.core.cycle.start_search import Found, NodesMovedError
from asched.core.cycle.start_times import promise
from asched.core.framework.status import PointError
from asched.core.model.kinds import POD
from asched.core.queue.queued import QueuedPod
from asched.core.state.budget import OutOfTurn
from asched.core.state.facts import Seen
from asched.core.state.reservations import POD_OWNER, Need, Order, Reservation
from tests.builders import PodBuilder, a_pod
from tests.core.cycle.attempts import run
from tests.core.cycle.batch_stage import LABEL, Promises

CREW = "scheduling.x-k8s.io:default/crew"


class Asked(Promises):
    """Whoever is asked about finds the start that is given in `found_s`, if one is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **args: Any) -> None:
        super().__init__(reservations=args.pop("reservations", 9), **args)
        self.found_s: float | None = None
        self.meanwhile: Callable[[], None] = lambda: None
        #: by search: for how many pods, and whose promises are respected
        self.searches: list[tuple[int, list[str]]] = []
        monkeypatch.setattr(start_times, "search", self.search)

    def search(
        self, _context: Any, _first: Any, infos: Any, respected: Any, _horizon_s: float
    ) -> Generator[Any, Any, Found | None]:
        self.searches.append((len(infos), [one.owner for one in respected]))
        assert self.kept.searching
        self.meanwhile()
        yield from ()
        if self.found_s is None:
            return None
        return Found(self.found_s, self.found_s + 600, {"n1": Need({"cpu": 1000}, 1)}, True)

    def attempt(self, pod: PodBuilder, initial_s: float | None = None) -> Attempt:
        built = pod.spec(schedulerName="default-scheduler").build()
        self.cluster.apply(Seen(POD, built))
        queued = QueuedPod(built, self.context.now_s)
        queued.initial_attempt_s = initial_s
        runner = self.context.runners["default-scheduler"]
        return Attempt(1, queued, self.cluster.classes.info_of(built), runner, 0.0)

    def ask(self, *pods: PodBuilder, initial_s: float | None = None) -> str:
        attempts = [
            self.attempt(pod, initial_s) for pod in pods or [a_pod("web").requests(cpu="1")]
        ]
        text: str = run(promise(self.context, attempts))
        return text

    def pass_by(self, seconds: float) -> None:
        self.cluster.wall_clock_s += seconds
        self.context.now_s += seconds

    def of(self, name: str) -> Reservation:
        found = self.ledger.of(POD_OWNER + f"uid-{name}")
        assert found is not None
        return found


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


def test_a_promise_is_made_beside_those_that_go_before_and_others_hear_nothing_of_it(
    scene: Asked,
) -> None:
    scene.one.order = Order(0, scene.context.now_s - 1, 0)
    scene.reserve("low", 9000).order = Order(1, 0.0, 1)
    scene.found_s = scene.cluster.wall_clock_s + 500
    scene.meanwhile = lambda: scene.pass_by(3)
    began_s, now_s = scene.cluster.wall_clock_s, scene.context.now_s

    text = scene.ask(a_pod("new"))

    one = scene.of("new")
    assert text == told(one) != ""
    assert scene.searches == [(1, [scene.one.owner])]
    assert one.order == Order(0, now_s, 1)
    assert (one.start_s, one.end_s, one.first_s) == (
        scene.found_s,
        scene.found_s + 600,
        scene.found_s,
    )
    assert one.made_s == began_s, "what came while it was looked for counts as later"
    assert dict(scene.kept.outcomes) == {"made": 1}
    assert not scene.kept.has_moved
    assert scene.kept.searching == ""


def test_who_was_promised_a_start_by_another_process_goes_before_his_equals(scene: Asked) -> None:
    scene.found_s = scene.cluster.wall_clock_s + 500
    scene.kept.recalled |= {POD_OWNER + "uid-new", POD_OWNER + "uid-other"}
    scene.kept.waiting[POD_OWNER + "uid-new"] = Order(0, -inf, 7), "default/new"
    scene.ask(a_pod("new"))
    assert scene.of("new").order == Order(0, -inf, 7)
    assert scene.kept.recalled == {POD_OWNER + "uid-other"}
    assert not scene.kept.waiting
    assert scene.searches == [(1, [])]


@pytest.mark.parametrize(
    ("later_s", "is_told"), [(1, True), (0, False), (-1, False)], ids=["later", "same", "earlier"]
)
def test_who_lost_a_promise_is_told_why_if_the_next_one_is_later(
    scene: Asked, later_s: int, is_told: bool
) -> None:
    first_s = scene.one.start_s
    drop(scene.context, scene.one.owner, "displaced")
    scene.found_s = first_s + later_s
    scene.ask()
    one = scene.of("web")
    assert (one.first_s, one.cause) == (
        (first_s, LOST["displaced"]) if is_told else (scene.found_s, "")
    )
    assert not scene.kept.lost


def test_a_promise_that_holds_is_looked_for_again_after_a_while_if_anything_happened(
    scene: Asked,
) -> None:
    """Beside all others, whatever their order: it can only move to the front."""
    one, other = scene.one, scene.reserve("other", 9000)
    made_s, one.woken_s = one.made_s, scene.cluster.wall_clock_s
    scene.pass_by(REPLAN_S - 1)
    assert (scene.ask(), one.woken_s, scene.searches) == (told(one), None, [])
    assert one.made_s == made_s
    scene.pass_by(1)
    assert scene.ask() == told(one)
    assert scene.searches == [(1, [other.owner])]
    assert one.made_s == scene.cluster.wall_clock_s
    assert one.seen == scene.cluster.nodes.log.end
    scene.pass_by(REPLAN_S)
    scene.ask()
    assert len(scene.searches) == 1, "nothing happened since"
    assert one.made_s == scene.cluster.wall_clock_s
    scene.cluster.apply(Seen(POD, a_pod("came").on("n1").build()))
    scene.pass_by(REPLAN_S)
    scene.ask()
    assert len(scene.searches) == 2
    assert scene.of("web") is one
    assert not scene.kept.outcomes


@pytest.mark.parametrize(("earlier_s", "is_moved"), [(1, True), (0, False), (-1, False)])
def test_one_that_holds_moves_to_the_front_alone(
    scene: Asked, earlier_s: int, is_moved: bool
) -> None:
    start_s, order = scene.one.start_s, scene.one.order
    scene.one.first_s, scene.one.cause = start_s - 100, "node n2 went"
    scene.found_s = start_s - earlier_s
    scene.pass_by(REPLAN_S)
    text = scene.ask()
    one = scene.of("web")
    assert one.start_s == start_s - is_moved
    assert (text, one.order, one.cause) == (told(one), order, "node n2 went")
    assert scene.kept.has_moved is is_moved
    assert dict(scene.kept.outcomes) == ({"earlier": 1} if is_moved else {})


@pytest.mark.parametrize(("later_s", "outcome"), [(1, "later"), (0, "earlier"), (-1, "earlier")])
def test_one_whose_start_has_come_is_looked_for_at_once_beside_those_that_go_before(
    scene: Asked, later_s: int, outcome: str
) -> None:
    scene.reserve("behind", 99)
    before = scene.reserve("before", 99)
    before.order = Order(-1, 0.0, 9)
    scene.one.start_s = scene.one.first_s = scene.cluster.wall_clock_s
    scene.one.seen = scene.cluster.nodes.log.end
    scene.found_s = scene.one.start_s + later_s
    scene.ask()
    assert scene.searches == [(1, [before.owner])]
    assert dict(scene.kept.outcomes) == {outcome: 1}
    causes = {"order": 1} if outcome == "later" else {}
    assert dict(scene.kept.causes) == causes
    assert bool(scene.of("web").cause) == bool(causes)


def test_one_whose_start_has_come_and_is_not_known_any_more_is_dropped(scene: Asked) -> None:
    scene.one.start_s = scene.cluster.wall_clock_s
    assert scene.ask() == ""
    assert len(scene.ledger) == 0
    assert dict(scene.kept.outcomes) == {"dropped": 1}


@pytest.mark.parametrize("is_new", [False, True])
def test_what_was_found_means_nothing_if_the_promise_is_another_by_then(
    scene: Asked, is_new: bool
) -> None:
    other = replace(scene.one)

    def meanwhile() -> None:
        drop(scene.context, scene.one.owner, "kept")
        if is_new:
            scene.ledger.put(other)

    scene.one.start_s = scene.cluster.wall_clock_s
    scene.found_s, scene.meanwhile = scene.cluster.wall_clock_s + 60, meanwhile
    assert scene.ask() == ""
    assert scene.ledger.all() == ([other] if is_new else [])


@pytest.mark.parametrize(
    "error", [PointError("no"), OutOfTurn(), NodesMovedError()], ids=["rule", "turn", "nodes"]
)
def test_a_search_that_fails_leaves_the_promise_and_the_way_to_others(
    scene: Asked, error: Exception
) -> None:
    def fails() -> None:
        raise error

    scene.meanwhile = fails
    scene.pass_by(REPLAN_S)
    assert scene.ask() == told(scene.one)
    assert scene.kept.searching == ""


def test_while_a_start_is_looked_for_another_owner_waits_for_his_turn(scene: Asked) -> None:
    scene.kept.searching = "somebody"
    scene.pass_by(REPLAN_S)
    assert scene.ask() == told(scene.one)
    assert not scene.kept.waiting, "it has one"
    assert scene.ask(a_pod("new")) == ""
    assert list(scene.kept.waiting) == [POD_OWNER + "uid-new"]
    assert not scene.searches


def test_a_gang_needs_so_many_pods_as_do_not_run_already(scene: Asked) -> None:
    crew = [a_pod(f"m{at}").labels({LABEL: "crew"}) for at in range(4)]
    scene.play.gang("crew", crew[0].on("n1"), *crew[1:], minimum=3)
    scene.found_s = scene.cluster.wall_clock_s + 60
    scene.ledger.put(replace(scene.one, owner=CREW))
    assert scene.ask(crew[1]) == ""
    assert scene.ledger.of(CREW) is None, "too few are left to be promised anything"
    assert (scene.searches, scene.kept.outcomes["dropped"]) == ([], 1)
    assert scene.ask(*crew[1:]) != ""
    assert [count for count, _ in scene.searches] == [2]
    assert scene.ledger.of(CREW) is not None


def test_of_a_gang_that_has_its_least_each_one_more_is_promised_a_start(scene: Asked) -> None:
    crew = [a_pod(f"m{at}").labels({LABEL: "crew"}) for at in range(3)]
    scene.play.gang("crew", crew[0].on("n1"), crew[1].on("n1"), crew[2], minimum=1)
    scene.found_s = scene.cluster.wall_clock_s + 60
    assert scene.ask(crew[2]) != ""
    assert [count for count, _ in scene.searches] == [1]


def test_it_is_written_down_for_whom_a_promise_is_and_on_whom_it_rests(
    scene: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_times, "AWAITED_MAX", 1)
    for name, lasts_s in (("first", 100), ("second", 100), ("long", 9000)):
        pod = a_pod(name).on("n1").spec(activeDeadlineSeconds=lasts_s)
        scene.cluster.apply(Seen(POD, pod.build()))
    crew = [a_pod(f"m{at}").labels({LABEL: "crew"}).requests(cpu=f"{at}") for at in (1, 2, 2)]
    scene.play.gang("crew", *crew, minimum=3)
    scene.found_s = scene.cluster.wall_clock_s + 600
    scene.ask(*crew)
    one = scene.ledger.of(CREW)
    assert one is not None
    assert one.there == {"uid-first", "uid-second", "uid-long"}
    assert one.awaited == (("default/first", "uid-first"),)
    assert [like.pod.metadata.name for like in one.likes] == ["m1", "m2"]


def test_who_asks_for_what_nobody_can_suppose_is_promised_nothing(scene: Asked) -> None:
    scene.found_s = scene.cluster.wall_clock_s + 60
    scene.pass_by(REPLAN_S)
    assert scene.ask(a_pod("web").spec(resourceClaims=[{"name": "gpu"}])) == ""
    assert (len(scene.ledger), scene.searches) == (0, [])


def test_of_more_promises_than_are_to_be_had_the_last_one_is_displaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Asked(monkeypatch, reservations=2)
    last = scene.reserve("last", 60)
    last.order = Order(0, 5.0, 1)
    scene.found_s = scene.cluster.wall_clock_s + 60
    assert scene.ask(a_pod("equal")) == "", "it came later"
    assert scene.ask(a_pod("vip").priority(9)) != ""
    assert [one.owner for one in scene.ledger.all()] == [POD_OWNER + "uid-vip", scene.one.owner]
    assert scene.kept.outcomes["displaced"] == 1
    assert scene.kept.waiting[last.owner] == (last.order, "default/last")


def test_who_waits_for_a_promise_waits_since_the_first_of_his_pods_was_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Asked(monkeypatch, reservations=1)
    crew = [a_pod(f"m{at}").labels({LABEL: "crew"}) for at in range(3)]
    scene.play.gang("crew", *crew, minimum=3)
    tried = zip(crew, (7.0, 5.0, None), strict=True)
    run(promise(scene.context, [scene.attempt(pod, at_s) for pod, at_s in tried]))
    assert scene.kept.waiting[CREW] == (Order(0, 5.0, 1), "default/m0")
    scene.ask(a_pod("new"))
    assert scene.kept.waiting[POD_OWNER + "uid-new"][0] == Order(0, scene.context.now_s, 2)


def test_of_too_many_who_wait_the_last_by_order_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Asked(monkeypatch, reservations=1)
    for at in range(WAITING_MAX):
        scene.kept.waiting[f"w{at:02}"] = Order(0, 50.0 - (at == 3), 99 - at), f"default/{at}"
    scene.kept.waiting["w07"] = Order(5, 0.0, 0), "default/7"
    scene.ask(a_pod("new"), initial_s=1.0)
    assert len(scene.kept.waiting) == WAITING_MAX
    assert "w07" not in scene.kept.waiting
