"""Filters for which it does not matter in which order pods come."""

from typing import Any

from asched.core.framework.order_free import OrderFree, is_order_free, takes_of
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


class Taking(Declared):
    def __init__(self, **takes: int) -> None:
        self._takes = {int(at[1:]): amount for at, amount in takes.items()}

    def takes(self, pod: Any) -> Any:
        return self._takes


def test_of_what_several_say_that_a_pod_takes_the_most_counts() -> None:
    filters = (Taking(r0=5, r1=0), OfPods(), Taking(r0=3, r2=7), Taking(r2=8))
    assert takes_of(filters, POD) == {0: 5, 1: 0, 2: 8}
    assert takes_of((OfNodes(),), POD) == {}
