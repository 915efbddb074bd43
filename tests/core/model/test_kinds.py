"""The kinds as a table: paths as the API serves them, and each found again by its resource."""

from asched.core.model.kinds import (
    BY_PLURAL,
    BY_RESOURCE,
    COSCHEDULING_GROUP,
    KINDS,
    NODE,
    POD,
    POD_GROUP,
    REPLICA_SET,
)
from asched.core.model.meta import ObjectMeta


def test_paths_are_the_api_s() -> None:
    assert POD.path == "/api/v1/pods"
    assert POD.object_path("team", "web") == "/api/v1/namespaces/team/pods/web"
    assert NODE.object_path("", "n1") == "/api/v1/nodes/n1"
    assert REPLICA_SET.path == "/apis/apps/v1/replicasets"
    assert REPLICA_SET.object_path("team", "web") == "/apis/apps/v1/namespaces/team/replicasets/web"


def test_a_reference_names_this_version() -> None:
    found = POD.reference(ObjectMeta(name="web", namespace="team", uid="u", resource_version="5"))
    assert (found.api_version, found.kind, found.namespace, found.name) == (
        "v1",
        "Pod",
        "team",
        "web",
    )
    assert (found.uid, found.resource_version) == ("u", "5")


def test_no_two_kinds_have_one_resource() -> None:
    assert len({kind.resource for kind in KINDS}) == len(KINDS)
    assert all(BY_RESOURCE[kind.resource] is kind for kind in KINDS)
    assert BY_RESOURCE[COSCHEDULING_GROUP.resource] is COSCHEDULING_GROUP
    assert BY_PLURAL["podgroups"] is POD_GROUP
