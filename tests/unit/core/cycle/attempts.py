"""Attempts at groups made by hand: pods that wait, on a machine that tries nobody by itself."""

from collections.abc import Generator
from typing import Any

from asched.core.framework.effects import Pause
from tests.builders import PodBuilder
from tests.playbook import a_member


def members(count: int, cpu: str = "1", prefix: str = "p") -> list[PodBuilder]:
    return [a_member(f"{prefix}{number}", cpu=cpu) for number in range(count)]


def run(steps: Generator[Any, Any, Any]) -> Any:
    """What steps come to that ask nobody outside; they may pause."""
    try:
        while True:
            effect = next(steps)
            assert isinstance(effect, Pause), effect
    except StopIteration as end:
        return end.value
