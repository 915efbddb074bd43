"""Stored and assumed versions of objects, and what tells of their changes."""

from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    COSCHEDULING_GROUP,
    POD_GROUP,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
)
from asched.core.model.workload import CoschedulingGroup, PodGroup
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Gone, Seen
from asched.core.state.pod_groups import Gang


def a_claim(version: str, uid: str = "u") -> ResourceClaim:
    metadata = {"name": "c", "namespace": "d", "uid": uid, "resourceVersion": version}
    return decode(ResourceClaim, {"metadata": metadata})


def version_of(cluster: Cluster) -> str | None:
    found = cluster.get(RESOURCE_CLAIM, "d/c")
    return found.metadata.resource_version if found is not None else None


def test_an_assumed_version_stands_until_a_newer_one_is_seen() -> None:
    cluster = Cluster()
    cluster.apply(Seen(RESOURCE_CLAIM, a_claim("1")))
    cluster.assume_object(RESOURCE_CLAIM, a_claim("5"))
    cluster.apply(Seen(RESOURCE_CLAIM, a_claim("3")))
    assert version_of(cluster) == "5"
    assert cluster.told(RESOURCE_CLAIM, "d/c").metadata.resource_version == "3"
    cluster.apply(Seen(RESOURCE_CLAIM, a_claim("6")))
    assert version_of(cluster) == "6"


def test_an_answer_that_the_watch_has_overtaken_is_not_assumed() -> None:
    """1. Our write is stored. 2. Somebody changes it. 3. The watch tells. 4. Our answer comes."""
    cluster = Cluster()
    cluster.apply(Seen(RESOURCE_CLAIM, a_claim("6")))
    cluster.assume_object(RESOURCE_CLAIM, a_claim("5"))
    assert version_of(cluster) == "6"
    cluster.assume_object(RESOURCE_CLAIM, a_claim("7", uid="gone"))
    assert version_of(cluster) == "6"


def test_an_assumed_version_can_be_taken_back() -> None:
    cluster = Cluster()
    cluster.apply(Seen(RESOURCE_CLAIM, a_claim("1")))
    cluster.assume_object(RESOURCE_CLAIM, a_claim("5"))
    assert cluster.all(RESOURCE_CLAIM)["d/c"].metadata.resource_version == "5"
    cluster.restore_object(RESOURCE_CLAIM, "d/c")
    assert version_of(cluster) == "1"


def test_an_object_made_anew_ends_what_was_assumed_of_the_old_one() -> None:
    cluster = Cluster()
    cluster.assume_object(RESOURCE_CLAIM, a_claim("9"))
    cluster.apply(Seen(RESOURCE_CLAIM, a_claim("2", uid="other")))
    assert version_of(cluster) == "2"


def test_what_goes_takes_its_assumed_version_along() -> None:
    cluster = Cluster()
    cluster.apply(Seen(RESOURCE_CLAIM, a_claim("1")))
    cluster.assume_object(RESOURCE_CLAIM, a_claim("5"))
    cluster.apply(Gone(RESOURCE_CLAIM, a_claim("1")))
    assert version_of(cluster) is None


def test_every_change_is_told() -> None:
    cluster = Cluster()
    cursor, epoch = cluster.object_log.end, cluster.epoch
    cluster.apply(Seen(RESOURCE_CLAIM, a_claim("1")))
    cluster.assume_object(RESOURCE_CLAIM, a_claim("2"))
    cluster.restore_object(RESOURCE_CLAIM, "d/c")
    cluster.restore_object(RESOURCE_CLAIM, "d/c")  # nothing left to take back
    assert cluster.object_log.since(cursor) == [("resource.k8s.io/ResourceClaim", "d/c")] * 3
    assert (cluster.epoch, cluster.epoch_of(RESOURCE_CLAIM)) == (epoch + 3, 3)
    assert cluster.epoch_of(RESOURCE_SLICE) == 0


def test_companions_are_made_once() -> None:
    made = []

    def make(cluster: Cluster) -> list[Cluster]:
        made.append(cluster)
        return made

    cluster = Cluster()
    assert cluster.singleton(make) is cluster.singleton(make)
    assert made == [cluster]


def test_kinds_of_one_plural_are_told_apart() -> None:
    cluster = Cluster()
    metadata = {"name": "g", "namespace": "d", "uid": "u"}
    upstream = decode(PodGroup, {"metadata": metadata})
    ours = decode(CoschedulingGroup, {"metadata": metadata, "spec": {"minMember": 2}})

    cluster.apply(Seen(POD_GROUP, upstream))
    cluster.apply(Seen(COSCHEDULING_GROUP, ours))
    assert cluster.get(POD_GROUP, "d/g") is upstream
    assert cluster.get(COSCHEDULING_GROUP, "d/g") is ours
    cluster.apply(Gone(POD_GROUP, upstream))

    assert cluster.get(POD_GROUP, "d/g") is None
    assert cluster.get(COSCHEDULING_GROUP, "d/g") is ours


def test_what_is_written_of_a_groups_pods_makes_nobody_judge_again() -> None:
    """Each attempt at a group ends in its status: answers about all pods would be made anew."""
    cluster = Cluster()
    metadata = {"name": "g", "namespace": "d", "uid": "u"}
    group = {"metadata": metadata, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    cluster.apply(Seen(POD_GROUP, decode(PodGroup, group)))
    epoch, logged, noted = cluster.epoch, cluster.object_log.end, cluster.journal.end
    told = {**group, "metadata": {**metadata, "resourceVersion": "2"}}
    told["status"] = {"conditions": [{"type": "PodGroupScheduled", "status": "True"}]}
    assert cluster.apply(Seen(POD_GROUP, decode(PodGroup, told))) == []
    assert (cluster.epoch, cluster.object_log.end) == (epoch, logged)
    assert (cluster.epoch_of(POD_GROUP), cluster.journal.end) == (1, noted)
    assert cluster.get(POD_GROUP, "d/g").status.conditions
    less = {**told, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}
    assert len(cluster.apply(Seen(POD_GROUP, decode(PodGroup, less)))) == 1
    assert cluster.epoch == epoch + 1
    assert cluster.pod_groups.gangs["d/g"] == Gang(1)
