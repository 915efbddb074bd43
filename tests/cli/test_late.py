"""Modules that most starts need nothing of: none of them is loaded before the first binding."""

import importlib
import platform
import subprocess
import sys
import threading
import typing
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from asched.cli import late
from tests.cli.test_packed_code import python

#: Modules of asched that run until the first pod is bound; what is added here costs every start.
MODULES_MAX = 385
#: What only some ask for.
OPTIONAL = (
    *("asched.core.explain.", "asched.core.shadow.", "asched.core.dra.cel.v", "asched.hardware."),
    *("asched.lab.", "asched.edge.host.recording.", "asched.edge.host.view.l", "aiohttp", "rich"),
    *("asched.core.cycle.group_search", "asched.core.gang.search", "asched.core.preemption.units"),
    *("asched.core.plugins.capacity.", "asched.core.plugins.gang", "prometheus_client"),
)
#: No library of ours needs it from Python 3.13 on.
OFTEN_MISSING = {"typing_extensions"}
#: A process that is told nothing but a name, up to the effect that binds the first pod.
FIRST_BINDING = """
from asched.cli import late
late.use()
import asched.cli.run
from asched.core.framework.effects import Bind
from asched.core.model.kinds import NODE, POD
from asched.core.model.decode import decode
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.state.facts import Listed
from asched.edge.host.assemble import Parts, build_machine, build_runners
from asched.edge.host.configuration.file import load_config

text = "kind: KubeSchedulerConfiguration\\napiVersion: kubescheduler.config.k8s.io/v1"
configuration = load_config(text=text)
parts = Parts.fresh()
runners = build_runners(configuration.configuration, parts)
machine = build_machine(configuration.configuration, parts, runners, counter_s=lambda: 0.0)
machine.is_active = True
room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
nodes = tuple(
    decode(Node, {"metadata": {"name": n, "uid": n}, "status": {"allocatable": room}}) for n in "ab"
)
spec = {"schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "i"}]}
pod = decode(Pod, {"metadata": {"name": "p", "namespace": "d", "uid": "p"}, "spec": spec})
effects = machine.handle([Listed(NODE, nodes), Listed(POD, (pod,))], 1.0)
assert any(isinstance(effect, Bind) for effect in effects), effects
for name, module in list(sys.modules.items()):
    if type(module) is not late.LateModule:
        print(name)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a late module that counts how often its source runs."""
    (tmp_path / "late_thing.py").write_text(
        "import sys\nsys.late_runs = getattr(sys, 'late_runs', 0) + 1\n"
        "if sys.late_runs == getattr(sys, 'late_fails', 0): raise ImportError('not now')\n"
        "value = 5\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(late, "LATE", frozenset({"late_thing"}))
    monkeypatch.setattr(sys, "meta_path", [late.LateFinder, *sys.meta_path])
    yield "late_thing"
    sys.modules.pop("late_thing", None)
    for name in ("late_runs", "late_fails"):
        sys.__dict__.pop(name, None)


def runs() -> int:
    return getattr(sys, "late_runs", 0)


def imported(name: str) -> ModuleType:
    __import__(name)
    return sys.modules[name]


def test_before_the_first_binding_nothing_optional_is_loaded() -> None:
    every = python(FIRST_BINDING).split()
    loaded = [name for name in every if name.startswith("asched")]

    assert [name for name in loaded if name in late.LATE] == []
    assert [name for name in every if name.startswith(OPTIONAL)] == []
    assert len(loaded) <= MODULES_MAX


def test_each_module_of_the_table_exists() -> None:
    for name in late.LATE - OFTEN_MISSING:
        assert find_spec(name) is not None, name


def test_what_is_at_hand_is_what_the_module_itself_has() -> None:
    at_hand = {name: make() for name, make in late.AT_HAND.items()}

    assert at_hand["platform"]["system"]() == platform.system()
    for name in ("PIPE", "STDOUT", "DEVNULL"):
        assert at_hand["subprocess"][name] == getattr(subprocess, name)
    for name, value in at_hand.pop("typing_extensions").items():
        assert value is getattr(typing, name)
    for name, told in at_hand.items():
        assert all(hasattr(importlib.import_module(name), key) for key in told)


def test_an_array_in_an_annotation_does_not_load_what_numpy_says_of_types() -> None:
    told = python(
        """from asched.cli import late
late.use()
import numpy as np
import numpy.typing as npt
row: npt.NDArray[np.int64]
names = ("numpy.typing", "numpy._typing")
print([type(sys.modules[name]) is late.LateModule for name in names])
print(npt.ArrayLike is not None, npt.NDArray is not late.Array)"""
    )

    assert told.splitlines() == ["[True, True]", "True True"]


def test_it_runs_when_it_is_asked_for_something_and_only_once(module: str) -> None:
    found = imported(module)
    assert not hasattr(found, "__wrapped__")
    assert runs() == 0

    assert (found.value, found.value) == (5, 5)
    assert runs() == 1
    assert type(found) is ModuleType


def test_a_name_out_of_it_loads_it(module: str) -> None:
    from late_thing import value

    assert (value, runs()) == (5, 1)


def test_what_it_does_not_have_is_told_as_always(module: str) -> None:
    with pytest.raises(AttributeError, match="module 'late_thing' has no attribute 'other'"):
        _ = imported(module).other


def test_what_kept_it_from_running_is_told_and_it_is_tried_again(module: str) -> None:
    vars(sys)["late_fails"] = 1
    found = imported(module)
    with pytest.raises(ImportError, match="not now"):
        _ = found.value

    assert found.value == 5


def test_of_several_threads_one_loads_it(module: str) -> None:
    found, values = imported(module), []
    threads = [threading.Thread(target=lambda: values.append(found.value)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert values == [5] * 8
    assert runs() == 1
