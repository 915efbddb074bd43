"""What is known of nodes' use: samples, their age, and whose they are."""

from asched.core.cluster.facts import Gone, Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE
from asched.core.model.node import Node
from asched.hardware.load.expected_use import ExpectedUse
from asched.hardware.load.usage import CPU, STALE_S, NodeUsage
from tests.unit.hardware.load.worlds import NOW_S, World, a_node, a_pod


def measured(*cpus: str, every_s: float = 15.0) -> tuple[World, NodeUsage]:
    """A node that was measured so, the last time a quarter of a minute ago."""
    world = World()
    world.add(a_node("n1"))
    usage = world.cluster.singleton(NodeUsage)
    for at, cpu in enumerate(cpus):
        end_s = NOW_S - 15 - every_s * (len(cpus) - 1 - at)
        world.measure({"n1": (cpu, "1Gi")}, end_s)
    usage.refresh()
    return world, usage


def test_an_answer_that_tells_nothing_newer_is_no_sample() -> None:
    world, usage = measured("100m", "300m")
    world.measure({"n1": ("900m", "1Gi")}, NOW_S - 15)  # of the same moment
    usage.refresh()
    assert usage.latest[CPU, 0] == 300
    assert usage.mean()[CPU, 0] == 200


def test_what_is_too_old_counts_as_not_measured_until_it_is_measured_again() -> None:
    world, usage = measured("100m")
    assert usage.is_valid.tolist() == [True]
    before = usage.version
    world.at(NOW_S - 15 + STALE_S - 1)
    usage.refresh()
    assert (usage.is_valid.tolist(), usage.version) == ([True], before)
    world.at(NOW_S - 15 + STALE_S)
    usage.refresh()
    assert usage.is_valid.tolist() == [False]
    assert usage.version > before  # cached scores follow
    world.measure({"n1": ("200m", "1Gi")}, NOW_S + STALE_S)
    usage.refresh()
    assert usage.is_valid.tolist() == [True]


def test_a_node_made_anew_has_not_the_samples_of_the_one_before() -> None:
    world, usage = measured("100m")
    world.cluster.apply(Gone(NODE, decode(Node, a_node("n1"))))
    again = a_node("n1")
    again["metadata"] |= {"uid": "another", "creationTimestamp": "2027-01-15T08:00:00Z"}
    world.cluster.apply(Seen(NODE, decode(Node, again)))
    usage.refresh()
    assert usage.is_valid.tolist() == [False]
    world.measure({"n1": ("700m", "1Gi")}, NOW_S + 5)
    usage.refresh()
    assert (usage.is_valid.tolist(), usage.mean()[CPU, 0]) == ([True], 700)


def test_senseless_metrics_measure_nothing() -> None:
    world, usage = measured()
    for usage_told in ({"cpu": "1"}, {"memory": "1"}, {}):
        obj = {"metadata": {"name": "n1"}, "timestamp": "2027-01-15T08:00:00Z", "usage": usage_told}
        world.tell(obj)
    world.tell({"metadata": {"name": "n1"}, "timestamp": "now", "usage": {"cpu": "1"}})
    world.tell({"metadata": {"name": "nobody"}})
    usage.refresh()
    assert usage.is_valid.tolist() == [False]


def test_expected_use_is_that_of_pods_no_measurement_tells_of_yet() -> None:
    world, usage = measured("100m")  # up to NOW_S - 15
    world.add(a_pod("old", on="n1", since_s=NOW_S - 76), a_pod("new", on="n1", since_s=NOW_S - 74))
    asked = ExpectedUse(world.cluster, usage, lambda _: 1000)
    assert asked.by_row().tolist() == [1000]
    world.at(NOW_S)
    world.cluster.assume(world.pending(a_pod("assumed")), "n1")
    assert asked.by_row().tolist() == [2000]
    world.measure({"n1": ("100m", "1Gi")}, NOW_S + 50)
    usage.refresh()
    assert asked.by_row().tolist() == [1000]  # the assumed one is measured from NOW_S + 60 on
