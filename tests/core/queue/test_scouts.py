"""Equal pods are woken one by one: whoever had room sends the next one."""

from asched.core.framework.points import Registration
from asched.core.queue.queued import QueuedPod
from tests.core.queue.waiting import NODE_ADDED, VOLUME_ADDED, Gate, Scene, a_pod

#: All backoffs are over by then.
LATER_S = 20.0


def scene(*gates: Gate) -> Scene:
    """Fit hears of nodes, Ports of volumes; pods with the same labels are equal."""
    return Scene(
        {"Fit": [Registration(NODE_ADDED)], "Ports": [Registration(VOLUME_ADDED)]},
        gates=gates,
        class_key_of=lambda pod: str(sorted(pod.labels.items())),
    )


def three_at_rest(*gates: Gate) -> Scene:
    one = scene(*gates)
    one.add(a_pod("a"), a_pod("b"), a_pod("c"))
    for number in range(3):
        one.reject("Fit", now_s=1.0 + number)
    return one


def in_vain(one: Scene, queued: QueuedPod, *plugins: str, now_s: float = LATER_S) -> None:
    pod = one.api[queued.key]
    one.queue.return_failed(queued, pod, plugins, (), now_s, speaks_for_class=True)


def taken(one: Scene, now_s: float = LATER_S) -> list[str]:
    """Everybody who can be popped, one after the other, without an end to their attempts."""
    names = []
    while (queued := one.queue.pop(now_s)) is not None:
        names.append(queued.pod.metadata.name)
    return names


def test_one_of_many_equals_is_woken_the_first_in_the_queue() -> None:
    one = three_at_rest()

    assert one.move(NODE_ADDED, now_s=LATER_S) == 1
    assert one.names() == {"active": ["a"], "unschedulable": ["b", "c"]}


def test_whoever_gets_a_place_sends_the_next_one() -> None:
    one = three_at_rest()
    one.move(NODE_ADDED, now_s=LATER_S)

    for name in ("a", "b", "c"):
        queued = one.pop(LATER_S)
        assert queued.pod.metadata.name == name
        one.queue.took_place(queued.pod.uid)

    assert one.queue.pop(LATER_S) is None


def test_an_attempt_in_vain_speaks_for_all() -> None:
    one = three_at_rest()
    one.move(NODE_ADDED, now_s=LATER_S)

    in_vain(one, one.pop(LATER_S), "Fit")

    assert taken(one) == []
    assert one.names() == {"unschedulable": ["a", "b", "c"]}
    assert one.move(NODE_ADDED, now_s=40.0) == 1, "the next change finds them as ever"
    assert taken(one, 40.0) == ["b"], "the one that was tried last comes last"


def test_changes_while_one_is_awake_wake_no_other() -> None:
    one = three_at_rest()

    assert [one.move(NODE_ADDED, now_s=LATER_S) for _ in range(3)] == [1, 0, 0]


def test_a_change_during_the_attempt_wakes_another() -> None:
    """The attempt may have looked before the change."""
    one = three_at_rest()
    one.move(NODE_ADDED, now_s=LATER_S)
    queued = one.pop(LATER_S)

    assert one.move(NODE_ADDED, now_s=LATER_S) == 1
    in_vain(one, queued, "Fit")

    assert sorted(one.names()) == ["active", "backoff", "unschedulable"]
    assert one.names()["active"] == ["b"]


def test_those_whose_backoff_is_over_go_first_then_those_whose_backoff_ends_first() -> None:
    one = scene()
    one.add(a_pod("often"))
    for now_s in (1.0, 5.0, 9.5):  # it backs off until 13 in the end
        one.reject("Fit", now_s=now_s)
        one.queue.activate([one.api["default/often"]] if now_s < 9 else [], now_s)
    one.add(a_pod("once"), now_s=9.9)
    one.reject("Fit", now_s=10.0)  # until 11

    one.move(NODE_ADDED, now_s=10.1)

    assert one.names() == {"backoff": ["once"], "unschedulable": ["often"]}


def test_a_scout_that_is_gone_or_becomes_another_told_nothing() -> None:
    for gone in (True, False):
        one = three_at_rest()
        one.move(NODE_ADDED, now_s=LATER_S)
        if gone:
            one.queue.delete(one.api["default/a"])
        else:
            one.update(a_pod("a", version=2, labels={"app": "web"}), LATER_S)

        assert taken(one) == (["b"] if gone else ["a", "b"])


def test_an_error_tells_nothing_and_the_next_one_is_woken() -> None:
    one = three_at_rest()
    one.move(NODE_ADDED, now_s=LATER_S)

    one.fail(one.pop(LATER_S), now_s=LATER_S)

    assert taken(one) == ["b"]


def test_all_are_woken_if_one_was_rejected_for_reasons_of_its_own() -> None:
    one = three_at_rest()
    one.move(NODE_ADDED, now_s=LATER_S)

    one.fail(one.pop(LATER_S), "Fit", now_s=LATER_S)

    assert taken(one) == ["b", "c"]


def test_the_others_hear_of_what_rejected_the_one_that_was_tried() -> None:
    one = three_at_rest()
    one.move(NODE_ADDED, now_s=LATER_S)
    in_vain(one, one.pop(LATER_S), "Ports")

    assert one.witness.waiting_for == {"Fit": 0, "Ports": 3}
    assert one.move(NODE_ADDED, now_s=40.0) == 0
    assert one.move(VOLUME_ADDED, now_s=40.0) == 1
    assert taken(one, 40.0) == ["b"]


def test_others_that_were_filed_anew_meanwhile_still_get_their_turn() -> None:
    one = three_at_rest()
    one.move(NODE_ADDED, now_s=LATER_S)
    for name in ("b", "c"):
        one.update(a_pod(name, version=2), LATER_S)
    queued = one.pop(LATER_S)

    one.queue.took_place(queued.pod.uid)

    assert taken(one) == ["b"]


def test_a_pod_that_becomes_another_while_it_waits_for_its_equal_is_woken() -> None:
    """The change that woke its equal may have helped it, and nobody speaks for it now."""
    one = three_at_rest()
    one.move(NODE_ADDED, now_s=LATER_S)

    one.update(a_pod("c", version=2, labels={"app": "web"}), LATER_S)

    assert taken(one) == ["a", "c"]


def test_pods_that_have_room_promised_are_woken_each_for_itself() -> None:
    one = scene()
    one.add(a_pod("a"), a_pod("b", nominated="n1"), a_pod("c", nominated="n2"), a_pod("d"))
    for _ in range(4):
        one.reject("Fit", now_s=1.0)

    assert one.move(NODE_ADDED, now_s=LATER_S) == 3
    assert sorted(taken(one)) == ["a", "b", "c"]


def test_a_gate_in_the_way_of_the_first_lets_the_second_go() -> None:
    gate = Gate("Gates")
    one = three_at_rest(gate)
    gated = a_pod("a", version=2, gates=["Gates"])
    one.update(gated, 5.0)

    one.move(NODE_ADDED, now_s=LATER_S)

    assert one.names() == {"active": ["b"], "gated": ["a"], "unschedulable": ["c"]}
