"""When a pod that waits for devices is worth another attempt."""

from typing import Any

import pytest
from msgspec import structs

from asched.core.framework.registrations import Hint
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod, PodStatus
from asched.core.plugins.devices.hints import OF_CLAIMS, OF_DEVICES, ClaimHints
from tests import builders
from tests.device_builders import DraWorld, a_claim_object, a_claiming_pod, allocated

WAITING = a_claim_object("c")
OTHER = a_claim_object("o")
OTHER_ALLOCATED = a_claim_object("o", **allocated())
MOVED = a_claim_object("c", metadata={"resourceVersion": "2"})
ALLOCATED = a_claim_object("c", **allocated())


@pytest.mark.parametrize(
    ("claims", "old", "new", "hint"),
    [
        ([WAITING], None, WAITING, Hint.QUEUE),
        ([WAITING, OTHER], None, OTHER, Hint.SKIP),
        ([WAITING, OTHER], OTHER_ALLOCATED, OTHER, Hint.QUEUE),
        ([WAITING, OTHER_ALLOCATED], OTHER, OTHER_ALLOCATED, Hint.SKIP),
        ([MOVED], WAITING, MOVED, Hint.SKIP),
        ([ALLOCATED], WAITING, ALLOCATED, Hint.QUEUE),
        ([OTHER], OTHER_ALLOCATED, OTHER, Hint.SKIP),  # the pod's own claim is missing
    ],
)
def test_claim_changes(
    claims: list[dict[str, Any]], old: dict[str, Any] | None, new: dict[str, Any], hint: Hint
) -> None:
    world = DraWorld(*claims)
    before = decode(ResourceClaim, old) if old else None
    after = decode(ResourceClaim, new)
    assert ClaimHints(world.cluster).claim_changed(a_claiming_pod("c"), before, after) is hint


def test_the_pod_itself_gets_its_claims() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    world = DraWorld(a_claim_object("c", metadata={"ownerReferences": [owner]}))
    hints = ClaimHints(world.cluster)
    now = a_claiming_pod("c", template=True)
    assert hints.pod_changed(now, None, now) is Hint.QUEUE
    assert hints.pod_changed(now, None, a_claiming_pod("c", name="q")) is Hint.SKIP
    missing = a_claiming_pod("x", template=True)
    assert hints.pod_changed(now, now, missing) is Hint.SKIP


def test_so_are_devices_promised_to_a_pod_whose_binding_failed() -> None:
    world = DraWorld(WAITING)
    failed = a_claiming_pod("o", name="q")
    hints = ClaimHints(world.cluster)
    ran = structs.replace(failed, status=structs.replace(failed.status, start_time="2026-01-01"))
    assert hints.pod_gone(a_claiming_pod("c"), ran, None) is Hint.SKIP, (
        "its claims say what is free"
    )
    assert hints.pod_gone(a_claiming_pod("c"), failed, None) is Hint.QUEUE, (
        "it went while it was bound"
    )
    asking, plain = (
        builders.a_pod("p").requests(**{name: "1"}).build() for name in ("example.com/gpu", "cpu")
    )
    assert hints.pod_gone(a_claiming_pod("c"), plain, None) is Hint.SKIP, "it asked for no devices"
    assert hints.pod_gone(a_claiming_pod("c"), asking, None) is Hint.QUEUE, (
        "a class may stand for these"
    )
    assert not OF_DEVICES.offered(plain, None)
    assert all(OF_DEVICES.offered(pod, None) for pod in (asking, failed))

    world.see(POD, failed)

    assert hints.pod_gone(a_claiming_pod("c"), failed, None) is Hint.QUEUE
    world.see(POD, structs.replace(failed, spec=structs.replace(failed.spec, node_name="n1")))
    assert hints.pod_gone(a_claiming_pod("c"), failed, None) is Hint.SKIP


def test_a_pod_hears_of_the_end_of_a_claim_that_an_attempt_of_its_own_left() -> None:
    hints = ClaimHints(DraWorld(WAITING).cluster)
    left = a_claim_object("left")
    owner = {"kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    left["metadata"]["ownerReferences"] = [owner]

    assert hints.claim_gone(a_claiming_pod(), decode(ResourceClaim, left), None) is Hint.QUEUE
    assert (
        hints.claim_gone(a_claiming_pod(name="q"), decode(ResourceClaim, left), None) is Hint.SKIP
    )


def owned(name: str, pod: str, **status: Any) -> dict[str, Any]:
    """A claim that was made for a pod."""
    owner = {"kind": "Pod", "name": pod, "uid": f"uid-{pod}", "controller": True}
    return a_claim_object(name, metadata={"ownerReferences": [owner]}, **status)


NAMING = a_claiming_pod("c", name="names")
UNMADE = structs.replace(a_claiming_pod("m", name="p", template=True), status=PodStatus())
MADE = a_claiming_pod("m", name="p", template=True)
SOMEBODY_ELSES = a_claiming_pod("m", name="q", template=True)


@pytest.mark.parametrize(
    ("old", "new", "concerned"),
    [
        (None, WAITING, [NAMING]),
        (WAITING, ALLOCATED, [NAMING]),
        (None, OTHER, []),
        (None, owned("m", "p"), [UNMADE, MADE]),
        (None, owned("c", "p"), [NAMING, UNMADE, MADE]),
        (OTHER_ALLOCATED, OTHER, None),
    ],
)
def test_whom_a_claim_concerns_is_told_by_its_name_and_its_owner(
    old: dict[str, Any] | None, new: dict[str, Any], concerned: list[Pod] | None
) -> None:
    """Of all others the hint says that they need not be tried."""
    world = DraWorld(WAITING, new)
    before, after = decode(ResourceClaim, old) if old else None, decode(ResourceClaim, new)
    offered = OF_CLAIMS.offered(before, after)
    if concerned is None:
        assert offered is None
        return
    assert offered is not None
    for pod in (NAMING, UNMADE, MADE, SOMEBODY_ELSES, a_claiming_pod(gpu="1")):
        is_concerned = not set(OF_CLAIMS.sought(pod) or ()).isdisjoint(offered)
        assert is_concerned == (pod in concerned)
        if not is_concerned:
            assert ClaimHints(world.cluster).claim_changed(pod, before, after) is Hint.SKIP
