"""`rbac_rules` of a plugin, as single rights."""

from typing import Any

import pytest

from asched.ops.doctor.permissions import Right, RulesError, rights_of


def declaring(rules: Any) -> type[Any]:
    return type("Mine", (), {"rbac_rules": rules})


def test_each_combination_of_a_rule_is_a_right() -> None:
    rule = {
        "apiGroups": ["a", ""],
        "resources": ["x/status"],
        "verbs": ["get", "patch"],
        "resourceNames": ["n"],
        "namespace": "ns",
    }
    assert set(rights_of(declaring([rule]))) == {
        Right(verb, group, "x/status", "ns", "n")
        for verb in ("get", "patch")
        for group in ("a", "")
    }
    plain = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    assert rights_of(declaring((plain,))) == (Right("get", "", "pods"),)


def test_nothing_declared_is_nothing_needed() -> None:
    assert rights_of(int) == ()
    assert rights_of(declaring([])) == ()


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ({"verbs": ["get"]}, "rbac_rules must be a list of rules, as in a ClusterRole"),
        (["get pods"], "rbac_rules[0] must be a mapping"),
        (
            [{"apiGroups": [""], "resources": ["pods"]}],
            "rbac_rules[0].verbs must be a non-empty list",
        ),
        (
            [{"apiGroups": [""], "resources": "pods", "verbs": ["get"]}],
            "rbac_rules[0].resources must be a non-empty list of strings",
        ),
        (
            [{"apiGroup": [""], "resources": ["pods"], "verbs": ["get"]}],
            "rbac_rules[0] has no field 'apiGroup' (did you mean \"apiGroups\"?)",
        ),
        (
            [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "namespace": 5}],
            "rbac_rules[0].namespace must be a string",
        ),
    ],
)
def test_what_is_no_rule_is_one_line(rules: Any, text: str) -> None:
    with pytest.raises(RulesError) as caught:
        rights_of(declaring(rules))
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)
