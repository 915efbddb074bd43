"""What is reserved for a pod's claims, written, and given back."""

from typing import Any

import msgspec
import pytest

from asched.core.config.args import VolumeBindingArgs
from asched.core.framework.choices import CHOICES_MAX, Choices
from asched.core.framework.effects import Patch, WaitFor
from asched.core.framework.status import SKIP, SUCCESS, failure
from asched.core.model.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from asched.core.plugins.volumes.binding import VolumeBinding
from asched.core.state.facts import Done, TimedOut
from tests.core.plugins.volumes.test_binding import (
    BOUND,
    DELAYED,
    LOST,
    PLAIN,
    a_world,
    heard_in,
    of_all_kinds,
)
from tests.volume_builders import ZONE, a_claim, a_pod, a_volume, rejected, see, view_of


def reserved(cluster: Any, plugin: VolumeBinding, pod: Any, node: str) -> Any:
    info = cluster.classes.info_of(pod)
    see(cluster, pod)
    assert plugin.reserve(info, node, None) == SUCCESS
    return info


def test_bound_claims_leave_nothing_to_do() -> None:
    cluster = a_world(a_volume("pv"), a_claim("c", volume="pv"))
    plugin = VolumeBinding(None, cluster)

    info = reserved(cluster, plugin, a_pod("p", "c"), "n1")

    assert plugin.pre_bind_pre_flight(info, "n1") == SKIP


@pytest.mark.parametrize(
    ("pod", "node"), [(PLAIN, "n1"), (LOST, "n1"), (BOUND, "n1"), (DELAYED, "gone")]
)
def test_where_nothing_is_chosen_nothing_is_reserved_bound_or_taken_back(
    pod: Any, node: str
) -> None:
    cluster = of_all_kinds()
    plugin = VolumeBinding(None, cluster)

    info = reserved(cluster, plugin, pod, node)

    assert plugin.choices(info, node, None) == 1
    assert plugin.chosen(info) == ()
    assert plugin.pre_bind_pre_flight(info, node) == SKIP
    with pytest.raises(StopIteration) as ended:
        next(plugin.pre_bind(info, node))
    assert ended.value.value == SUCCESS
    plugin.unreserve(info, node)


def test_a_node_on_which_the_claims_find_nothing_leaves_no_choice_and_nothing_to_reserve() -> None:
    """Filter may not be enabled."""
    free = [a_volume(f"pv{n}", cls="zonal", size=f"{n}Gi") for n in (1, 2)]
    cluster = of_all_kinds(*free, a_claim("l", cls="local"), a_claim("z", cls="zonal"))
    plugin = VolumeBinding(None, cluster)
    for pod in (a_pod("p", "l"), a_pod("q", "b", "z")):
        for number in (0, 1):
            cluster.singleton(Choices).insist(pod.uid, "n2", {plugin.name: number})
            info = reserved(cluster, plugin, pod, "n2")
            assert plugin.choices(info, "n2", None) == 1
            assert plugin.pre_bind_pre_flight(info, "n2") == SKIP


@pytest.mark.parametrize("count", [CHOICES_MAX - 1, CHOICES_MAX, CHOICES_MAX + 1, CHOICES_MAX + 2])
def test_choices_are_counted_up_to_those_that_are_tried(count: int) -> None:
    volumes = [a_volume(f"pv{n}", cls="local", size=f"{n + 1}Gi") for n in range(count)]
    cluster = a_world(*volumes, a_claim("c", cls="local"))

    found = VolumeBinding(None, cluster).choices(
        cluster.classes.info_of(a_pod("p", "c")), "n1", None
    )

    assert found == count if count <= CHOICES_MAX else found > CHOICES_MAX


def test_the_first_choice_is_reserved_without_a_look_at_others() -> None:
    volumes = [a_volume(f"pv{n}", cls="local", size=f"{n + 1}Gi") for n in range(9)]
    cluster = a_world(*volumes, a_claim("c", cls="local"))
    before = cluster.budget.spent

    reserved(cluster, VolumeBinding(None, cluster), a_pod("p", "c"), "n1")

    assert cluster.budget.spent == before


def test_what_is_reserved_is_gone_for_the_next_pod_until_it_is_given_back() -> None:
    cluster = a_world(
        a_volume("pv", cls="local"), a_claim("c", cls="local"), a_claim("d", cls="local")
    )
    plugin = VolumeBinding(None, cluster)

    info = reserved(cluster, plugin, a_pod("p", "c"), "n1")

    assert rejected(plugin, cluster, a_pod("q", "d")) == {"n1", "n2"}
    plugin.unreserve(info, "n1")
    plugin.unreserve(info, "n1")
    assert rejected(plugin, cluster, a_pod("q", "d")) == set()
    assert plugin.pre_bind_pre_flight(info, "n1") == SKIP


def test_another_volume_than_the_smallest_is_reserved_where_it_is_asked_for() -> None:
    volumes = [a_volume(f"pv{n}", cls="local", size=f"{n}Gi") for n in (1, 2)]
    cluster = a_world(*volumes, a_claim("c", cls="local"))
    plugin, pod = VolumeBinding(None, cluster), a_pod("p", "c")
    info, choices = cluster.classes.info_of(pod), cluster.singleton(Choices)
    see(cluster, pod)
    assert plugin.choices(info, "n1", None) == 2

    for number, volume in enumerate(("pv1", "pv2")):
        choices.insist(pod.uid, "n1", {plugin.name: number})
        assert plugin.reserve(info, "n1", None) == SUCCESS
        assert plugin.chosen(info) == (("PersistentVolume", volume),)
        plugin.unreserve(info, "n1")
        choices.drop(pod.uid)
    choices.insist(pod.uid, "n1", {plugin.name: 2})
    assert not plugin.reserve(info, "n1", None).is_success


def test_a_volume_is_written_and_waited_for() -> None:
    free = a_volume("pv", cls="local", version="7")
    cluster = a_world(free, a_claim("c", cls="local", version="3"))
    plugin = VolumeBinding(VolumeBindingArgs(bind_timeout_s=5), cluster)
    info = reserved(cluster, plugin, a_pod("p", "c"), "n1")
    assert plugin.pre_bind_pre_flight(info, "n1") == SUCCESS

    late = plugin.pre_bind(info, "n1")
    patch = next(late)
    assert isinstance(patch, Patch)
    assert (patch.kind, patch.name) == (PERSISTENT_VOLUME, "pv")
    assert patch.body == {
        "metadata": {
            "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
            "resourceVersion": "7",
        },
        "spec": {
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": "default",
                "name": "c",
                "uid": "uid-c",
                "resourceVersion": "3",
            }
        },
    }
    wait = late.send(Done(0, {"metadata": {"resourceVersion": "8"}}))
    assert isinstance(wait, WaitFor)
    assert wait.timeout_s == 5
    assert not wait.ready()
    see(cluster, a_volume("pv", cls="local", version="8", claim=("c", "uid-c")))
    assert not wait.ready()
    see(cluster, a_claim("c", cls="local", volume="pv", version="9"))
    assert wait.ready()
    with pytest.raises(StopIteration) as ended:
        late.send(Done(0))
    assert ended.value.value == SUCCESS
    assert plugin.pre_bind_pre_flight(info, "n1") == SKIP  # there is nothing to be taken back


def test_a_node_is_selected_and_waiting_for_the_provisioner_can_take_too_long() -> None:
    cluster = a_world(a_claim("c", cls="dyn", version="3"))
    plugin = VolumeBinding(None, cluster)
    failures = heard_in(cluster)
    info = reserved(cluster, plugin, a_pod("p", "c"), "n2")

    late = plugin.pre_bind(info, "n2")
    patch = next(late)
    assert isinstance(patch, Patch)
    assert (patch.kind, patch.namespace, patch.name) == (PERSISTENT_VOLUME_CLAIM, "default", "c")
    assert patch.body == {
        "metadata": {
            "annotations": {"volume.kubernetes.io/selected-node": "n2"},
            "resourceVersion": "3",
        }
    }
    wait = late.send(Done(0, {"metadata": {"resourceVersion": "4"}}))
    assert isinstance(wait, WaitFor)
    assert wait.timeout_s == 600
    with pytest.raises(StopIteration) as ended:
        late.send(TimedOut(0))
    assert ended.value.value == failure("binding volumes: context deadline exceeded")
    assert failures == ["bind"]
    plugin.unreserve(info, "n2")
    assert rejected(plugin, cluster, a_pod("q", "c")) == set()


def test_a_reservation_looks_at_its_own_node_alone() -> None:
    cluster = a_world(a_volume("pv", cls="zonal", reach={ZONE: ["b"]}), a_claim("c", cls="zonal"))
    plugin = VolumeBinding(None, cluster)
    info = reserved(cluster, plugin, a_pod("p", "c"), "n1")

    patch = next(plugin.pre_bind(info, "n1"))

    assert isinstance(patch, Patch)
    assert patch.kind is PERSISTENT_VOLUME_CLAIM  # in zone a the volume has to be made
    assert view_of(cluster, "n1").size == 1


def test_a_node_that_is_assumed_for_a_shared_claim_is_read_by_others() -> None:
    """The version of the claim stays what the API told."""
    cluster = of_all_kinds()
    claim = a_claim("d", cls="dyn")
    bare = msgspec.structs.replace(claim.metadata, annotations=None)
    see(cluster, msgspec.structs.replace(claim, metadata=bare))
    plugin, other = VolumeBinding(None, cluster), cluster.classes.info_of(a_pod("q", "d"))
    before = plugin.stamp(other, None)
    assert rejected(plugin, cluster, other) == set()

    info = reserved(cluster, plugin, DELAYED, "n2")

    assert plugin.stamp(other, None) != before
    assert rejected(plugin, cluster, other) == {"n1"}
    plugin.unreserve(info, "n2")
    assert plugin.stamp(other, None)[:3] == before[:3]
    assert rejected(plugin, cluster, other) == set()
