"""What is kept by a plugin's class is bounded: a file that is read again has another class."""

import gc
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import pytest

from asched.core.framework.points import FilterPlugin
from asched.core.framework.results import nominated_filter, prepared
from asched.core.framework.results.prepared import PLUGINS_MAX


@pytest.mark.parametrize(
    "keeps", [prepared.bits_of, prepared.has_stamp, nominated_filter._ignores_pods]
)
def test_classes_of_former_files_go(keeps: Callable[[type[Any]], object]) -> None:
    there = WeakSet[type[Any]]()
    for number in range(2 * PLUGINS_MAX):
        cls = type(f"Daily{number}", (FilterPlugin,), {})
        keeps(cls)
        there.add(cls)
    del cls
    gc.collect()
    assert len(there) <= PLUGINS_MAX
