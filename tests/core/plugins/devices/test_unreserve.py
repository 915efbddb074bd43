"""What a pod that is not bound after all leaves behind at the API: nothing that binds others."""

from typing import Any

import msgspec

from asched.core.framework.effects import Delete, Patch
from asched.core.framework.status import Status
from asched.core.model.kinds import RESOURCE_CLAIM
from asched.core.state.facts import Done, Refused, Unknown
from tests.core.plugins.dra_world import DraWorld, a_claim_object, a_pod, allocated

REF = {"resource": "pods", "name": "p", "uid": "uid-p"}
OTHER = {"resource": "pods", "name": "q", "uid": "uid-q"}


def reserved(name: str = "c", version: str = "3", *refs: dict[str, str]) -> dict[str, Any]:
    metadata = {"resourceVersion": version}
    status = allocated(reservedFor=list(refs or (REF,)))
    return a_claim_object(name, metadata=metadata, **status)


def unreserve(world: DraWorld, *claims: str, answers: Any) -> tuple[list[Any], Status | None]:
    """The effects and the end of Unreserve; `answers` is called with each effect."""
    steps = world.plugin.unreserve(world.info(a_pod(*claims)), "n1")
    if steps is None:
        return [], None
    effects, answer = [], None
    while True:
        try:
            effects.append(steps.send(answer))  # type: ignore[arg-type]
        except StopIteration as end:
            return effects, end.value
        answer = answers(effects[-1])


def test_the_pod_is_taken_out_and_nobody_else_is() -> None:
    world = DraWorld(reserved("c", "3", OTHER, REF))

    effects, status = unreserve(world, "c", answers=lambda _: Done(0, reserved("c", "4", OTHER)))

    (patch,) = effects
    assert isinstance(patch, Patch)
    assert patch.content_type == "application/strategic-merge-patch+json"
    assert (patch.name, patch.subresource) == ("c", "status")
    assert patch.body == {
        "metadata": {"uid": "uid-c"},
        "status": {"reservedFor": [{"$patch": "delete", "uid": "uid-p"}]},
    }
    assert status is not None
    assert status.is_success
    known = world.cluster.get(RESOURCE_CLAIM, "d/c")
    assert [ref.uid for ref in known.status.reserved_for] == ["uid-q"]
    assert known.status.allocation is not None


def test_it_is_asked_once() -> None:
    world = DraWorld(reserved())
    answers = {"c": a_claim_object(metadata={"resourceVersion": "4"}, **allocated())}

    first, _ = unreserve(world, "c", answers=lambda patch: Done(0, answers[patch.name]))
    second, _ = unreserve(world, "c", answers=lambda patch: Done(0, answers[patch.name]))

    assert (len(first), len(second)) == (1, 0)


def test_claims_of_others_missing_ones_and_pods_without_claims_cost_nothing() -> None:
    world = DraWorld(reserved("theirs", "3", OTHER), a_claim_object("free"))

    assert unreserve(world, "theirs", "free", "missing", answers=None) == ([], None)
    assert unreserve(world, answers=None) == ([], None)


def test_a_failure_is_told_and_the_other_claims_are_given_back() -> None:
    world = DraWorld(reserved("c"), reserved("e"))
    answers = {"c": Refused(0, 403, "forbidden"), "e": Unknown(0, "no answer")}

    effects, status = unreserve(world, "c", "e", answers=lambda patch: answers[patch.name])

    assert [patch.name for patch in effects] == ["c", "e"]
    assert status is not None
    assert status.message == "unreserve claim d/c: forbidden; unreserve claim d/e: no answer"
    assert world.cluster.get(RESOURCE_CLAIM, "d/c").status.reserved_for is not None


def test_a_pod_that_was_placed_by_somebody_else_keeps_its_claims() -> None:
    world = DraWorld(reserved())
    pod = a_pod("c")
    info = world.info(pod)
    spec = msgspec.structs.replace(pod.spec, node_name="n2")
    world.info(msgspec.structs.replace(pod, spec=spec))

    assert world.plugin.unreserve(info, "n1") is None


def a_made_claim(**metadata: Any) -> dict[str, Any]:
    """A claim made for the extended resources of the pod p."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    marks = {"resource.kubernetes.io/extended-resource-claim": "true"}
    told = {"annotations": marks, "ownerReferences": [owner], **metadata}
    return a_claim_object("x", metadata=told, **allocated(reservedFor=[REF]))


def test_a_claim_made_for_extended_resources_is_deleted() -> None:
    world = DraWorld(a_made_claim(finalizers=["resource.kubernetes.io/delete-protection"]))
    steps = world.plugin.unreserve(world.info(a_pod(gpu="1")), "n1")

    assert steps is not None
    patch = next(steps)
    assert isinstance(patch, Patch)
    assert patch.body["metadata"]["finalizers"] is None
    delete = steps.send(Done(0, a_claim_object("x")))
    assert isinstance(delete, Delete)
    assert (delete.name, delete.uid) == ("x", "uid-x")
