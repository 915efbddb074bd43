"""The memory of plugins: derived once, forgotten with the class."""

from weakref import ref

import pytest

from asched.core.framework.per_class import PerClass, PerKey
from asched.core.framework.points import Plugin
from asched.core.state.budget import OutOfTurn
from asched.core.state.pods import LARGE_BYTES, PodClass
from tests.builders import a_cluster, a_pod, pending


def test_what_a_class_implies_is_derived_once() -> None:
    seen: list[int] = []

    def derive(cls: PodClass) -> int:
        seen.append(cls.number)
        return cls.number

    memory, cls = PerClass(derive), pending(a_cluster(), a_pod()).cls

    assert memory(cls) == memory(cls) == cls.number
    assert seen == [cls.number]


def test_what_is_derived_from_large_pods_waits_for_a_turn_and_is_kept() -> None:
    cluster = a_cluster()
    memory = PerClass(lambda cls: cls.number)
    wordy = a_pod().labels({"x": "y" * (LARGE_BYTES + 1)})
    large = pending(cluster, wordy).cls
    assert large.is_large
    cluster.budget.open(0)
    with pytest.raises(OutOfTurn):
        memory(large)
    small = pending(cluster, a_pod()).cls
    assert memory(small) == small.number, "small ones cost nothing"
    cluster.budget.open(1)
    assert memory(large) == large.number
    assert cluster.budget.is_used_up
    assert memory(large) == large.number, "what is known is asked of nobody"


class _Deriving:
    def derive(self, cls: PodClass) -> int:
        return cls.number


class _DerivingPlugin(_Deriving, Plugin):
    def __init__(self) -> None:
        self.memory = PerClass(self.derive)


def test_who_derives_is_kept_unless_it_is_the_plugin() -> None:
    cls = pending(a_cluster(), a_pod()).cls
    assert PerClass(_Deriving().derive)(cls) == cls.number

    plugin = _DerivingPlugin()
    assert plugin.memory(cls) == cls.number
    gone = ref(plugin)
    del plugin
    assert gone() is None


class Asks:
    """What all pods that ask for as much have in common."""

    def __init__(self, cls: PodClass) -> None:
        self.by = cls.number


def test_classes_with_one_key_share_what_follows_from_it_as_long_as_one_of_them_lives() -> None:
    derived: list[int] = []

    def derive(cls: PodClass) -> Asks:
        derived.append(cls.number)
        return Asks(cls)

    cluster, memory = a_cluster(), PerKey(lambda cls: len(cls.example.spec.containers), derive)
    one, equal = (pending(cluster, a_pod().labels(app=app)).cls for app in "ab")
    other = pending(cluster, a_pod().container()).cls
    assert memory(one) is memory(equal) is memory(one)
    assert memory(other) is not memory(one)
    assert derived == [one.number, other.number]
