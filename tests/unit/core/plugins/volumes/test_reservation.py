"""Writes, and the wait for others to do their part."""

from typing import Any

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Done, Refused, Unknown
from asched.core.framework.effects import Patch
from asched.core.framework.status import failure
from asched.core.model.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from asched.core.plugins.volumes.choice import choose
from asched.core.plugins.volumes.claims import PodClaims
from asched.core.plugins.volumes.reservation import (
    BindingCheck,
    VolumeReservation,
    bind,
    bind_volume,
    reserve,
    select_node,
)
from tests.support import recorded_lines
from tests.volume_builders import (
    ZONE,
    a_claim,
    a_class,
    a_cluster,
    a_node,
    a_pod,
    a_volume,
    lose,
    see,
    view_of,
)

POD = a_pod("p", "c", "d")


def a_world() -> tuple[Cluster, VolumeReservation]:
    """Claim c takes volume pv, and for claim d a volume is to be made."""
    claims = (a_claim("c", cls="local"), a_claim("d", cls="dyn"))
    cluster = a_cluster(
        a_node("n1", "a"), a_class("local"), a_class("dyn", "csi"), *claims, POD,
        a_volume("pv", cls="local", reach={ZONE: ["a"]}),
    )  # fmt: skip
    choice = choose(cluster, PodClaims(delayed=claims), view_of(cluster, "n1"))
    return cluster, reserve(cluster, choice, "n1")


def a_check(version: str = "5") -> tuple[Cluster, BindingCheck]:
    """Both are written, and the API made this version of them."""
    cluster, reservation = a_world()
    for write in reservation.writes:
        write.version = version
    check = BindingCheck(cluster, cluster.classes.info_of(POD), reservation)
    return cluster, check


def test_what_is_reserved_is_assumed_at_once() -> None:
    cluster, reservation = a_world()

    volume = cluster.get(PERSISTENT_VOLUME, "pv")
    claim = cluster.get(PERSISTENT_VOLUME_CLAIM, "default/d")
    assert (volume.spec.claim_ref.name, volume.spec.claim_ref.uid) == ("c", "uid-c")
    assert claim.metadata.annotations["volume.kubernetes.io/selected-node"] == "n1"
    assert cluster.stored(PERSISTENT_VOLUME, "pv").spec.claim_ref is None
    assert [write.key for write in reservation.writes] == ["pv", "default/d"]


@pytest.mark.parametrize("answer", [Refused(0, 409, "modified"), Unknown(0, "modified")])
def test_a_write_that_fails_gives_back_what_was_not_written(answer: Any) -> None:
    cluster, reservation = a_world()
    late = bind(cluster, cluster.classes.info_of(POD), reservation, 1.0)

    first = next(late)
    assert isinstance(first, Patch)
    second = late.send(Done(0, {"metadata": {"resourceVersion": "5"}}))
    assert isinstance(second, Patch)
    with pytest.raises(StopIteration) as ended:
        late.send(answer)

    assert ended.value.value == failure("modified")
    assert cluster.get(PERSISTENT_VOLUME, "pv").spec.claim_ref is not None
    annotations = cluster.get(PERSISTENT_VOLUME_CLAIM, "default/d").metadata.annotations
    assert "volume.kubernetes.io/selected-node" not in annotations


def test_everything_bound_settles_it() -> None:
    cluster, check = a_check()
    see(cluster, a_volume("pv", cls="local", version="5", claim=("c", "uid-c")))
    see(cluster, a_claim("c", cls="local", volume="pv", version="6"))
    assert not check.is_settled()

    see(cluster, a_volume("made", cls="dyn", claim=("d", "uid-d")))
    see(cluster, a_claim("d", cls="dyn", volume="made", selected="n1", version="6"))

    assert check.is_settled()
    assert not check.problem


def test_versions_older_than_what_was_written_say_nothing() -> None:
    cluster, check = a_check()
    see(cluster, a_volume("pv", cls="local", version="4"))

    assert not check.is_settled()
    assert not check.problem


NO_MATCH = 'node affinity doesn\'t match node "n1": no matching NodeSelectorTerms'


@pytest.mark.parametrize(
    ("seen", "problem"),
    [
        (a_volume("pv", version="6"), 'ClaimRef got reset for pv "pv"'),
        (
            a_volume("pv", version="6", reach={ZONE: ["b"]}, claim=("c", "uid-c")),
            f'pv "pv" {NO_MATCH}',
        ),
        (a_claim("c", cls="local", version="6", volume="x"), 'pvc "default/c" was bound to pv "x"'),
        (
            a_claim("d", cls="dyn", version="6", volume="x"),
            'provisioning failed for PVC "d"',
        ),
        (
            a_claim("d", cls="dyn", version="6"),
            'selectedNode annotation reset for PVC "d"',
        ),
        (
            a_claim("d", cls="dyn", version="6", selected="n2"),
            'provisioning failed for PVC "d"',
        ),
        (  # reset, though the name is still there
            a_volume("pv", version="6", claim=("c", "")),
            'ClaimRef got reset for pv "pv"',
        ),
    ],
    ids=str,
)
def test_what_makes_waiting_pointless(seen: Any, problem: str) -> None:
    cluster, check = a_check()
    if not problem.startswith(("pv ", "ClaimRef")):
        see(cluster, a_volume("pv", version="5", reach={ZONE: ["a"]}, claim=("c", "uid-c")))

    see(cluster, seen)

    assert check.is_settled()
    assert check.problem == problem


@pytest.mark.parametrize(
    ("gone", "problem"),
    [
        (POD, 'pod does not exist any more: pod "p" not found'),
        (a_node("n1"), 'failed to get node "n1": node "n1" not found'),
        (a_volume("pv"), 'failed to check binding: could not find v1.PersistentVolume "pv"'),
        (
            a_claim("c"),
            'failed to check binding: could not find v1.PersistentVolumeClaim "default/c"',
        ),
        (
            a_claim("d"),
            'failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "default/d"',
        ),
    ],
    ids=str,
)
def test_what_must_not_go_while_we_wait(gone: Any, problem: str) -> None:
    cluster, check = a_check()

    lose(cluster, gone)

    assert check.is_settled()
    assert check.problem == problem


def test_a_made_volume_that_cannot_be_reached_is_a_problem() -> None:
    cluster, check = a_check()
    see(cluster, a_volume("made", cls="dyn", reach={ZONE: ["b"]}))
    see(cluster, a_claim("d", cls="dyn", volume="made", selected="n1", version="6"))

    assert check.is_settled()
    assert check.problem == f'pv "made" {NO_MATCH}'


# --- what is written -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim_ref", "spec", "annotation"),
    [
        (None, True, True),
        (("c", ""), True, False),  # made for the claim by name: its uid is filled in
        (("c", "uid-c"), False, False),
        (("other", "uid-c"), True, True),
    ],
)
def test_only_what_changes_is_written(claim_ref: Any, spec: bool, annotation: bool) -> None:
    bound, write = bind_volume(a_volume("pv", claim=claim_ref), a_claim("c"))

    assert bound.spec.claim_ref is not None
    assert bound.spec.claim_ref.uid == "uid-c"
    body = write.body or {}
    assert ("spec" in body) is spec
    assert ("annotations" in body.get("metadata", {})) is annotation
    assert (write.body is None) is (not spec and not annotation)


def test_the_written_parts_are_those_of_the_recorded_requests() -> None:
    """Volumes and claims as kube-scheduler put them, against what ours would change."""
    entries = recorded_lines("outside/api/wait_for_first_consumer.jsonl")
    puts = [entry for entry in entries if entry.get("method") == "PUT"]
    assert puts
    for put in puts:
        body = put["body"]
        metadata = body["metadata"]
        if body["kind"] == "PersistentVolume":
            ref = body["spec"]["claimRef"]
            claim = a_claim(ref["name"], version=ref["resourceVersion"])
            volume = a_volume(metadata["name"], version=metadata["resourceVersion"])
            written = bind_volume(volume, claim)[1].body or {}
            ours = written["spec"]["claimRef"]
            assert {**ours, "uid": ref["uid"]} == ref
        else:
            node = metadata["annotations"]["volume.kubernetes.io/selected-node"]
            claim = a_claim(metadata["name"], version=metadata["resourceVersion"])
            written = select_node(claim, node)[1].body or {}
        assert written["metadata"]["annotations"].items() <= metadata["annotations"].items()
        assert written["metadata"]["resourceVersion"] == metadata["resourceVersion"]
