"""NodePorts: which ports collide, and whose going frees one."""

from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.view import NodeView
from asched.core.framework.registrations import Hint
from asched.core.framework.status import Code
from asched.core.plugins.node_ports import NodePorts
from tests.builders import a_cluster, a_node, a_pod, all_rows, pending

Port = tuple[int, str, str]  # number, protocol, address


@dataclass(frozen=True)
class Case:
    name: str
    used: Port
    wanted: Port
    rejected: bool


CASES = [
    Case("the same port collides", (80, "TCP", ""), (80, "TCP", ""), rejected=True),
    Case("another port does not", (80, "TCP", ""), (81, "TCP", ""), rejected=False),
    Case("nor does another protocol", (80, "TCP", ""), (80, "UDP", ""), rejected=False),
    Case("no protocol is TCP", (80, "", ""), (80, "TCP", ""), rejected=True),
    Case("two addresses share a port", (80, "", "10.0.0.1"), (80, "", "10.0.0.2"), rejected=False),
    Case("one address does not", (80, "", "10.0.0.1"), (80, "", "10.0.0.1"), rejected=True),
    Case("no address is every address", (80, "", "10.0.0.1"), (80, "", ""), rejected=True),
    Case("on the node as well", (80, "", "0.0.0.0"), (80, "", "10.0.0.1"), rejected=True),
    Case(":: is one address among others", (80, "", "::"), (80, "", "::1"), rejected=False),
    Case("0.0.0.0 covers :: too", (80, "", "::"), (80, "", "0.0.0.0"), rejected=True),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_filter(case: Case) -> None:
    user = a_pod("user").host_port(*case.used).on("n2")
    cluster = a_cluster(a_node("n1"), a_node("n2"), pods=[user])
    plugin = NodePorts(cluster)
    pod = pending(cluster, a_pod().host_port(*case.wanted))

    assert plugin.filter(pod, all_rows(cluster), None).tolist() == [0, int(case.rejected)]
    row = NodeView(cluster.nodes, np.array([1], dtype=np.int32))
    assert plugin.filter(pod, row, None).tolist() == [int(case.rejected)]
    assert plugin.explain(pod, 1).code is Code.UNSCHEDULABLE


def test_ports_of_sidecars_count_and_those_of_init_containers_do_not() -> None:
    pod = a_pod().init(sidecar=True).init()
    sidecar, init = pod.json["spec"]["initContainers"]
    sidecar["ports"], init["ports"] = [{"hostPort": 80}], [{"hostPort": 81}]
    users = [a_pod("a").host_port(80).on("n1"), a_pod("b").host_port(81).on("n2")]
    cluster = a_cluster(a_node("n1"), a_node("n2"), pods=users)

    codes = NodePorts(cluster).filter(pending(cluster, pod), all_rows(cluster), None)

    assert codes.tolist() == [1, 0]


def test_hints() -> None:
    hint = NodePorts(Cluster()).registrations()[0].hint
    assert hint is not None
    waiting = a_pod("web").host_port(80).build()

    def gone(pod: object) -> Hint:
        return hint(waiting, pod, None)

    assert gone(a_pod("a").host_port(80).on("n1").build()) is Hint.QUEUE
    assert gone(a_pod("a").host_port(80, "UDP").on("n1").build()) is Hint.SKIP
    assert gone(a_pod("a").host_port(80).build()) is Hint.SKIP
    assert gone(a_pod("a").host_port(80).status(nominatedNodeName="n1").build()) is Hint.QUEUE
    assert gone(a_pod("a").on("n1").build()) is Hint.SKIP
