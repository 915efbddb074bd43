"""Classes of pods: shared by equal pods, remembered for a while, forgotten in the end."""

from asched.core.state.pods import RECENT_MAX, PodClasses
from tests.builders import a_pod


def test_equal_pods_share_a_class() -> None:
    classes = PodClasses()
    one, two = (a_pod(name).requests(cpu="1").build() for name in ("one", "two"))
    assert classes.class_of(one) is classes.class_of(two)
    assert classes.class_of(one) is not classes.class_of(a_pod("three").requests(cpu="2").build())


def test_a_class_outlives_its_last_pod_for_a_while() -> None:
    """Pods that come one by one, each bound before the next, are of one class."""
    classes = PodClasses()
    number = classes.class_of(a_pod("one").requests(cpu="1").build()).number
    for index in range(RECENT_MAX - 1):
        classes.class_of(a_pod("other").requests(cpu=str(index + 2)).build())
    assert classes.class_of(a_pod("two").requests(cpu="1").build()).number == number

    for index in range(2 * RECENT_MAX):
        classes.class_of(a_pod("other").requests(cpu=str(index + 2)).build())
    assert classes.class_of(a_pod("three").requests(cpu="1").build()).number != number
