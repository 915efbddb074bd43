"""Stored and assumed versions of objects, and what tells of their changes."""

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    RESOURCE_CLAIM,
)


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
    assert cluster.stored(RESOURCE_CLAIM, "d/c").metadata.resource_version == "3"
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
