"""Who keeps what is held: whatever moved is settled before anybody is decided for."""

from asched.core.cycle.holding import keep, put_off
from asched.core.framework.effects import Bind
from asched.core.model.kinds import COSCHEDULING_GROUP, NODE, POD
from asched.core.model.timestamp import rfc3339
from asched.core.state.audit import recount
from asched.core.state.facts import Gone, Seen, WallClock
from asched.core.state.holds import SWEEP_FROM, HeldAmounts, HeldPlace
from tests.builders import a_pod
from tests.core.cycle.playbook import Play
from tests.core.cycle.test_coscheduling_plays import a_group, a_member, room
from tests.core.cycle.test_coscheduling_plays import a_play as a_gang_play
from tests.core.cycle.test_request_plays import consumer, held_play

OWNER = "scheduling.x-k8s.io:default/crew"


def gang_with_hold(play: Play) -> None:
    """One pod runs; its group is promised two CPUs more."""
    group = a_group(minimum=1, minResources={"cpu": "3"})
    play.turn(Seen(COSCHEDULING_GROUP, group), Seen(POD, a_member("driver").on("n1").build()))


def held(play: Play, owner: str = OWNER) -> list[tuple[str, int]]:
    hold = play.parts.cluster.holds.of(owner)
    places = hold.places if hold is not None else ()
    return [(node, what.accounted["cpu"]) for what, node in places if isinstance(what, HeldAmounts)]


def test_a_group_is_settled_as_soon_as_its_pods_move() -> None:
    play = a_gang_play(room("n1", 8))
    gang_with_hold(play)
    assert held(play) == [("n1", 2000)]
    play.turn(Seen(POD, a_member("worker").on("n1").build()))
    assert held(play) == [("n1", 1000)]
    assert not play.parts.cluster.pod_groups.moved


def test_nothing_is_settled_before_all_is_known() -> None:
    """Pods and groups are listed before nodes are, or after: nobody knows what room there is."""
    play = a_gang_play()
    play.machine.is_active = False
    gang_with_hold(play)
    play.turn(Seen(NODE, room("n1", 3).build()))
    assert held(play) == []

    play.machine.is_active = True
    play.turn(Seen(POD, a_pod("other").requests(cpu="1").build()))

    assert held(play) == [("n1", 2000)]
    assert not play.of(Bind)


def test_a_standby_forgets_groups_that_came_and_went() -> None:
    play = a_gang_play(room("n1", 8))
    gang_with_hold(play)
    play.machine.is_active = False
    moved = play.parts.cluster.pod_groups.moved
    for number in range(4 * SWEEP_FROM):
        pod = a_member(f"driver-{number}", group=f"crew-{number}").on("n1").build()
        play.turn(Seen(POD, pod))
        play.turn(Gone(POD, pod))
        assert len(moved) <= SWEEP_FROM + 8


def test_a_standby_forgets_no_group_that_has_pods_or_a_hold_and_looks_only_now_and_then() -> None:
    play = a_gang_play(room("n1", 8))
    gang_with_hold(play)
    play.turn(Seen(POD, a_member("waits", group="plain").build()))
    context, cluster = play.machine.context, play.parts.cluster
    moved = cluster.pod_groups.moved
    place = HeldPlace(HeldAmounts({"cpu": 1}), "n1")
    cluster.holds.put("scheduling.x-k8s.io:default/held", [place], 1e9)
    names = ("crew", "plain", "held")
    stays = [f"scheduling.x-k8s.io:default/{name}" for name in names]
    most = SWEEP_FROM + 2 * (2 + 2)
    for key in (*stays, *(f"scheduling.x-k8s.io:default/gone-{n}" for n in range(most - 3))):
        moved[key] = None
    put_off(context)
    assert len(moved) == most, "as many are kept without a look"
    moved["scheduling.x-k8s.io:default/one-more"] = None
    put_off(context)
    assert list(moved) == stays


def test_a_standby_follows_the_pods_of_a_request() -> None:
    play = held_play(room("n1", 8))
    play.parts.cluster.apply(Seen(POD, consumer("a").on("n1").build()))
    put_off(play.machine.context)
    assert play.held() == {"n1": 1}


def test_who_leads_no_more_is_not_woken_by_holds_whose_time_is_up() -> None:
    play = a_gang_play(room("n1", 8), args={"minResourcesHoldSeconds": 300})
    gang_with_hold(play)
    play.machine.is_active = False
    play.turn(after_s=301)
    due_s = play.machine.next_deadline_s()
    assert due_s is None or due_s > play.now_s


def test_a_hold_whose_node_went_is_settled_elsewhere() -> None:
    play = a_gang_play(room("n1", 1), room("n2", 8), room("n3", 8))
    gang_with_hold(play)
    (at, _) = held(play)[0]
    play.turn(Gone(NODE, room(at, 8).build()))
    other = {"n2": "n3", "n3": "n2"}[at]
    assert held(play) == [(other, 2000)]
    assert not play.parts.cluster.holds.touched


def test_a_hold_ends_when_its_time_is_up() -> None:
    play = a_gang_play(room("n1", 8), args={"minResourcesHoldSeconds": 300})
    play.turn(WallClock(1_800_000_000.0 - play.now_s))
    bound = {"type": "PodScheduled", "status": "True"}
    bound["lastTransitionTime"] = rfc3339(1_800_000_000.0 - 100)
    group = a_group(minimum=1, minResources={"cpu": "3"})
    driver = a_member("driver").on("n1").status(conditions=[bound])
    play.turn(Seen(COSCHEDULING_GROUP, group), Seen(POD, driver.build()))
    play.turn(after_s=199)
    assert held(play) == [("n1", 2000)]
    play.turn(after_s=1)
    assert held(play) == []
    assert recount(play.parts.cluster) == []


def test_each_kind_of_owner_has_its_own_keeper() -> None:
    play = held_play()
    cluster = play.parts.cluster
    place = HeldPlace(HeldAmounts({"cpu": 1}), "n1")
    cluster.holds.put("scheduling.x-k8s.io:default/gone", [place], play.now_s)
    cluster.holds.put("ProvisioningRequest:default/gone#0", [place], play.now_s)
    keep(play.machine.context)
    assert [hold.owner for hold in cluster.holds] == [
        "ProvisioningRequest:default/job#0",
        "ProvisioningRequest:default/job#1",
    ]


def test_pods_that_came_to_a_request_are_settled_with_it() -> None:
    play = held_play(room("n1", 8))
    cluster = play.parts.cluster
    cluster.apply(Seen(POD, consumer("a").on("n1").build()))
    assert play.held() == {"n1": 2}
    keep(play.machine.context)
    assert play.held() == {"n1": 1}
