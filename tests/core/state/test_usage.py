"""What placed pods ask for by namespace, and how many of them have which priority."""

from asched.core.state.pods import PodInfo
from asched.core.state.usage import NamespaceUsage, Priorities
from tests.builders import a_cluster, a_pod, pending


def info(name: str, namespace: str = "team", **amounts: str) -> PodInfo:
    return pending(a_cluster(), a_pod(name, namespace).requests(**amounts))


def test_nothing_is_kept_before_somebody_asks() -> None:
    placed = {"a": info("a", cpu="1")}
    usage = NamespaceUsage(placed)
    usage.move(placed["a"], 1)
    assert usage.of("team") == {}
    assert usage.kept() is usage
    assert usage.of("team") == {"cpu": 1000}
    assert usage.kept().of("team") == {"cpu": 1000}, "asked twice, counted once"


def test_what_some_namespaces_use_together_is_kept_up_to_date() -> None:
    usage = NamespaceUsage({}).kept()
    one, two = info("one", "a", cpu="1"), info("two", "b", cpu="2", memory="1Ki")
    usage.move(one, 1)
    for _ in range(2):
        usage.count("a", counts=True)  # once, however often that is said
    assert usage.together == {"cpu": 1000}
    usage.move(two, 1)
    assert usage.together == {"cpu": 1000}, "nobody counts the other one"
    usage.count("b", counts=True)
    assert usage.together == {"cpu": 3000, "memory": 1024}
    usage.move(one, -1)
    usage.move(one, 1)
    for _ in range(2):
        usage.count("b", counts=False)
    assert usage.together == {"cpu": 1000}
    usage.move(one, -1)
    usage.move(two, -1)
    assert usage.together == {}


def test_a_priority_that_nobody_has_is_not_kept() -> None:
    priorities = Priorities()
    priorities[5] += 2
    priorities[0] += 1
    priorities.down(5)
    assert priorities == {5: 1, 0: 1}
    priorities.down(5)
    assert list(priorities) == [0]


def test_only_the_less_important_are_below() -> None:
    priorities = Priorities()
    assert not priorities.are_below(0)
    priorities[5] += 1
    assert [priorities.are_below(one) for one in (4, 5, 6)] == [False, False, True]
    priorities.down(5)
    assert not priorities.are_below(6)
