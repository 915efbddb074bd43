"""What selectors seek and labels offer."""

import pytest

from asched.core.model.selector import Requirement, Selector
from asched.core.plugins.label_keys import offered_labels, sought_labels
from tests.builders import a_pod


def _in(key: str, *values: str) -> Requirement:
    return Requirement(key, "In", frozenset(values))


@pytest.mark.parametrize(
    ("namespaces", "requirements", "sought"),
    [
        (("a",), (_in("app", "x"),), {("a", "app", "x")}),
        (("a", "b"), (_in("app", "x"),), {("a", "app", "x"), ("b", "app", "x")}),
        (None, (_in("app", "x", "y"), _in("tier", "z")), {(None, "app", "x"), (None, "app", "y")}),
        (("a",), (Requirement("app", "Exists", frozenset()), _in("t", "z")), {("a", "t", "z")}),
        (("a",), (Requirement("app", "Exists", frozenset()),), None),
        (("a",), (), None),
    ],
)
def test_a_selector_seeks(namespaces, requirements, sought) -> None:
    found = sought_labels(namespaces, Selector(requirements))
    assert (None if found is None else set(found)) == sought


def test_no_selector_seeks_nothing() -> None:
    assert sought_labels(None, None) == ()


def test_a_pod_offers_its_labels_in_its_namespace_and_in_whichever() -> None:
    pod = a_pod("p", "red").labels(app="x", tier="y").build()
    assert set(offered_labels(pod)) == {
        (None, "app", "x"),
        ("red", "app", "x"),
        (None, "tier", "y"),
        ("red", "tier", "y"),
    }
