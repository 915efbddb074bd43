"""Which waiting pods may share the answer of a hint."""

from asched.core.state.cluster import Cluster
from asched.host.assemble import waiting_key
from tests.builders import a_pod

CLAIM = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]


def test_equal_pods_share_and_different_ones_do_not() -> None:
    cluster = Cluster()
    one, two = a_pod("a").build(), a_pod("b").build()
    other = a_pod("c").requests(cpu="3").build()
    assert waiting_key(cluster, one) == waiting_key(cluster, two) != waiting_key(cluster, other)


def test_pods_whose_claims_are_made_from_a_template_share_nothing() -> None:
    """1. Two equal pods wait for claims. 2. One claim is made. 3. That is news for one of them."""
    cluster = Cluster()
    one = a_pod("a").spec(resourceClaims=CLAIM).build()
    two = a_pod("b").spec(resourceClaims=CLAIM).build()
    assert cluster.classes.class_of(one) is cluster.classes.class_of(two)
    assert waiting_key(cluster, one) != waiting_key(cluster, two)


def test_pods_of_different_groups_are_told_apart_though_they_are_of_one_class() -> None:
    """What completes the gang of one is nothing to the other."""
    cluster = Cluster()
    one, two = (
        a_pod(name).spec(schedulingGroup={"podGroupName": group}).build()
        for name, group in (("one", "a"), ("two", "b"))
    )
    assert cluster.classes.class_of(one) is cluster.classes.class_of(two)
    assert waiting_key(cluster, one) != waiting_key(cluster, two)
