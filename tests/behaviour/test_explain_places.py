"""`asched explain` says where a pod with a reserved place is, and what it waits for; and for which
victims a nominated pod waits.
"""

from typing import Any

import msgspec

from asched.core.cluster.facts import Done, Fact, Seen
from asched.core.framework.effects import Bind, Patch
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    DEVICE_CLASS,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    STORAGE_CLASS,
)
from asched.plugin import Code, Late, PermitPlugin, PodInfo, PreBindPlugin, Status, WaitFor
from tests import device_builders, volume_builders
from tests.builders import PodBuilder, a_node, a_pod, room
from tests.playbook import Play, explained, explanation_of, ours

#: What must not be said of a pod that has its place: it counts on its node itself.
MISLEADING = ("now:", "nearest misses", "change", "evict")


def assert_on_its_way(play: Play, name: str, first: str, waits: str, namespace="default") -> None:
    text = explained(play, name, namespace)
    lines = text.splitlines()
    assert lines[0] == f"pod {namespace}/{name}: {first}"
    assert f"  waits for {waits}" in lines
    assert not [word for word in MISLEADING if word in text]


class Permits(PermitPlugin):
    name = "Permits"

    def permit(self, pod: PodInfo, node: str) -> tuple[Status, float]:
        return Status(Code.WAIT), 60.0


class Prepares(PreBindPlugin):
    name = "Prepares"
    says: Any = None

    def pre_bind_pre_flight(self, pod: PodInfo, node: str) -> Status:
        return Status(Code.SUCCESS)

    def pre_bind(self, pod: PodInfo, node: str) -> Late:
        yield WaitFor(ready=lambda: False, timeout_s=60.0, why=self.says)
        return Status(Code.SUCCESS)


class SaysWhy(Prepares):
    def says(self) -> str:
        return "the moon"


class CannotSay(Prepares):
    def says(self) -> str:
        raise ValueError("oops")


def a_large_pod() -> PodBuilder:
    """It fills the node, so that it would not fit beside itself."""
    return a_pod("web").requests(cpu="4")


def test_a_pod_at_permit() -> None:
    play = Play(room("n1"), plugins=(Permits,))
    play.see(a_large_pod())
    play.turn(after_s=20)

    waits = "Permits to allow it, for 40 s more"
    assert_on_its_way(play, "web", "waiting at Permit on n1", waits)


def test_a_pod_in_pre_bind_of_a_plugin() -> None:
    for plugin, reason in (
        (SaysWhy, "the moon"),
        (Prepares, "its writes before the binding"),
        (CannotSay, "it could not say what for: oops"),
    ):
        play = Play(room("n1"), plugins=(plugin,))
        play.see(a_large_pod())

        assert_on_its_way(play, "web", "in PreBind on n1", f"Prepares: {reason}")


def test_a_pod_whose_binding_is_not_answered() -> None:
    play = Play(room("n1"))
    play.see(a_large_pod())
    assert play.of(Bind)

    waits = "the answer of the API server to the binding"
    assert_on_its_way(play, "web", "being bound on n1", waits)


def volume_play(*facts: Fact, written: Fact, **storage_class: Any) -> Play:
    """A pod with the claim `data`; `written` shows what it wrote."""
    claim = volume_builders.a_claim("data", cls="fast")
    play = Play(room("n1"))
    play.turn(
        Seen(STORAGE_CLASS, volume_builders.a_class("fast", **storage_class)),
        Seen(PERSISTENT_VOLUME_CLAIM, claim),
        *facts,
    )
    play.turn(ours(Seen(POD, volume_builders.a_pod("web", "data"))))
    play.turn(Done(play.the(Patch).id), written)
    return play


def test_a_pod_whose_volume_is_made() -> None:
    chosen = volume_builders.a_claim("data", cls="fast", selected="n1", version="2")
    written = Seen(PERSISTENT_VOLUME_CLAIM, chosen)
    play = volume_play(written=written, provisioner="disks.example.com")

    waits = (
        "VolumeBinding: PersistentVolumeClaim default/data waits for provisioner disks.example.com"
        " of StorageClass fast to make a volume for node n1"
    )
    assert_on_its_way(play, "web", "in PreBind on n1", waits)


def test_a_pod_whose_claim_is_bound_to_a_volume() -> None:
    free = volume_builders.a_volume("pv1", cls="fast")
    taken = volume_builders.a_volume("pv1", cls="fast", claim=("data", "uid-data"), version="2")
    written = Seen(PERSISTENT_VOLUME, taken)
    play = volume_play(Seen(PERSISTENT_VOLUME, free), written=written)

    waits = (
        "VolumeBinding: PersistentVolumeClaim default/data waits for the volume controller to bind"
        " PersistentVolume pv1"
    )
    assert_on_its_way(play, "web", "in PreBind on n1", waits)


def test_a_pod_whose_device_is_attached() -> None:
    play, made = Play(a_node("n1")), device_builders.a_claim_object("c")
    device = device_builders.a_device("a", bindingConditions=["Ready", "Attached"])
    play.turn(
        Seen(DEVICE_CLASS, device_builders.a_class()),
        Seen(RESOURCE_SLICE, device_builders.a_slice(device)),
        Seen(RESOURCE_CLAIM, decode(ResourceClaim, made)),
    )
    pod = a_pod("web", "d").spec(resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
    play.see(pod)
    for version in (2, 3):
        patch = play.the(Patch)
        made["metadata"] |= patch.body["metadata"] | {"resourceVersion": str(version)}
        made["status"] |= patch.body.get("status", {})
        play.turn(Done(patch.id, made), Seen(RESOURCE_CLAIM, decode(ResourceClaim, made)))

    waits = (
        "DynamicResources: ResourceClaim d/c waits for conditions Ready, Attached of device a of"
        " driver gpu.example.com"
    )
    assert_on_its_way(play, "web", "in PreBind on n1", waits, "d")


def test_a_pod_that_waits_for_its_victims() -> None:
    play = Play(room("n1"))
    for name in ("low", "other"):
        play.see(a_pod(name).requests(cpu="2").priority(-1).on("n1"))
    play.see(a_large_pod().priority(9))
    lines = explained(play, "web").splitlines()

    (since,) = [line for line in lines if "nominated to n1" in line][:1]
    assert since.startswith("  nominated to n1 since ")
    assert since.endswith("; waits for 2 victims to end")
    assert "    default/low (priority -1), to be evicted" in lines
    assert not [line for line in lines if line.startswith("  eviction")]
    assert "changes" not in explanation_of(play, "web")

    low, other = (a_pod(name).requests(cpu="2").priority(-1).on("n1") for name in ("low", "other"))
    play.lose(low)
    play.see(other.metadata(deletionTimestamp="2026-03-01T08:00:00Z"))

    lines = explained(play, "web").splitlines()
    assert any(line.endswith("; waits for 1 victim to end") for line in lines)
    assert "    default/other (priority -1), terminating" in lines


def test_a_pod_that_another_component_nominated() -> None:
    play = Play(room("n1", 1))
    pod = a_large_pod().build()
    status = msgspec.structs.replace(pod.status, nominated_node_name="n1")
    play.see(msgspec.structs.replace(pod, status=status))

    assert "  nominated to n1" in explained(play, "web").splitlines()
