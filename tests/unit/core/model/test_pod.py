"""Pods: what makes two of them equal to every rule."""

from typing import Any

import pytest

from asched.core.model.pod import spec_key
from tests.builders import PodBuilder, a_pod


def key(pod: PodBuilder) -> bytes:
    return spec_key(pod.build())


def volumes(*listed: dict[str, Any]) -> dict[str, Any]:
    return {"volumes": list(listed)}


EPHEMERAL = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}


@pytest.mark.parametrize(
    "other",
    [
        a_pod("other"),
        a_pod().on("n1"),
        a_pod().gated("g"),
        a_pod().spec(schedulerName="x"),
        a_pod().status(nominatedNodeName="n1"),
        a_pod().spec(schedulingGroup={"podGroupName": "crew"}),
        a_pod().spec(**volumes({"name": "token", "projected": {"sources": []}})),
    ],
)
def test_what_no_rule_reads_makes_no_difference(other: PodBuilder) -> None:
    assert key(other) == key(a_pod())


@pytest.mark.parametrize(
    "other",
    [
        a_pod("web", "another"),
        a_pod().labels(a="b"),
        a_pod().priority(1),
        a_pod().spec(preemptionPolicy="Never"),
        a_pod().selects(zone="a"),
        a_pod().tolerates("x"),
        a_pod().requests(cpu="1"),
        a_pod().init(),
        a_pod().spec(overhead={"cpu": "1"}),
        a_pod().spec(hostNetwork=True),
        a_pod().spec(hostUsers=False),
        a_pod().spec(resourceClaims=[{"name": "gpu"}]),
        a_pod().spec(topologySpreadConstraints=[{"topologyKey": "zone"}]),
        a_pod().spec(affinity={"podAffinity": {}}),
        a_pod().spec(resources={"requests": {"cpu": "1"}}),
        a_pod().spec(**volumes({"name": "v", "persistentVolumeClaim": {"claimName": "c"}})),
        a_pod().metadata(ownerReferences=[{"kind": "ReplicaSet", "uid": "u", "controller": True}]),
    ],
)
def test_what_a_rule_reads_makes_one(other: PodBuilder) -> None:
    assert key(other) != key(a_pod())


def test_volumes_that_are_named_after_the_pod_tell_pods_apart() -> None:
    claim = {"name": "c", "persistentVolumeClaim": {"claimName": "c"}}

    def keys(*listed: dict[str, Any]) -> set[bytes]:
        return {key(a_pod(name).spec(**volumes(*listed))) for name in "ab"}

    assert len(keys(EPHEMERAL)) == len(keys(claim, EPHEMERAL)) == len(keys(EPHEMERAL, claim)) == 2
    assert len(keys(claim)) == 1
