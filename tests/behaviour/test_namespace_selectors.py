"""Namespace selectors of affinity terms choose by the labels that namespaces have; the machine.

kube-scheduler takes a selector of negative requirements for one of all namespaces
(kubernetes#141526).
"""

from typing import Any

import pytest

from asched.core.cluster.facts import Gone, Seen
from asched.core.framework.effects import Bind
from asched.core.model.decode import decode
from asched.core.model.kinds import NAMESPACE
from asched.core.model.workload import Namespace
from tests.builders import PodBuilder, a_node, a_pod
from tests.playbook import Play

HOST = "kubernetes.io/hostname"
NOT_PROD = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}
NO_ENV = {"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]}
EVERY: dict[str, Any] = {}
#: Namespaces by name; "unknown" is the one that no watch has shown.
LABELS = {"default": {}, "prod": {"env": "prod"}, "test": {"env": "test"}, "bare": {}}


def a_namespace(name: str, **labels: str) -> Namespace:
    return decode(Namespace, {"metadata": {"name": name, "uid": name, "labels": labels}})


def a_term(selector: dict[str, Any]) -> dict[str, Any]:
    """About web pods on the same node, in the namespaces that are selected."""
    return {
        "topologyKey": HOST,
        "labelSelector": {"matchLabels": {"app": "web"}},
        "namespaceSelector": selector,
    }


def with_term(stanza: str, selector: dict[str, Any]) -> PodBuilder:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [a_term(selector)]}
    return a_pod("new").spec(affinity={stanza: required})


def play_with(*namespaces: str) -> Play:
    """A node per namespace, with a web pod of that namespace on it."""
    play = Play(*(a_node(name).labels({HOST: name}) for name in namespaces))
    play.turn(*(Seen(NAMESPACE, a_namespace(name, **LABELS[name])) for name in LABELS))
    for name in namespaces:
        play.see(a_pod(f"web-{name}", name).labels(app="web").on(name))
    return play


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (NOT_PROD, {"test", "bare"}),
        (NO_ENV, {"bare"}),
        (EVERY, {"prod", "test", "bare", "unknown"}),
    ],
)
@pytest.mark.parametrize("there", ["prod", "test", "bare", "unknown"])
@pytest.mark.parametrize("stanza", ["podAffinity", "podAntiAffinity"])
def test_terms_are_about_pods_of_selected_namespaces(
    stanza: str, there: str, selector: dict[str, Any], selected: set[str]
) -> None:
    play = play_with(there)
    play.see(with_term(stanza, selector))
    fits = (there in selected) is (stanza == "podAffinity")
    assert [bind.node for bind in play.of(Bind)] == ([there] if fits else [])


def test_preferences_count_pods_of_selected_namespaces() -> None:
    play = play_with("prod", "bare")
    wish = {"weight": 100, "podAffinityTerm": a_term(NOT_PROD)}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}
    play.see(a_pod("new").spec(affinity={"podAntiAffinity": preferred}))
    assert play.the(Bind).node == "prod"


def test_a_namespace_that_gets_the_label_frees_the_nodes_of_its_pods() -> None:
    play = play_with("test")
    play.see(with_term("podAntiAffinity", NOT_PROD))
    assert not play.of(Bind)
    play.turn(Seen(NAMESPACE, a_namespace("test", env="prod")), after_s=20)
    assert play.the(Bind).node == "test"


def test_a_namespace_without_labels_that_appears_has_its_pods_counted() -> None:
    """Its pods may be seen before it."""
    play = play_with("unknown")
    play.see(with_term("podAffinity", NO_ENV))
    assert not play.of(Bind)
    play.turn(Seen(NAMESPACE, a_namespace("unknown")), after_s=20)
    assert play.the(Bind).node == "unknown"


def test_a_namespace_without_labels_that_goes_frees_the_nodes_of_its_pods() -> None:
    play = play_with("bare")
    play.see(with_term("podAntiAffinity", NO_ENV))
    assert not play.of(Bind)
    play.turn(Gone(NAMESPACE, a_namespace("bare")), after_s=20)
    assert play.the(Bind).node == "bare"
