"""The memory of plugins: derived once, bounded."""

import pytest

from asched.core.plugins import per_class
from asched.core.plugins.per_class import PerClass
from asched.core.state.pods import PodClass
from tests.builders import a_cluster, a_pod, pending


def test_what_a_class_implies_is_derived_once() -> None:
    seen: list[int] = []

    def derive(cls: PodClass) -> int:
        seen.append(cls.number)
        return cls.number

    memory, cls = PerClass(derive), pending(a_cluster(), a_pod()).cls

    assert memory(cls) == memory(cls) == cls.number
    assert seen == [cls.number]


def test_a_full_memory_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_class, "CLASSES_MAX", 2)
    memory = PerClass(lambda cls: cls.number)
    cluster = a_cluster()
    classes = [pending(cluster, a_pod().priority(number)).cls for number in range(5)]

    assert [memory(cls) for cls in classes] == [cls.number for cls in classes]
    assert len(memory._known) <= 2
