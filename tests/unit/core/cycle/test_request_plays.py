"""ProvisioningRequests played through the machine: answered, held, consumed, ended."""

from typing import Any

import pytest

from asched.batch.provisioning.book import Bookings
from asched.core.cluster.facts import Gone, Refused, Seen, Unknown
from asched.core.model.kinds import NODE, POD, PROVISIONING_REQUEST
from tests.builders import a_pod, room
from tests.playbook import CONSUMES, HOLD_S, consumer, held_play, request_play

OLD = "cluster-autoscaler.kubernetes.io/consume-provisioning-request"


def test_what_fits_is_held_and_told() -> None:
    play = held_play(room("n1", 1), room("n2", 1))

    assert play.said() == {
        "Accepted": ("True", "Accepted"),
        "Provisioned": ("True", "CapacityIsFound"),
    }
    assert play.held() == {"n1": 1, "n2": 1}
    assert play.details()["places-0"] in ("0/n1,0/n2", "0/n2,0/n1")
    play.audited()


@pytest.mark.parametrize("key", [CONSUMES, OLD])
def test_pods_that_consume_it_get_its_places(key: str) -> None:
    play = held_play(room("n1", 1), room("n2", 1))
    play.see(a_pod("stranger").requests(cpu="1"))
    play.see(consumer("a", key=key))
    got = play.bindings()
    assert set(play.held()) == {"n1", "n2"} - {got["a"]}
    play.see(consumer("b", key=key))
    got |= play.bindings()

    assert sorted(got.items()) in ([("a", "n1"), ("b", "n2")], [("a", "n2"), ("b", "n1")])
    assert play.held() == {}
    assert play.settle()["BookingExpired"] == ("True", "CapacityIsConsumed")
    assert play.details() == {}
    play.audited()


def test_one_that_does_not_fit_holds_nothing_and_is_told_why() -> None:
    play = request_play(room("n1", 1), room("n2", 1))
    play.template()
    play.ask(sets={"worker": 3})
    said = play.settle()

    assert said["Provisioned"] == ("False", "CapacityIsNotFound")
    assert "Insufficient cpu" in play.message("Provisioned")
    assert play.held() == {}
    play.audited()


def test_one_that_does_not_fit_is_tried_again_when_there_is_room() -> None:
    play = request_play(room("n1", 1))
    play.template()
    play.ask()
    play.settle()
    play.turn(Seen(NODE, room("n2", 1).build()))
    play.turn(after_s=1.1)

    assert play.settle()["Provisioned"] == ("True", "CapacityIsFound")


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"holdSecond": "5"}, "unknown parameter 'holdSecond'"),
        ({"holdSeconds": "soon"}, "parameter 'holdSeconds' must be seconds"),
        ({"noRetry": "yes"}, "parameter 'noRetry' must be"),
    ],
)
def test_what_cannot_be_meant_fails_by_name(parameters: dict[str, str], word: str) -> None:
    play = request_play(room("n1", 4))
    play.template()
    play.ask(parameters=parameters)

    assert play.settle()["Failed"][0] == "True"
    assert word in play.message("Failed")
    assert play.held() == {}


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"schedulerName": "another"}, 'name the scheduler "another"'),
        ({"resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}]}, "claims devices"),
        ({"nodeName": "n1"}, "names a node"),
    ],
)
def test_templates_that_cannot_be_held_fail_by_name(spec: dict[str, Any], word: str) -> None:
    play = request_play(room("n1", 4))
    play.template(**spec)
    play.ask()

    assert play.settle()["Failed"][0] == "True"
    assert word in play.message("Failed")


def test_a_template_that_comes_late_is_waited_for() -> None:
    play = request_play(room("n1", 4))
    play.ask()
    assert play.settle()["Provisioned"] == ("False", "FailedToCreatePods")
    play.template()

    assert play.settle()["Provisioned"] == ("True", "CapacityIsFound")


def test_pods_wait_for_the_answer() -> None:
    """They would take the very room that is looked for."""
    play = request_play(room("n1", 1))
    play.template()
    play.ask()
    play.settle()
    play.see(consumer("a"))
    assert play.bindings() == {}
    play.turn(Seen(NODE, room("n2", 1).build()))
    play.turn(after_s=1.1)
    play.settle()

    assert set(play.bindings()) == {"a"}


def test_its_time_ends_it() -> None:
    play = held_play()
    play.see(a_pod("stranger").requests(cpu="2"))
    assert play.bindings() == {}
    play.turn(after_s=HOLD_S - 1)
    assert play.held() != {}
    deadline_s = play.machine.next_deadline_s()
    assert deadline_s is not None
    play.turn(after_s=deadline_s - play.now_s)
    while (deadline_s := play.machine.next_deadline_s()) is not None and play.held():
        play.turn(after_s=max(deadline_s - play.now_s, 0.0))
    assert play.held() == {}

    assert play.settle()["BookingExpired"] == ("True", "CapacityReservationTimeExpired")
    play.turn(after_s=2)
    assert play.bindings() == {"stranger": "n1"}
    play.audited()


@pytest.mark.parametrize("type_", ["CapacityRevoked", "BookingExpired", "Failed"])
def test_who_ends_it_by_a_condition_ends_the_hold(type_: str) -> None:
    play = held_play()
    ended = {"type": type_, "status": "True", "reason": "Admin", "message": ""}
    play.stored["job"]["status"]["conditions"].append(ended)
    play.show("job")

    assert play.held() == {}


def test_a_new_process_holds_the_same_again() -> None:
    play = held_play(room("n1", 1), room("n2", 2))
    play.see(consumer("a"))
    (taken,) = play.bindings().values()
    before = play.held()

    again = request_play(room("n1", 1), room("n2", 2))
    again.now_s = play.now_s + 3
    again.stored, again.version = play.stored, play.version
    again.template()
    again.see(consumer("a").on(taken))
    again.show("job")

    assert again.held() == before
    again.turn(after_s=HOLD_S - 2.9)
    assert again.held() == {}
    assert again.settle()["BookingExpired"] == ("True", "CapacityReservationTimeExpired")


def test_more_places_than_a_request_may_have_are_not_held() -> None:
    """Whoever may write the status could fill the memory with one word."""
    play = held_play()
    again = request_play(room("n1", 2), room("n2", 1))
    again.stored, again.version = play.stored, play.version
    again.details()["places-0"] = "0/n1*5001"
    again.template()
    again.show("job")

    assert again.held() == {}
    assert again.settle()["BookingExpired"] == ("True", "CapacityIsLost")


def test_a_new_process_ends_what_should_have_ended() -> None:
    play = held_play()
    again = request_play(room("n1", 2), room("n2", 1))
    again.now_s = play.now_s + HOLD_S + 1
    again.stored, again.version = play.stored, play.version
    again.template()
    again.show("job")

    assert again.held() == {}
    assert again.settle()["BookingExpired"] == ("True", "CapacityReservationTimeExpired")


def test_places_of_a_node_that_went_are_looked_for_elsewhere() -> None:
    play = held_play(room("n1", 1), room("n2", 1))
    play.turn(Seen(NODE, room("n3", 1).build()))
    play.turn(Gone(NODE, room("n2", 1).build()))
    play.settle()

    assert play.held() == {"n1": 1, "n3": 1}
    assert "n3" in play.details()["places-0"]
    play.audited()


def test_places_that_others_lie_on_and_that_are_nowhere_else_end_it() -> None:
    """Who asks again may have more luck: CapacityRevoked would be for good."""
    play = held_play(room("n1", 1), room("n2", 1))
    foreign = (a_pod(f"foreign-{node}").requests(cpu="1").on(node) for node in ("n1", "n2"))
    play.turn(*(Seen(POD, pod.spec(schedulerName="another").build()) for pod in foreign))

    assert play.settle()["BookingExpired"] == ("True", "CapacityIsLost")
    assert play.held() == {}


def test_a_binding_that_fails_gives_the_place_back_to_the_request() -> None:
    play = held_play(room("n1", 1), room("n2", 1))
    play.see(consumer("a"))
    (bind,) = play.binds()
    assert sum(play.held().values()) == 1
    play.turn(Refused(bind.id, 422, "no"))

    assert play.held() == {"n1": 1, "n2": 1}
    play.turn(after_s=5)
    assert set(play.bindings()) == {"a"}


def test_a_pod_that_ends_leaves_its_place_to_the_next_one() -> None:
    play = held_play(room("n1", 1), room("n2", 1))
    play.see(consumer("a"))
    (node,) = play.bindings().values()
    play.lose(consumer("a").on(node))
    play.see(a_pod("stranger").requests(cpu="1"))

    assert play.bindings() == {}
    play.see(consumer("a2"))
    assert set(play.bindings()) == {"a2"}


def test_a_write_without_an_answer_is_made_up_for() -> None:
    play = request_play(room("n1", 2))
    play.template()
    play.ask()
    (patch,) = play.patches()
    play.turn(Unknown(patch.id, "timed out"))
    assert play.held() == {"n1": 2}, "it may have been carried out"
    play.turn(after_s=0.5)

    assert play.settle()["Provisioned"] == ("True", "CapacityIsFound")
    assert play.held() == {"n1": 2}


def test_a_hold_that_nobody_can_be_told_of_ends_in_time() -> None:
    play = request_play(room("n1", 2))
    play.template()
    play.ask(parameters={"holdSeconds": "5"})
    for _ in range(200):
        refused = [Refused(patch.id, 403, "no") for patch in play.patches()]
        play.turn(*refused, after_s=0.1)
        if play.now_s > 1006:
            break
    bookings = play.parts.cluster.singleton(Bookings)

    assert all(booking.until_s > play.now_s for booking in bookings.all())


def test_two_requests_never_get_the_same_place() -> None:
    play = request_play(room("n1", 3))
    play.template()
    play.ask("one")
    play.ask("two")
    play.settle()

    assert play.said("one")["Provisioned"][0] == "True"
    assert play.said("two")["Provisioned"][0] == "False"
    assert play.held() == {"n1": 2}
    play.turn(Gone(PROVISIONING_REQUEST, play.record("one")))
    play.turn(after_s=3)
    assert play.settle("two")["Provisioned"][0] == "True"


def test_pods_that_are_listed_before_their_request_wait_for_its_answer_all_the_same() -> None:
    play = request_play(room("n1", 1))
    play.template()
    play.machine.is_active = False
    play.see(consumer("a"))
    play.ask()
    play.machine.is_active = True
    play.turn()
    play.settle()
    assert play.bindings() == {}
    play.turn(Seen(NODE, room("n2", 1).build()))
    play.turn(after_s=1.1)
    play.settle()
    play.turn(after_s=1.1)

    assert set(play.bindings()) == {"a"}
