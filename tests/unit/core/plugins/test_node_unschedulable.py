"""NodeUnschedulable: cordons and the toleration that goes with them."""

import pytest

from asched.core.framework.registrations import Hint
from asched.core.plugins.node_unschedulable import NodeUnschedulable
from tests.builders import a_cluster, a_node, a_pod, all_rows, pending

TAINT = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("name", "tolerations", "rejected"),
    [
        ("a bare pod stays away", "", True),
        ("the key with Exists is enough", TAINT, False),
        ("so is the empty value", f"{TAINT}=", False),
        ("so is every key", "*", False),
        ("the effect counts", f"{TAINT}:NoExecute", True),
        ("a value does not match the empty one", f"{TAINT}=yes", True),
    ],
)
def test_filter(name: str, tolerations: str, rejected: bool) -> None:
    cluster = a_cluster(a_node("open"), a_node("closed").cordoned())
    pod = pending(cluster, a_pod().tolerates(tolerations))

    codes = NodeUnschedulable().filter(pod, all_rows(cluster), None)

    assert codes.tolist() == [0, int(rejected)]


def test_the_taint_alone_is_somebody_elses_business() -> None:
    cluster = a_cluster(a_node("n1").taints(f"{TAINT}=:NoSchedule"))

    codes = NodeUnschedulable().filter(pending(cluster, a_pod()), all_rows(cluster), None)

    assert codes.tolist() == [0]


def test_hints() -> None:
    node, pod = (registration.hint for registration in NodeUnschedulable().registrations())
    assert node is not None
    assert pod is not None
    waiting, tolerant = a_pod().build(), a_pod().tolerates(TAINT).build()
    is_open, closed = a_node("n1").build(), a_node("n1").cordoned().build()

    assert node(waiting, None, is_open) is Hint.QUEUE
    assert node(waiting, None, closed) is Hint.SKIP
    assert node(waiting, closed, is_open) is Hint.QUEUE
    assert node(waiting, is_open, is_open) is Hint.SKIP
    assert pod(waiting, waiting, tolerant) is Hint.QUEUE
    assert pod(waiting, waiting, waiting) is Hint.SKIP
    assert pod(a_pod("other").build(), waiting, tolerant) is Hint.SKIP
