"""The pods that a ProvisioningRequest is for: made of templates, or refused by name."""

from typing import Any

import pytest

from asched.core.config.args import CheckAndHoldArgs
from asched.core.cycle.request_pods import (
    Terms,
    UnusableRequestError,
    examples,
    numbered,
    terms_of,
)
from asched.core.model.decode import decode
from asched.core.model.kinds import POD_TEMPLATE
from asched.core.model.provisioning import PodTemplate, ProvisioningRequest
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Seen

ARGS = CheckAndHoldArgs(hold_s=77)
WEEK_S = 604_800


def a_request(*sets: tuple[str, int], **parameters: str) -> ProvisioningRequest:
    pod_sets = [{"podTemplateRef": {"name": name}, "count": count} for name, count in sets]
    metadata = {"name": "job", "namespace": "team", "uid": "u1"}
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"podSets": pod_sets, "parameters": parameters}
    return decode(ProvisioningRequest, {"metadata": metadata, "spec": spec})


def templates(labels: dict[str, str] | None = None, **specs: dict[str, Any]) -> Cluster:
    cluster = Cluster()
    for name, spec in specs.items():
        containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
        made = {
            "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}"},
            "template": {
                "metadata": {"labels": labels or {}},
                "spec": {"containers": containers, **spec},
            },
        }
        cluster.apply(Seen(POD_TEMPLATE, decode(PodTemplate, made)))
    return cluster


def refused(cluster: Cluster, request: ProvisioningRequest) -> UnusableRequestError:
    with pytest.raises(UnusableRequestError) as caught:
        examples(cluster, request)
    return caught.value


@pytest.mark.parametrize(
    ("given", "terms"),
    [
        ({}, Terms(77, WEEK_S, is_tried_again=True)),
        ({"holdSeconds": "1"}, Terms(1, WEEK_S, is_tried_again=True)),
        ({"holdSeconds": "77"}, Terms(77, WEEK_S, is_tried_again=True)),
        ({"ValidUntilSeconds": "604800"}, Terms(77, WEEK_S, is_tried_again=True)),
        ({"ValidUntilSeconds": "60"}, Terms(77, 60, is_tried_again=True)),
        ({"noRetry": "true"}, Terms(77, WEEK_S, is_tried_again=False)),
        ({"noRetry": "false"}, Terms(77, WEEK_S, is_tried_again=True)),
    ],
)
def test_parameters_say_how_long_and_how_often(given: dict[str, str], terms: Terms) -> None:
    assert terms_of(a_request(**given), ARGS) == terms


@pytest.mark.parametrize(
    "given",
    [
        {"holdSeconds": "0"},
        {"holdSeconds": "78"},
        {"holdSeconds": "-5"},
        {"holdSeconds": "1.5"},
        {"holdSeconds": "٣"},
        {"holdSeconds": "9" * 5_000},
        {"holdSeconds": "0" * 9 + "9" * 200},
        {"ValidUntilSeconds": "0" * 9 + "9" * 200},
        {"ValidUntilSeconds": "604801"},
        {"noRetry": "True"},
        {"other": "1"},
    ],
)
def test_parameters_out_of_bounds_are_refused_by_name(given: dict[str, str]) -> None:
    with pytest.raises(UnusableRequestError, match=next(iter(given))):
        terms_of(a_request(**given), ARGS)


def test_each_set_has_an_example_and_its_count() -> None:
    cluster = templates(small={}, large={"priority": 5})
    (small, two), (large, three) = examples(cluster, a_request(("small", 2), ("large", 3)))
    assert (two, three) == (2, 3)
    assert (small.pod.metadata.namespace, small.pod.metadata.name) == ("team", "job-0")
    assert (small.pod.uid, large.pod.uid) == ("u1/0", "u1/1")
    assert small.pod.priority == large.pod.priority == -(1 << 31), "no admission has checked it"
    assert small.pod.spec.scheduler_name == "default-scheduler"
    assert small.cls.accounted == {"cpu": 1000}
    assert small.pod.metadata.creation_timestamp == "2026-01-01T00:00:00Z"


def test_a_template_may_say_nothing_of_its_pods() -> None:
    bare = {"metadata": {"name": "bare", "namespace": "team", "uid": "u"}, "template": {"spec": {}}}
    cluster = Cluster()
    cluster.apply(Seen(POD_TEMPLATE, decode(PodTemplate, bare)))
    ((info, count),) = examples(cluster, a_request(("bare", 2)))
    assert (info.pod.metadata.labels, count) == (None, 2)


def test_no_gate_and_no_group_keeps_them() -> None:
    labels = {"scheduling.x-k8s.io/pod-group": "crew", "app": "web"}
    gated = {"schedulingGates": [{"name": "g"}], "schedulingGroup": {"podGroupName": "crew"}}
    ((info, _),) = examples(templates(labels, worker=gated), a_request(("worker", 1)))
    assert info.pod.metadata.labels == {"app": "web"}
    assert not info.pod.spec.scheduling_gates
    assert info.pod.spec.scheduling_group is None


def test_pods_of_a_set_differ_in_name_and_uid_alone() -> None:
    request = a_request(("worker", 2))
    ((like, _),) = examples(templates(worker={}), request)
    made = numbered(like, request, 3, 14)
    assert (made.pod.metadata.name, made.pod.uid) == ("job-3-14", "u1/3-14")
    assert made.pod.metadata.namespace == "team"
    assert made.cls is like.cls
    assert made.pod.spec == like.pod.spec


def test_a_template_that_is_missing_is_what_it_lacks() -> None:
    error = refused(templates(worker={}), a_request(("worker", 1), ("absent", 1)))
    assert str(error) == 'podtemplates "absent" not found'
    assert error.lacks == "team/absent"


@pytest.mark.parametrize(
    ("sets", "word"),
    [
        ([], "at least"),
        ([("worker", 1), ("worker", 0)], "at least"),
        ([("worker", 2_500), ("worker", 2_501)], "5001 pods"),
        ([("worker", 1), ("foreign", 1)], "several schedulers: another, default-scheduler"),
        ([("placed", 1)], '"placed" names a node'),
        ([("claiming", 1)], '"claiming" claims devices'),
        ([("plain", 1), ("ephemeral", 1)], '"ephemeral" has generic ephemeral volumes'),
    ],
)
def test_what_cannot_be_held_is_refused_for_good(sets: list[tuple[str, int]], word: str) -> None:
    claim = {"volumeClaimTemplate": {"spec": {}}}
    cluster = templates(
        worker={},
        plain={"volumes": [{"name": "a", "emptyDir": {}}]},
        foreign={"schedulerName": "another"},
        placed={"nodeName": "n1"},
        claiming={"resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}]},
        ephemeral={"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "ephemeral": claim}]},
    )
    error = refused(cluster, a_request(*sets))
    assert word in str(error)
    assert error.lacks == ""


def test_as_many_as_may_be_are_held() -> None:
    found = examples(templates(worker={}), a_request(("worker", 4_999), ("worker", 1)))
    assert sum(count for _, count in found) == 5_000
