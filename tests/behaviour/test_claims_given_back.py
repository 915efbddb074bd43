"""Claims that keep a pod from every node are given back: objects in, effects out.

A claim stays allocated where its devices are. If that node cannot take the pod any more, the
scheduler deallocates the claim, so that the next attempt may allocate it elsewhere.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from asched.cli.main import main
from asched.core.cluster.facts import Done, Fact, Gone, Refused, Seen
from asched.core.framework.effects import (
    Bind,
    Delete,
    DeletePod,
    Effect,
    EmitEvent,
    MarkVictim,
    Patch,
)
from asched.core.framework.points import Late, PostFilterPlugin, PostFilterResult
from asched.core.framework.status import SUCCESS, failure, unschedulable
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    DEVICE_CLASS,
    NODE,
    POD,
    POD_GROUP,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
)
from asched.core.model.workload import PodGroup
from asched.plugin import PodInfo
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.device_builders import a_claim_object, a_class, a_slice, allocated
from tests.playbook import Play

DONE = "deallocation of ResourceClaim completed"
ORDER = [{"name": name} for name in ("Giver", "Taker", "DefaultPreemption")]
WEBHOOK = (
    'Internal error occurred: failed calling webhook "claims.example.com": failed to call webhook:'
    ' Post "https://claims.example.svc:443/?timeout=10s": connect: connection refused'
)


def node(name: str) -> NodeBuilder:
    return a_node(name).allocatable(cpu="4", memory="8Gi", pods="32")


def claiming(name: str = "p", claim: str = "c") -> PodBuilder:
    pod = a_pod(name, "d").requests(cpu="1")
    return pod.spec(resourceClaims=[{"name": claim, "resourceClaimName": claim}])


class Scene(Play):
    """Nodes n1 and n2 with one device each, and the claim c."""

    def __init__(self, *nodes: NodeBuilder, claim: dict[str, Any] | None = None, **more: Any):
        super().__init__(*(nodes or (node("n1").cordoned(), node("n2"))), **more)
        self.said: list[Effect] = []
        self.go(
            Seen(DEVICE_CLASS, a_class()),
            Seen(RESOURCE_SLICE, a_slice("a")),
            Seen(RESOURCE_SLICE, a_slice("a", name="n2", pool="n2", nodeName="n2")),
        )
        stored = a_claim_object("c", **allocated()) if claim is None else claim
        self.go(Seen(RESOURCE_CLAIM, decode(ResourceClaim, stored)))

    def go(self, *facts: Fact, after_s: float = 0.0) -> list[Effect]:
        """Hand in facts, and let the machine finish what follows."""
        effects = list(self.turn(*facts, after_s=after_s))
        while self.machine.next_deadline_s() == 0.0:
            effects += self.turn()
        self.effects = effects
        self.said += effects
        return effects

    def claim_patch(self) -> Patch:
        """The one write to a claim that the last turns asked for."""
        (patch,) = [e for e in self.of(Patch) if e.kind is RESOURCE_CLAIM]
        return patch

    def deallocated(self) -> None:
        """The API server carries the patch out, and the watch shows the claim."""
        patch = self.claim_patch()
        assert (patch.kind, patch.name, patch.subresource) == (RESOURCE_CLAIM, "c", "status")
        assert patch.body["status"] == {"allocation": None, "reservedFor": None, "devices": None}
        stored = a_claim_object("c", metadata={"resourceVersion": "2"})
        self.go(Done(patch.id, stored), Seen(RESOURCE_CLAIM, decode(ResourceClaim, stored)))

    def deallocated_and_bound(self, to: str) -> None:
        """The claim is given back, allocated anew, and the pod bound to a node."""
        assert not self.of(EmitEvent), "the message comes when it is known how it ended"
        self.deallocated()
        assert DONE in self.notes()[0]
        stored = a_claim_object("c", metadata={"resourceVersion": "2"})
        for version in range(3, 6):
            patch = self.claim_patch()
            stored["metadata"] |= patch.body["metadata"] | {"resourceVersion": str(version)}
            stored["status"] |= patch.body.get("status", {})
            self.go(Done(patch.id, stored), Seen(RESOURCE_CLAIM, decode(ResourceClaim, stored)))
            if self.of(Bind):
                break
        assert self.the(Bind).node == to


def of_its_own(**status: Any) -> dict[str, Any]:
    """The claim, reserved for the pod p: its scheduler ended before it could bind the pod."""
    own = [{"resource": "pods", "name": "p", "uid": "uid-p"}]
    return a_claim_object("c", **allocated(reservedFor=own, **status))


def failed_device() -> dict[str, Any]:
    """... and its device reports that it cannot be attached."""
    told = {"type": "Failed", "status": "True", "reason": "Broken", "message": "no such card"}
    told |= {"lastTransitionTime": "2026-11-01T00:00:00Z"}
    device = {"driver": "gpu.example.com", "pool": "n1", "device": "a", "conditions": [told]}
    binds = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"]}
    return of_its_own(result=binds, devices=[device])


@pytest.mark.parametrize(
    ("nodes", "claim"),
    [
        pytest.param((node("n1").cordoned(), node("n2")), None, id="node cordoned"),
        pytest.param((node("n2"),), None, id="node gone"),
        pytest.param((node("n1").allocatable(cpu="500m"), node("n2")), None, id="node full"),
        pytest.param(
            (node("n1").cordoned(), node("n2")),
            of_its_own(),
            id="scheduler was killed",
        ),
        pytest.param((node("n1"), node("n2")), failed_device(), id="device failed"),
    ],
)
def test_a_claim_on_a_node_that_takes_the_pod_no_more_is_given_back(
    nodes: tuple[NodeBuilder, ...], claim: dict[str, Any] | None
) -> None:
    scene = Scene(*nodes, claim=claim)
    scene.go(Seen(POD, claiming().build()))
    assert not scene.of(Bind)
    if claim is not None and claim["status"].get("devices"):
        scene.deallocated()  # its own node may take it again, with another device
        assert DONE in scene.notes()[0]
    else:
        scene.deallocated_and_bound("n2")


def test_a_claim_that_another_pod_uses_is_not_given_back() -> None:
    other = [{"resource": "pods", "name": "q", "uid": "uid-q"}]
    scene = Scene(claim=a_claim_object("c", **allocated(reservedFor=other)))
    scene.go(Seen(POD, claiming().build()))
    assert not scene.of(Patch)
    assert "still not schedulable" in scene.notes()[0]


def test_a_claim_made_for_extended_resources_is_deleted() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    made = a_claim_object(
        "c",
        metadata={
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [owner],
            "finalizers": ["resource.kubernetes.io/delete-protection"],
        },
    )
    scene = Scene(node("n1"), node("n2"), claim=made)
    scene.go(Seen(DEVICE_CLASS, a_class("gpu", extendedResourceName="example.com/gpu")))
    pod = a_pod("p", "d").requests(cpu="1", **{"example.com/gpu": "1"})
    scene.go(Seen(POD, pod.build()))
    unprotect = scene.the(Patch)
    assert unprotect.body["metadata"]["finalizers"] is None
    scene.go(Done(unprotect.id))
    delete = scene.the(Delete)
    assert (delete.kind, delete.name, delete.uid) == (RESOURCE_CLAIM, "c", "uid-c")
    assert not [e for e in scene.said if isinstance(e, EmitEvent)]
    scene.go(Done(delete.id), Gone(RESOURCE_CLAIM, decode(ResourceClaim, made)))
    assert "deletion of ResourceClaim completed" in scene.notes()[0]


def test_a_refusal_is_reported_in_the_servers_words_and_tried_again_with_backoff() -> None:
    scene = Scene()
    scene.go(Seen(POD, claiming().build()))
    seconds = []
    for _ in range(4):
        patch = scene.the(Patch)
        scene.go(Refused(patch.id, 500, WEBHOOK, "InternalError"))
        assert f"not available on the node. {WEBHOOK}" in scene.notes()[0]
        assert DONE not in scene.notes()[0]
        before_s = scene.now_s
        while not scene.of(Patch):
            scene.go(after_s=0.5)
            assert scene.now_s < before_s + 20.0, "the pod is never tried again"
        seconds.append(scene.now_s - before_s)
    assert seconds[0] >= 0.5
    assert seconds == sorted(seconds)
    assert seconds[-1] >= 4.0
    scene.deallocated()
    assert DONE in scene.notes()[0]


def test_a_pod_that_goes_meanwhile_gets_no_message() -> None:
    scene = Scene()
    pod = claiming().build()
    scene.go(Seen(POD, pod))
    patch = scene.the(Patch)
    scene.go(Gone(POD, pod))
    scene.go(Done(patch.id, a_claim_object("c")))
    assert not [e for e in scene.said if isinstance(e, EmitEvent)]
    assert scene.machine.is_idle


class Giver(PostFilterPlugin):
    """Makes no room, and has something to carry out all the same."""

    name = "Giver"

    def registrations(self) -> tuple[()]:
        return ()

    def post_filter(self, pod: PodInfo, rejection: Any, trial: Any) -> PostFilterResult:
        return PostFilterResult(
            unschedulable("given"), background=self._give(pod.pod.metadata.namespace)
        )

    def _give(self, namespace: str) -> Late:
        answer = yield Delete(kind=RESOURCE_CLAIM, namespace=namespace, name=self.name)
        return SUCCESS if isinstance(answer, Done) else failure(f"not given: {answer.message}")


class Taker(Giver):
    name = "Taker"


@pytest.mark.parametrize("refused", [False, True])
def test_what_several_plugins_have_to_do_is_all_done_and_evictions_after_it(refused: bool) -> None:
    """Two plugins have something to carry out, and preemption makes room."""
    points = {"postFilter": {"disabled": [{"name": "*"}], "enabled": ORDER}}
    config = [{"schedulerName": "default-scheduler", "plugins": points}]
    play = Play(node("n1").allocatable(cpu="1"), plugins=(Giver, Taker), profiles=config)
    play.see(a_pod("low", "d").requests(cpu="1").priority(0).on("n1"))
    play.see(a_pod("p", "d").requests(cpu="1").priority(100))
    assert play.the(Delete).name == "Giver"
    play.turn(Done(play.the(Delete).id))
    assert play.the(Delete).name == "Taker"
    assert not play.of(EmitEvent)
    if refused:
        play.turn(Refused(play.the(Delete).id, 500, WEBHOOK, "InternalError"))
        assert f"not given: {WEBHOOK}" in play.notes()[0]
        assert not play.of(MarkVictim), "the attempt failed, so no pod has to go"
        assert play.condition()["message"].endswith(WEBHOOK)
        return
    play.turn(Done(play.the(Delete).id))
    assert "Insufficient cpu" in play.notes()[0]
    play.turn(Done(play.the(MarkVictim).id))
    assert play.the(DeletePod).pod.name == "low"


class Breaker(Giver):
    name = "Breaker"

    def _give(self, namespace: str) -> Late:
        yield Delete(kind=RESOURCE_CLAIM, namespace=namespace, name=self.name)
        raise ValueError("out of order")


def test_a_plugin_that_raises_while_it_carries_something_out_costs_its_pod_an_attempt() -> None:
    play = Play(node("n1").allocatable(cpu="1"), plugins=(Breaker,))
    play.see(a_pod("p", "d").requests(cpu="2"))
    for _ in range(3):
        play.turn(Done(play.the(Delete).id))
        assert 'plugin "Breaker" raised ValueError: out of order' in play.notes()[0]
        failed_s = play.now_s
        while not play.of(Delete):
            play.turn(after_s=0.5)
            assert play.now_s < failed_s + 30.0, "the pod is never tried again"


def test_a_pod_of_a_group_gives_its_claim_back_too() -> None:
    gates = {"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True}
    scene = Scene(gates=gates)
    group = decode(
        PodGroup,
        {
            "metadata": {"name": "crew", "namespace": "d", "uid": "uid-crew"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
        },
    )
    members = [
        claiming(name, claim).spec(schedulingGroup={"podGroupName": "crew"}).build()
        for name, claim in (("p", "c"), ("q", "other"))
    ]
    other = a_claim_object("other")
    scene.go(Seen(RESOURCE_CLAIM, decode(ResourceClaim, other)), Seen(POD_GROUP, group))
    scene.go(*(Seen(POD, pod) for pod in members))
    assert not scene.of(Bind)
    scene.deallocated()
    said = [note for note in scene.notes() if DONE in note]
    assert len(said) == 1


def test_a_node_that_returns_takes_the_pod_with_the_claim_as_it_is() -> None:
    scene = Scene(claim=of_its_own())
    scene.go(Seen(POD, claiming().build()))
    patch = scene.the(Patch)
    newer = a_claim_object("c", **allocated(), metadata={"resourceVersion": "5"})
    scene.go(
        Refused(patch.id, 409, "the object has been modified", "Conflict"),
        Seen(RESOURCE_CLAIM, decode(ResourceClaim, newer)),
        Seen(NODE, node("n1").build()),
    )
    assert "the object has been modified" in scene.notes()[0]
    scene.go(after_s=2.0)
    reserve = scene.the(Patch)
    assert reserve.body["status"]["reservedFor"][0]["uid"] == "uid-p"


def test_simulate_places_a_pod_whose_claim_is_on_a_cordoned_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The claim and its class are as a user writes them, without the API server's defaults."""
    ready = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "32"}}
    results = [{"request": "r", "driver": "gpu.x", "pool": "n1", "device": "d"}]
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    on_n1 = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    v1, dra = "v1", "resource.k8s.io/v1"
    exactly = {"deviceClassName": "gpu"}
    items: list[dict[str, Any]] = [
        an_object(v1, "Node", "n1", spec={"unschedulable": True}, status=ready),
        an_object(v1, "Node", "n2", spec={}, status=ready),
        an_object(dra, "DeviceClass", "gpu", spec={}),
        an_object(
            dra,
            "ResourceClaim",
            "c",
            spec={"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
            status={"allocation": {"devices": {"results": results}, "nodeSelector": on_n1}},
        ),
    ]
    for name in ("n1", "n2"):
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.x", "pool": pool, "nodeName": name, "devices": [{"name": "d"}]}
        items.append(an_object(dra, "ResourceSlice", name, spec=spec))
    claims = [{"name": "c", "resourceClaimName": "c"}]
    pod = an_object(
        v1, "Pod", "p", spec={"containers": [{"name": "a", "image": "x"}], "resourceClaims": claims}
    )
    cluster, manifest = tmp_path / "cluster.json", tmp_path / "pod.json"
    cluster.write_text(json.dumps({"apiVersion": v1, "kind": "List", "items": items}))
    manifest.write_text(json.dumps(pod))
    assert main(["simulate", "--dump", str(cluster), "-f", str(manifest)]) == 0
    assert "1 of 1 placed on 1 node\n  on n2 1" in capsys.readouterr().out


def an_object(api_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid-{kind}-{name}", "resourceVersion": "1"}
    if kind in ("Pod", "ResourceClaim"):
        metadata["namespace"] = "default"
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
