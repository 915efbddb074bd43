"""What `asched explain` advises can be followed: what has to change, and who has to do it."""

from typing import Any

import pytest

from asched.core.cluster.facts import Fact, Seen
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    RESOURCE_CLAIM,
    STORAGE_CLASS,
)
from tests import device_builders, volume_builders
from tests.builders import a_node, a_pod, room
from tests.playbook import Play, a_label_member, explained, explanation_of, label_gang_play, ours

ZONE = "topology.kubernetes.io/zone"


def kinds_of(play: Play, name: str = "web") -> dict[str, str]:
    """The text of each suggested change, by kind."""
    return {change["kind"]: change["text"] for change in explanation_of(play, name)["changes"]}


@pytest.mark.parametrize(
    "label",
    [
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "kubernetes.io/hostname",
        "beta.kubernetes.io/arch",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        ZONE,
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
    ],
)
def test_a_label_that_states_what_a_machine_is_stays(label: str) -> None:
    play = Play(room("n1"))
    play.see(a_pod("web").selects(**{label: "x"}))
    play.see(a_pod("both").selects(**{label: "x", "team": "a"}))
    play.see(a_pod("team").selects(team="a"))

    assert "label" not in kinds_of(play)
    assert "label" not in kinds_of(play, "both")
    assert kinds_of(play, "team")["label"] == "label node n1 team=a"


def test_a_cordoned_node_is_uncordoned_not_tolerated() -> None:
    play = Play(
        room("n1").cordoned().taints("node.kubernetes.io/unschedulable:NoSchedule"),
        room("n2").cordoned().taints("team=a:NoSchedule"),
    )
    play.see(a_pod("web").requests(cpu="1"))

    assert kinds_of(play) == {"cordon": "uncordon node n1"}
    assert "2 nodes are cordoned" in explained(play, "web").splitlines()


@pytest.mark.parametrize("state", ["not-ready", "unreachable", "disk-pressure"])
def test_a_node_that_is_out_of_order_is_not_tolerated(state: str) -> None:
    play = Play(room("n1").taints(f"node.kubernetes.io/{state}:NoSchedule"))
    play.see(a_pod("web").requests(cpu="1"))

    assert kinds_of(play) == {}


def test_gates_are_named_and_no_change_is_suggested_before_they_are_removed() -> None:
    play = Play(room("n1", 1))
    gates = [{"name": f"example.com/{number}"} for number in range(9)]
    play.see(a_pod("web").requests(cpu="2").spec(schedulingGates=gates))

    said = explained(play, "web")
    named = ", ".join(f"example.com/{number}" for number in range(5))
    why = f"  scheduling gates {named} and 4 more: to be removed by the controller that set it"
    assert why in said.splitlines()
    assert "change" not in said


def test_a_missing_pod_group_is_named_and_no_change_is_suggested() -> None:
    play = label_gang_play(room("n1", 0))
    play.see(a_label_member("web", "crew"))

    said = explained(play, "web")
    why = "  waits for its PodGroup crew of scheduling.x-k8s.io, which does not exist"
    assert why in said.splitlines()
    assert "change" not in said


def test_a_policy_that_forbids_evictions_is_named() -> None:
    play = Play(room("n1", 1))
    play.see(a_pod("low").requests(cpu="1").priority(1).on("n1"))
    play.see(a_pod("web").requests(cpu="1").priority(9).spec(preemptionPolicy="Never"))

    assert kinds_of(play)["eviction"] == (
        "evict what has priority 1 or less on node n1 (1 pod), which the pod's preemptionPolicy"
        " Never keeps the scheduler from doing"
    )


def of_a_volume(claim: dict[str, Any] | None, *facts: Fact) -> list[str]:
    """The lines about a pod with the claim `data`."""
    play = Play(*[room(name).labels({ZONE: name}) for name in ("a", "b", "c")])
    if claim is not None:
        made = volume_builders.a_claim("data", **claim)
        play.turn(Seen(PERSISTENT_VOLUME_CLAIM, made))
    play.turn(*facts, ours(Seen(POD, volume_builders.a_pod("web", "data"))))
    return explained(play, "web").splitlines()


def seen_class(**fields: Any) -> Fact:
    return Seen(STORAGE_CLASS, volume_builders.a_class("fast", **fields))


def test_a_claim_that_does_not_exist() -> None:
    assert "  PersistentVolumeClaim default/data does not exist; create it" in of_a_volume(None)


def test_a_claim_whose_class_does_not_exist() -> None:
    assert (
        "  PersistentVolumeClaim default/data is not bound: StorageClass fast does not exist; a"
        " PersistentVolume has to be bound to it"
    ) in of_a_volume({"cls": "fast"})


def test_a_claim_of_a_class_that_binds_at_once() -> None:
    assert (
        "  PersistentVolumeClaim default/data is not bound: StorageClass fast binds at once, by"
        " provisioner disks.example.com; see its events"
    ) in of_a_volume({"cls": "fast"}, seen_class(mode="Immediate", provisioner="disks.example.com"))


def test_a_claim_that_is_larger_than_each_free_volume() -> None:
    volumes = [
        Seen(PERSISTENT_VOLUME, volume_builders.a_volume(f"pv{size}", cls="fast", size=f"{size}Gi"))
        for size in (1, 5)
    ]
    taken = volume_builders.a_volume("taken", cls="fast", size="99Gi", claim=("other", "uid-other"))

    assert (
        "  PersistentVolumeClaim default/data requests 10Gi; the largest free PersistentVolume of"
        " StorageClass fast is pv5 with 5Gi"
    ) in of_a_volume(
        {"cls": "fast", "size": "10Gi"}, seen_class(), Seen(PERSISTENT_VOLUME, taken), *volumes
    )
    assert (
        "  PersistentVolumeClaim default/data needs a PersistentVolume of StorageClass fast; none"
        " is free"
    ) in of_a_volume({"cls": "fast"}, seen_class())


def test_a_class_whose_topologies_leave_nodes_out() -> None:
    allowed = [{ZONE: ["x", "y"]}]
    found = of_a_volume(
        {"cls": "fast"}, seen_class(provisioner="disks.example.com", topologies=allowed)
    )
    assert (
        "  PersistentVolumeClaim default/data: StorageClass fast makes its volume only with"
        f" {ZONE} in (x, y) (allowedTopologies), as 0 of 3 nodes have"
    ) in found


def test_a_device_class_and_a_resource_claim_that_do_not_exist() -> None:
    play = Play(a_node("n1"))
    claim = decode(ResourceClaim, device_builders.a_claim_object("c"))
    play.turn(Seen(RESOURCE_CLAIM, claim))
    asked = [{"name": name, "resourceClaimName": name} for name in ("c", "lost")]
    play.see(a_pod("web", "d").spec(resourceClaims=asked))

    lines = explained(play, "web", "d").splitlines()
    assert "  DeviceClass gpu of ResourceClaim d/c does not exist; create it" in lines
    assert "  ResourceClaim d/lost does not exist; create it" in lines


def test_a_thousand_taints_are_summed_up() -> None:
    many = room("n1")
    for number in range(1_000):
        many = many.taints(f"key{number}=x:NoSchedule")
    nodes = [room(f"m{number}").taints(f"dedicated=team{number}:NoSchedule") for number in range(9)]
    play = Play(many, *nodes)
    play.see(a_pod("web").requests(cpu="99"))
    play.see(a_pod("small").requests(cpu="1").selects(only="n1"))

    said = explained(play, "web").splitlines()
    page = explanation_of(play, "web")

    assert "taint dedicated:NoSchedule with 9 values on 9 nodes is not tolerated" in said
    assert "nor are 996 further taints" in said
    assert max(map(len, said)) < 500
    assert len(page["taints"]) == 10
    assert all(len(miss["taints"]) <= 11 for miss in page["now"]["nearestMisses"])


def test_a_toleration_of_many_taints_is_summed_up() -> None:
    node = room("n1")
    for number in range(50):
        node = node.taints(f"key{number}=x:NoSchedule")
    play = Play(node)
    play.see(a_pod("web").requests(cpu="1"))

    text = kinds_of(play)["toleration"]
    assert text.startswith("tolerate key0=x:NoSchedule, ")
    assert text.endswith(" and 45 more")
