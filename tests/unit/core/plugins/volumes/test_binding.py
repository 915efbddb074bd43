"""Claims that wait for their node, and what becomes of them."""

from typing import Any

import pytest

from asched.core.config.args import UtilizationShapePoint, VolumeBindingArgs
from asched.core.framework.meter import PluginObserver, PluginReports
from asched.core.framework.status import SKIP, Code, Status, unresolvable
from asched.core.plugins.volumes.binding import REASONS, VolumeBinding
from asched.core.plugins.volumes.choice import Reject
from tests.volume_builders import (
    ZONE,
    a_capacity,
    a_claim,
    a_class,
    a_cluster,
    a_driver,
    a_node,
    a_pod,
    a_volume,
    judge,
    rejected,
    see,
)

UNREACHABLE, UNBINDABLE, NO_ROOM, NO_VOLUME = (REASONS[bit].text for bit in Reject)
WAITING = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
SHAPE = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))


def a_world(*more: Any) -> Any:
    return a_cluster(
        a_node("n1", "a"),
        a_node("n2", "b"),
        a_class("local"),
        a_class("dyn", "csi"),
        a_class("zonal", "csi", topologies=[{ZONE: ["a"]}]),
        a_class("now", "csi", mode="Immediate"),
        *more,
    )


def heard_in(cluster: Any) -> list[str]:
    """The steps whose failures the plugin reports from now on."""
    failures: list[str] = []

    class Heard(PluginObserver):
        def volumes_failed(self, operation: str) -> None:
            failures.append(operation)

    cluster.singleton(PluginReports).observer = Heard()
    return failures


def reasons(verdict: Any) -> dict[str, tuple[str, ...]]:
    return {node: status.reasons for node, status in verdict.items()}


# --- before any node is looked at ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (a_claim("other"), 'persistentvolumeclaim "c" not found'),
        (
            a_claim("c", volume="pv", phase="Lost"),
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "pv"',
        ),
        (a_claim("c", deleting=True), 'persistentvolumeclaim "c" is being deleted'),
        (a_claim("c", cls="now"), "pod has unbound immediate PersistentVolumeClaims"),
        (a_claim("c", cls="nope"), "pod has unbound immediate PersistentVolumeClaims"),
        (a_claim("c"), "pod has unbound immediate PersistentVolumeClaims"),
        (
            a_claim("c", cls="dyn", volume="pv", bound=False),
            "pod has unbound immediate PersistentVolumeClaims",
        ),
    ],
    ids=str,
)
def test_claims_that_stop_the_pod(claim: Any, reason: str) -> None:
    cluster = a_world(claim)

    assert judge(VolumeBinding(None, cluster), cluster, a_pod("p", "c")) == unresolvable(reason)


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (
            a_claim("x"),
            f'{WAITING} "p-scratch"',
        ),
        (
            a_claim("p-scratch", owner="somebody"),
            "PVC default/p-scratch was not created for pod default/p (pod is not owner)",
        ),
    ],
    ids=str,
)
def test_ephemeral_claims_that_stop_the_pod(claim: Any, reason: str) -> None:
    cluster = a_world(claim)
    pod = a_pod("p", ephemeral=["scratch"])

    assert judge(VolumeBinding(None, cluster), cluster, pod) == unresolvable(reason)


def test_a_selector_that_makes_no_sense_is_an_error() -> None:
    wrong = {"matchExpressions": [{"key": "k", "operator": "Like", "values": ["x"]}]}
    cluster = a_world(a_claim("c", cls="local", selector=wrong))
    failures = heard_in(cluster)

    verdict = judge(VolumeBinding(None, cluster), cluster, a_pod("p", "c"))

    assert isinstance(verdict, Status)
    assert verdict.code is Code.ERROR
    assert failures == ["predicate"]


# --- whose answers are shared, and how long they hold --------------------------------------------


# --- node by node --------------------------------------------------------------------------------


def test_a_bound_volume_must_be_reachable() -> None:
    cluster = a_world(a_volume("pv", reach={ZONE: ["a"]}), a_claim("c", volume="pv"))

    verdict = judge(VolumeBinding(None, cluster), cluster, a_pod("p", "c"))

    assert verdict == {"n2": unresolvable(UNREACHABLE)}


def test_a_claim_bound_to_nothing_fits_nowhere() -> None:
    cluster = a_world(a_claim("c", volume="gone"))

    verdict = judge(VolumeBinding(None, cluster), cluster, a_pod("p", "c"))

    assert reasons(verdict) == {"n1": (NO_VOLUME,), "n2": (NO_VOLUME,)}


def test_a_node_can_have_several_reasons() -> None:
    cluster = a_world(
        a_volume("pv", reach={ZONE: ["a"]}), a_claim("b", volume="pv"), a_claim("c", cls="local")
    )

    verdict = judge(VolumeBinding(None, cluster), cluster, a_pod("p", "b", "c"))

    assert reasons(verdict) == {"n1": (UNBINDABLE,), "n2": (UNREACHABLE, UNBINDABLE)}


def test_a_claim_finds_a_volume_or_has_one_made() -> None:
    free = a_volume("pv", cls="zonal", reach={ZONE: ["b"]})
    cluster = a_world(free, a_claim("c", cls="zonal"), a_claim("d", cls="zonal"))
    plugin = VolumeBinding(None, cluster)

    assert rejected(plugin, cluster, a_pod("p", "c")) == set()
    assert rejected(plugin, cluster, a_pod("p", "c", "d")) == {"n2"}


def test_a_claim_whose_node_was_selected_goes_there_only() -> None:
    cluster = a_world(a_claim("c", cls="dyn", selected="n2"))

    verdict = judge(VolumeBinding(None, cluster), cluster, a_pod("p", "c"))

    assert reasons(verdict) == {"n1": (UNBINDABLE,)}


def test_storage_capacity_counts_where_the_driver_asks_for_it() -> None:
    here = a_capacity("cap", "dyn", "5Gi", {ZONE: "a"})
    cluster = a_world(a_claim("c", cls="dyn", size="3Gi"), a_driver("csi", capacity=True), here)
    plugin = VolumeBinding(None, cluster)
    pod = a_pod("p", "c")

    assert reasons(judge(plugin, cluster, pod)) == {"n2": (NO_ROOM,)}
    see(cluster, a_capacity("cap", "dyn", "5Gi", {ZONE: "a"}, largest="2Gi"))
    assert set(reasons(judge(plugin, cluster, pod))) == {"n1", "n2"}
    see(cluster, a_driver("csi", capacity=False))
    assert judge(plugin, cluster, pod) == {}


# --- scores --------------------------------------------------------------------------------------


def score(cluster: Any, pod: Any, args: VolumeBindingArgs | None) -> list[int] | Status:
    plugin = VolumeBinding(args, cluster)
    info = cluster.classes.info_of(pod)
    said = plugin.pre_score(info, cluster.view(), cluster.view().live)
    if not said.status.is_success:
        return said.status
    return plugin.score(info, cluster.view(), said.data).tolist()


def test_without_the_gate_nothing_is_scored() -> None:
    cluster = a_world(a_claim("c", cls="dyn"))

    assert score(cluster, a_pod("p", "c"), None) == SKIP


def test_with_the_gate_the_fuller_storage_scores_less() -> None:
    cluster = a_world(
        a_claim("c", cls="dyn", size="30Gi"),
        a_driver("csi", capacity=True),
        a_capacity("a", "dyn", "100Gi", {ZONE: "a"}),
        a_capacity("b", "dyn", "40Gi", {ZONE: "b"}),
    )

    assert score(cluster, a_pod("p", "c"), VolumeBindingArgs(shape=SHAPE)) == [70, 25]
    assert score(cluster, a_pod("p"), VolumeBindingArgs(shape=SHAPE)) == [0, 0]
