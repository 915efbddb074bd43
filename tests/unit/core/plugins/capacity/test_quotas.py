"""ElasticQuotas as numbers: what is missing in a list, which quota counts, and who borrows."""

from typing import Any

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import ELASTIC_QUOTA
from asched.core.model.quotas import ElasticQuota
from asched.core.plugins.capacity.quotas import Quota, Quotas, exceeds, exceeds_max
from tests.builders import a_cluster, a_node

GPU = "example.com/gpu"


@pytest.mark.parametrize(
    ("used", "more", "limit", "over", "over_max"),
    [
        ({"cpu": 1}, {"cpu": 1}, {"cpu": 2}, False, False),
        ({"cpu": 2}, {"cpu": 1}, {"cpu": 2}, True, True),
        ({}, {"cpu": 1}, {}, True, True),
        ({"memory": 1}, {}, {"cpu": 2}, True, True),
        ({}, {GPU: 1}, {"cpu": 2}, True, False),
        ({GPU: 1}, {GPU: 1}, {GPU: 1}, True, True),
        ({GPU: 9}, {"cpu": 1}, {"cpu": 1}, False, False),
        ({}, {}, {}, False, False),
    ],
)
def test_what_a_limit_does_not_name(
    used: Any, more: Any, limit: Any, over: bool, over_max: bool
) -> None:
    assert exceeds(used, more, limit) == over
    assert exceeds_max(used, more, limit) == over_max
    assert not exceeds_max(used, more, None)


def quota(namespace: str, name: str = "quota", **spec: Any) -> Seen:
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"}
    return Seen(ELASTIC_QUOTA, decode(ElasticQuota, {"metadata": metadata, "spec": spec}))


def quotas(*facts: Seen) -> tuple[Quotas, Cluster]:
    cluster = a_cluster(a_node("n1"))
    for fact in facts:
        cluster.apply(fact)
    return cluster.singleton(Quotas), cluster


def test_what_is_not_given_or_cannot_be_read() -> None:
    found, _ = quotas(quota("a"), quota("b", min={"cpu": "lots"}, max={}))
    assert found.of("a") == Quota("a", {}, None)
    assert found.of("b") == Quota("b", {"cpu": 0}, {})


def test_a_namespace_has_one_by_name_the_first_and_all_are_guaranteed_together() -> None:
    found, cluster = quotas(
        quota("a", "second", min={"cpu": "9"}),
        quota("a", "first", min={"cpu": "1"}),
        quota("b", min={"cpu": "2", GPU: "1"}),
    )
    assert [one.namespace for one in found] == ["a", "b"]
    assert found.guaranteed == {"cpu": 3000, GPU: 1}
    gone = quota("b", min={"cpu": "2", GPU: "1"})
    cluster.apply(Gone(ELASTIC_QUOTA, gone.obj))
    assert found.guaranteed == {"cpu": 1000}
