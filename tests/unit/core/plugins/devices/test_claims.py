"""The claims of a pod: found, missing, or somebody else's."""

from typing import Any

import pytest

from asched.core.model.decode import decode
from asched.core.model.pod import Pod
from asched.core.plugins.devices.claims import ClaimError, claims_of
from tests.device_builders import DraWorld, a_claim_object, a_claiming_pod


def owned_by(uid: str) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    return {"metadata": {"ownerReferences": [owner]}}


@pytest.mark.parametrize(
    ("claim", "pod", "message"),
    [
        (None, a_claiming_pod("x"), 'could not find ResourceClaim "d/x"'),
        (
            a_claim_object("x", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            a_claiming_pod("x"),
            'resourceclaim "x" is being deleted',
        ),
        (
            a_claim_object("x", **owned_by("other")),
            a_claiming_pod("x", template=True),
            "ResourceClaim d/x was not created for Pod d/p (Pod is not owner)",
        ),
        (
            None,
            decode(
                Pod,
                {
                    "metadata": {"name": "p", "namespace": "d"},
                    "spec": {"resourceClaims": [{"name": "x", "resourceClaimTemplateName": "t"}]},
                },
            ),
            'pod "d/p": ResourceClaim not created yet',
        ),
        (
            None,
            decode(
                Pod,
                {
                    "metadata": {"name": "p", "namespace": "d"},
                    "spec": {"resourceClaims": [{"name": "x"}]},
                },
            ),
            'pod "d/p", spec.resourceClaim "x": none of the supported fields are set',
        ),
    ],
)
def test_claims_that_cannot_be_used(claim: dict[str, Any] | None, pod: Pod, message: str) -> None:
    world = DraWorld(*([claim] if claim else []))
    with pytest.raises(ClaimError) as raised:
        claims_of(pod, world.cluster)
    assert str(raised.value) == message
    assert world.plugin.pre_enqueue(pod).reasons == (message,)
