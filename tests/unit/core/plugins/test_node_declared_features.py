"""NodeDeclaredFeatures: what a spec implies, and where it is declared."""

import pytest

from asched.core.framework.registrations import Hint
from asched.core.framework.status import Code
from asched.core.plugins.node_declared_features import NodeDeclaredFeatures, required_features
from tests.builders import PodBuilder, a_cluster, a_node, a_pod, all_rows, pending

RESTART, USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"


def restarting(*, in_init: bool = False) -> PodBuilder:
    pod = a_pod().init()
    chosen = pod.json["spec"]["initContainers"][0] if in_init else pod.first
    chosen["restartPolicyRules"] = [{"action": "Restart"}, {"action": "RestartAllContainers"}]
    return pod


@pytest.mark.parametrize(
    ("name", "pod", "features"),
    [
        ("nothing by default", a_pod(), ""),
        ("a rule that restarts all", restarting(), RESTART),
        ("in an init container as well", restarting(in_init=True), RESTART),
        (
            "host network with user namespaces",
            a_pod().spec(hostNetwork=True, hostUsers=False),
            USERS,
        ),
        ("host users not told", a_pod().spec(hostNetwork=True), ""),
        ("host users wanted", a_pod().spec(hostNetwork=True, hostUsers=True), ""),
        ("no host network", a_pod().spec(hostUsers=False), ""),
    ],
)
def test_what_a_spec_implies(name: str, pod: PodBuilder, features: str) -> None:
    assert required_features(pod.build()) == set(features.split())


def test_filter() -> None:
    both = a_node("both").features(f"{RESTART} {USERS} Unknown")
    cluster = a_cluster(a_node("none"), a_node("one").features(RESTART), both)
    plugin = NodeDeclaredFeatures()
    greedy = pending(cluster, restarting().spec(hostNetwork=True, hostUsers=False))

    assert plugin.filter(greedy, all_rows(cluster), None).tolist() == [1, 1, 0]
    assert plugin.filter(pending(cluster, restarting()), all_rows(cluster), None).tolist() == [
        1,
        0,
        0,
    ]
    assert plugin.pre_filter(pending(cluster, a_pod())).status.code is Code.SKIP
    assert plugin.explain(greedy, 1).message == "node(s) didn't match Pod's required features"


def test_hints() -> None:
    node, pod = (registration.hint for registration in NodeDeclaredFeatures().registrations())
    assert node is not None
    assert pod is not None
    needy, plain = restarting().build(), a_pod().build()
    bare, able = a_node("n1").build(), a_node("n1").features(RESTART).build()

    assert node(needy, None, bare) is Hint.QUEUE
    assert node(needy, bare, able) is Hint.QUEUE
    assert node(needy, able, bare) is Hint.QUEUE
    assert node(needy, able, able) is Hint.SKIP
    assert pod(needy, needy, plain) is Hint.QUEUE
    assert pod(needy, needy, needy) is Hint.SKIP
    assert pod(a_pod("other").build(), needy, plain) is Hint.SKIP
