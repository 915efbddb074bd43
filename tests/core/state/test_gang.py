"""A gang by whichever API tells of it: a label's group and a PodGroup of one name are two."""

from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP, POD_GROUP
from asched.core.model.workload import CoschedulingGroup, PodGroup
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Gone, Seen
from asched.core.state.gang import gang_of, kind_of, object_of

METADATA = {"name": "crew", "namespace": "default", "uid": "u"}
GANG = {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
LABELLED = "scheduling.x-k8s.io:default/crew"
UPSTREAM = decode(PodGroup, {"metadata": METADATA, **GANG})
THEIRS = decode(CoschedulingGroup, {"metadata": METADATA, "spec": {"minMember": 5}})


def test_each_api_has_its_own_groups() -> None:
    assert (kind_of("default/crew"), kind_of(LABELLED)) == (POD_GROUP, COSCHEDULING_GROUP)
    cluster = Cluster()
    cluster.apply(Seen(POD_GROUP, UPSTREAM))
    assert object_of(cluster, "default/crew") is UPSTREAM
    assert object_of(cluster, LABELLED) is None
    cluster.apply(Seen(COSCHEDULING_GROUP, THEIRS))
    assert object_of(cluster, LABELLED) is THEIRS
    upstream, theirs = gang_of(cluster, "default/crew"), gang_of(cluster, LABELLED)
    assert upstream is not None
    assert theirs is not None
    assert (upstream.min_count, theirs.min_count) == (3, 5)


def test_a_group_that_went_or_binds_nobody_together_is_no_gang() -> None:
    cluster = Cluster()
    assert gang_of(cluster, "default/crew") is None
    cluster.apply(Seen(POD_GROUP, UPSTREAM))
    cluster.apply(Seen(POD_GROUP, decode(PodGroup, {"metadata": METADATA, "spec": {}})))
    assert gang_of(cluster, "default/crew") is None
    assert object_of(cluster, "default/crew") is not None
    cluster.apply(Gone(POD_GROUP, UPSTREAM))
    assert object_of(cluster, "default/crew") is None
