"""Feature gates that change decisions: each is flipped, and what follows is what 1.36 does.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins (feature.Features),
        staging/src/k8s.io/api/core/v1/toleration.go
"""

from typing import Any

import pytest

from asched.core.cluster.facts import Seen
from asched.core.framework.effects import Bind
from asched.core.model.kinds import NODE
from tests.builders import a_node, a_pod
from tests.playbook import Play
from tests.volume_builders import KIND_OF, a_claim, a_csi_node, a_driver, a_volume
from tests.volume_builders import a_class as a_storage_class
from tests.volume_builders import a_pod as a_mounting_pod

COMPARISONS = {"TaintTolerationComparisonOperators": True}
LOAD = {"key": "load", "effect": "NoSchedule"}
HOST = "kubernetes.io/hostname"


@pytest.mark.parametrize(
    ("operator", "value", "is_tolerated"),
    [
        ("Lt", "10", True),  # the taint's 5 is smaller
        ("Lt", "5", False),
        ("Gt", "4", True),
        ("Gt", "5", False),
        ("Gt", "-1", True),
        ("Lt", "010", False),  # no integer as a human writes it
        ("Lt", "9223372036854775808", False),  # does not fit 64 bits
        ("Lt", "", False),
    ],
)
def test_tolerations_compare_behind_their_gate(
    operator: str, value: str, is_tolerated: bool
) -> None:
    pod = a_pod("web").spec(tolerations=[{**LOAD, "operator": operator, "value": value}])
    on, off = (Play(a_node("n1").taints("load=5:NoSchedule"), gates=g) for g in (COMPARISONS, {}))

    on.see(pod)
    off.see(pod)

    assert bool(on.of(Bind)) is is_tolerated
    assert off.of(Bind) == []
    told = "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
    assert off.condition()["message"].startswith(told)


def test_a_taint_that_falls_under_the_bound_wakes_the_pod() -> None:
    play = Play(a_node("n1").taints("load=50:NoSchedule"), gates=COMPARISONS)
    play.see(a_pod("web").spec(tolerations=[{**LOAD, "operator": "Lt", "value": "10"}]))
    assert play.of(Bind) == []

    play.turn(Seen(NODE, a_node("n1").taints("load=5:NoSchedule").build()), after_s=20)

    assert play.the(Bind).node == "n1"


@pytest.mark.parametrize(("gates", "node"), [(COMPARISONS, ""), ({}, "n1")])
def test_nodes_whose_taints_compare_count_for_spreading(gates: dict[str, bool], node: str) -> None:
    """The empty node n2 is full. Where its taint is tolerated it is a domain with no pod, and one
    more on n1 would be too many; else n1 is the only domain.
    """
    spread = {
        "maxSkew": 1,
        "topologyKey": HOST,
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeTaintsPolicy": "Honor",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    n1 = a_node("n1").labels({HOST: "n1"})
    n2 = a_node("n2").labels({HOST: "n2"}).taints("load=5:NoSchedule").allocatable(pods="0")
    play = Play(n1, n2, gates=gates)
    play.see(a_pod("old").labels(app="web").on("n1"))

    pod = a_pod("new").labels(app="web")
    toleration = {**LOAD, "operator": "Lt", "value": "10"}
    play.see(pod.spec(topologySpreadConstraints=[spread], tolerations=[toleration]))

    assert [bind.node for bind in play.of(Bind)] == ([node] if node else [])


@pytest.mark.parametrize(("is_on", "bindings"), [(True, 1), (False, 0)])
def test_match_label_keys_narrow_whom_to_count(is_on: bool, bindings: int) -> None:
    """One pod of the old revision on n1, and n2 is full: only a new revision may join it."""
    spread = {
        "maxSkew": 1,
        "topologyKey": HOST,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["rev"],
    }
    n1, n2 = (a_node(name).labels({HOST: name}) for name in ("n1", "n2"))
    gates = {
        "MatchLabelKeysInPodTopologySpread": is_on,
        "MatchLabelKeysInPodTopologySpreadSelectorMerge": is_on,
    }
    play = Play(n1, n2.allocatable(pods="0"), gates=gates)
    play.see(a_pod("old").labels(app="web", rev="1").on("n1"))

    play.see(a_pod("new").labels(app="web", rev="2").spec(topologySpreadConstraints=[spread]))

    assert len(play.of(Bind)) == bindings


@pytest.mark.parametrize("is_on", [True, False])
def test_a_driver_may_insist_on_being_installed_behind_its_gate(is_on: bool) -> None:
    """n1 has no CSINode that names the driver of the pod's volume."""
    play = Play(a_node("n1"), gates={"VolumeLimitScaling": is_on})
    objects: list[Any] = [
        a_storage_class("csi", "csi"),
        a_driver("csi", insists=True),
        a_volume("pv", csi=("csi", "h")),
        a_claim("c", volume="pv"),
        a_csi_node("n1", {}),
    ]
    play.turn(*(Seen(KIND_OF[type(obj)], obj) for obj in objects))
    play.see(a_mounting_pod("web", "c"))

    if is_on:
        told = "0/1 nodes are available: 1 csi CSI driver is not installed on the node."
        assert play.condition()["message"].startswith(told)
    else:
        assert play.the(Bind).node == "n1"
