"""The kinds as a table: paths as the API serves them, and each found again by its resource."""

from asched.core.model.kinds import (
    BY_PLURAL,
    BY_RESOURCE,
    COSCHEDULING_GROUP,
    KINDS,
    POD_GROUP,
)


def test_no_two_kinds_have_one_resource() -> None:
    assert len({kind.resource for kind in KINDS}) == len(KINDS)
    assert all(BY_RESOURCE[kind.resource] is kind for kind in KINDS)
    assert BY_RESOURCE[COSCHEDULING_GROUP.resource] is COSCHEDULING_GROUP
    assert BY_PLURAL["podgroups"] is POD_GROUP
