"""From the first write of a binding to the end of the wait, and who shares it."""

from typing import Any

import pytest

from asched.core.framework.effects import Patch, WaitFor
from asched.core.framework.status import failure
from asched.core.model.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from asched.core.model.storage import SELECTED_NODE
from asched.core.plugins.volumes.choice import choose
from asched.core.plugins.volumes.claims import PodClaims
from asched.core.plugins.volumes.reservation import (
    Check,
    Reservation,
    bind,
    reserve,
    select_node,
    take_back,
)
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Answer, Done, TimedOut
from tests.core.plugins.volumes.test_reservation import POD, a_world
from tests.volume_builders import a_claim, a_class, a_cluster, a_node, a_volume, lose, see, view_of

WRITTEN = Done(0, {"metadata": {"resourceVersion": "5"}})


def played(late: Any, *answers: Answer) -> list[Any]:
    """What it asks for if it is answered so."""
    return [next(late), *map(late.send, answers)]


def test_the_time_to_wait_is_what_is_left_of_it_whatever_is_done_to_the_clock() -> None:
    cluster, reservation = a_world()
    cluster.begin_turn(1000.0, is_quiet=True)
    late = bind(cluster, cluster.classes.info_of(POD), reservation, 10.0)
    asked = played(late, WRITTEN, WRITTEN)
    waits = [asked[-1].timeout_s]
    for now_s in (1003.0, 900.0, 1011.0):
        cluster.begin_turn(now_s, is_quiet=True)
        waits.append(late.send(Done(0)).timeout_s)

    assert waits == [10.0, 7.0, 10.0, 0.0]


def test_an_answer_without_the_object_leaves_the_version_as_it_is() -> None:
    cluster, reservation = a_world()
    late = bind(cluster, cluster.classes.info_of(POD), reservation, 10.0)

    asked = played(late, Done(0), Done(0, {"metadata": {"resourceVersion": "7"}}))

    assert [type(effect) for effect in asked] == [Patch, Patch, WaitFor]
    assert [write.version for write in reservation.writes] == ["1", "7"]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Done(0), 'failed to check binding: could not find v1.PersistentVolume "pv"'),
        (TimedOut(0), "context deadline exceeded"),
    ],
)
def test_what_ends_the_wait_is_told(answer: Answer, problem: str) -> None:
    cluster, reservation = a_world()
    late = bind(cluster, cluster.classes.info_of(POD), reservation, 10.0)
    played(late, WRITTEN, WRITTEN)
    lose(cluster, a_volume("pv"))

    with pytest.raises(StopIteration) as ended:
        late.send(answer)

    assert ended.value.value == failure(f"binding volumes: {problem}")


# --- pods that share claims ----------------------------------------------------------------------


def shared_world() -> tuple[Cluster, Reservation, Reservation]:
    """Two pods of a group, one after the other, with the same claims, on one node."""
    cluster, first = a_world()
    claims = [cluster.get(PERSISTENT_VOLUME_CLAIM, f"default/{name}") for name in "cd"]
    choice = choose(cluster, PodClaims(delayed=tuple(claims)), view_of(cluster, "n1"))
    return cluster, first, reserve(cluster, choice, "n1")


def test_the_second_of_two_pods_writes_nothing_and_takes_nothing_back() -> None:
    cluster, first, second = shared_world()
    assert [write.key for write in second.writes] == ["pv", "default/d"]
    assert [write.body for write in second.writes] == [None, None]

    take_back(cluster, second.writes)
    assert cluster.get(PERSISTENT_VOLUME, "pv").spec.claim_ref is not None
    assert SELECTED_NODE in cluster.get(PERSISTENT_VOLUME_CLAIM, "default/d").metadata.annotations
    take_back(cluster, first.writes)
    assert cluster.get(PERSISTENT_VOLUME, "pv").spec.claim_ref is None
    assert SELECTED_NODE not in (
        cluster.get(PERSISTENT_VOLUME_CLAIM, "default/d").metadata.annotations or {}
    )


def test_what_is_written_by_another_pod_is_waited_for_unless_it_gives_up() -> None:
    cluster, first, second = shared_world()
    info = cluster.classes.info_of(POD)
    asked = played(bind(cluster, info, second, 10.0))
    assert [type(effect) for effect in asked] == [WaitFor]
    check = Check(cluster, info, second)
    assert not check.is_settled()
    for part in (Reservation("n1", second.bindings, ()), Reservation("n1", (), second.provisions)):
        assert not Check(cluster, info, part).is_settled()

    take_back(cluster, first.writes[1:])
    assert check.is_settled()
    assert check.problem == 'selectedNode annotation reset for PVC "d"'
    take_back(cluster, first.writes)
    check = Check(cluster, info, second)
    assert check.is_settled()
    assert check.problem == 'ClaimRef got reset for pv "pv"'


def test_of_several_claims_those_are_written_that_nobody_else_writes() -> None:
    cluster, _, second = shared_world()
    claim = a_claim("e", cls="dyn", version="3")
    see(cluster, claim)
    mine = select_node(claim, "n1")[1]
    both = Reservation("n1", second.bindings, (*second.provisions, mine))

    asked = played(bind(cluster, cluster.classes.info_of(POD), both, 10.0), Done(0))

    assert [getattr(effect, "name", "") for effect in asked] == ["e", ""]


def test_a_claim_that_finds_no_volume_does_not_keep_the_next_from_its_own() -> None:
    claims = (a_claim("small", cls="dyn"), a_claim("c", cls="local", size="2Gi"))
    cluster = a_cluster(
        a_node("n1"), a_class("local"), a_class("dyn", "csi"), *claims,
        a_volume("pv", cls="local", size="2Gi"),
    )  # fmt: skip

    found = reserve(
        cluster, choose(cluster, PodClaims(delayed=claims), view_of(cluster, "n1")), "n1"
    )

    assert [(write.key, key) for write, key in found.bindings] == [("pv", "default/c")]
    assert [write.key for write in found.provisions] == ["default/small"]
