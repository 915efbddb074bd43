"""Filters for which it does not matter in which order pods come."""

from typing import Any

from asched.core.framework.order_free import OrderFree, is_order_free
from asched.core.framework.points import FilterPlugin
from asched.core.state.nodes import Aspect
from tests.builders import a_cluster, a_pod, pending

POD = pending(a_cluster(), a_pod())


class OfNodes(FilterPlugin):
    depends_on = Aspect.LABELS

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any: ...


class OfPods(OfNodes):
    depends_on = Aspect.LABELS | Aspect.POD_AMOUNTS


class Declared(OrderFree, OfPods):
    """Whatever it reads, it says so itself."""


class Picky(Declared):
    def is_order_free(self, pod: Any) -> bool:
        return pod.pod.metadata.name == "other"


def test_a_filter_says_so_itself_or_does_not_look_at_pods() -> None:
    assert is_order_free(OfNodes(), POD)
    assert not is_order_free(OfPods(), POD)
    assert is_order_free(Declared(), POD)
    assert not is_order_free(Picky(), POD)
    assert Declared().takes(POD) == {}
