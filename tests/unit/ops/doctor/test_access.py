"""Which flow schema catches a request, and rights in words."""

from typing import Any

import pytest

from asched.ops.doctor.access import match
from asched.ops.doctor.notes import Identity
from asched.ops.doctor.permissions import Right
from tests.deploy.manifests import DEPLOY, documents

FLOW = documents(DEPLOY / "base/flow.yaml")
OURS = Identity.named("system:serviceaccount:asched-system:asched")
BIND = Right("create", "", "pods/binding", "default")
RENEW = Right("update", "coordination.k8s.io", "leases", "asched-system")


def a_schema(
    name: str, precedence: int | None, subject: dict[str, Any], **rule: Any
) -> dict[str, Any]:
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
    spec: dict[str, Any] = {
        "priorityLevelConfiguration": {"name": "some"},
        "rules": [{"subjects": [subject], "resourceRules": [{**everything, **rule}]}],
    }
    if precedence is not None:
        spec["matchingPrecedence"] = precedence
    return {"metadata": {"name": name}, "spec": spec}


def an_account(namespace: str, name: str) -> dict[str, Any]:
    return {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}


ANYBODY = {"kind": "Group", "group": {"name": "*"}}


def caught(schemas: list[dict[str, Any]], identity: Identity, right: Right) -> str:
    found = match(schemas, identity, right)
    return found["metadata"]["name"] if found is not None else ""


@pytest.mark.parametrize(
    ("right", "name"),
    [
        (BIND, "asched-bindings"),
        (RENEW, "asched-leader-election"),
        (Right("update", "coordination.k8s.io", "leases", "elsewhere"), "asched"),
        (Right("watch", "", "nodes"), "asched"),
        (Right("patch", "", "pods/status", "default"), "asched"),
    ],
)
def test_our_own_schemas_part_our_requests(right: Right, name: str) -> None:
    assert caught(FLOW, OURS, right) == name
    assert caught(FLOW, Identity.named("system:serviceaccount:asched-system:other"), right) == ""


def test_the_lowest_precedence_wins_then_the_name() -> None:
    schemas = [a_schema("b", 5, ANYBODY), a_schema("a", 5, ANYBODY), a_schema("c", 9, ANYBODY)]
    assert caught(schemas, OURS, BIND) == "a"
    # 1000 where none is written.
    assert caught([a_schema("d", None, ANYBODY), a_schema("e", 1001, ANYBODY)], OURS, BIND) == "d"


@pytest.mark.parametrize(
    ("subject", "matches"),
    [
        ({"kind": "User", "user": {"name": OURS.user}}, True),
        ({"kind": "User", "user": {"name": "*"}}, True),
        ({"kind": "User", "user": {"name": "system:kube-scheduler"}}, False),
        ({"kind": "Group", "group": {"name": "system:serviceaccounts:asched-system"}}, True),
        ({"kind": "Group", "group": {"name": "system:masters"}}, False),
        (an_account("asched-system", "*"), True),
        (an_account("asched-system", "asched"), True),
        (an_account("asched-system", "other"), False),
        (an_account("other", "*"), False),
    ],
)
def test_subjects(subject: dict[str, Any], matches: bool) -> None:
    assert bool(caught([a_schema("s", 1, subject)], OURS, BIND)) is matches


@pytest.mark.parametrize(
    ("rule", "right", "matches"),
    [
        ({"verbs": ["get"]}, BIND, False),
        ({"resources": ["pods"]}, BIND, False),
        ({"resources": ["pods/binding"]}, BIND, True),
        ({"apiGroups": ["apps"]}, BIND, False),
        ({"namespaces": ["default"]}, BIND, True),
        ({"namespaces": ["kube-system"]}, BIND, False),
        ({}, Right("watch", "", "nodes"), False),
        ({"clusterScope": True}, Right("watch", "", "nodes"), True),
    ],
)
def test_rules(rule: dict[str, Any], right: Right, matches: bool) -> None:
    assert bool(caught([a_schema("s", 1, ANYBODY, **rule)], OURS, right)) is matches


def test_the_groups_of_an_account_are_the_servers_own() -> None:
    assert OURS.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:asched-system",
        "system:authenticated",
    )
    assert Identity.named("bob", ("ops",)).groups == ("ops", "system:authenticated")
    assert Identity.named("bob").service_account == ("", "")
