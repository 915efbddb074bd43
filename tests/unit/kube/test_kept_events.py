"""What is kept of events and conditions that cannot be written: a bound in bytes, by what tenants
can make longest.
"""

import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from asched.core.framework.effects import Effect, EmitEvent, Lane, PatchPodStatus, PodRef
from asched.core.model.meta import ObjectReference
from asched.kube.dispatch import Dispatcher
from asched.kube.session import ConnectionOptions, connect
from tests.unit.kube.kubeconfigs import kubeconfig

#: One pod with 3,000 scheduling gates makes 167,000; more pods with fewer take less time here.
NOTE_LETTERS: Final = 8_000
BYTES_MAX: Final = 170 << 20
COUNT: Final = 30_000


def wide(number: int) -> str:
    """One letter outside of the first plane makes Python take four bytes for each."""
    return f"\U0001f600 {number} " + "x" * NOTE_LETTERS


def short(number: int) -> str:
    return f"0/{number} nodes are available"


def reference(kind: str, number: int) -> ObjectReference:
    """To an object with the longest names there are."""
    return ObjectReference(
        api_version="v1",
        kind=kind,
        namespace=f"{number:06}".ljust(63, "s"),
        name=f"{number:06}".ljust(253, "n"),
        uid=f"{number:036}",
        resource_version=f"{number:012}",
    )


def an_event(number: int, note: Callable[[int], str]) -> Effect:
    return EmitEvent(
        regarding=reference("Pod", number),
        related=reference("Node", number),
        type="Warning",
        reason="FailedScheduling",
        action="Scheduling",
        note=note(number),
        reporting_controller="asched",
    )


def a_condition(number: int, note: Callable[[int], str]) -> Effect:
    pod = PodRef(namespace="t", name=f"p{number}", uid=f"u{number}")
    condition = {"type": "PodScheduled", "status": "False", "message": note(number)}
    return PatchPodStatus(id=number + 1, pod=pod, condition=condition)


@asynccontextmanager
async def a_dispatcher(tmp_path: Path) -> AsyncIterator[tuple[Dispatcher, "count[int]"]]:
    """Nothing is sent, as where the server does not answer; and a count of the answers."""
    login = kubeconfig(tmp_path / "config", "https://127.0.0.1:1")
    session = await connect(ConnectionOptions(kubeconfig=str(login)), handshake=False)
    answered = count()
    try:
        yield Dispatcher(session, lambda _answer: next(answered) and None), answered
    finally:
        await session.close()


@pytest.mark.parametrize("made", [an_event, a_condition])
async def test_what_waits_is_bounded_in_bytes(made: Any, tmp_path: Path) -> None:
    async with a_dispatcher(tmp_path) as (dispatcher, _):
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            for number in range(COUNT):
                dispatcher.submit(made(number, wide))
            kept = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
    assert kept < BYTES_MAX


@pytest.mark.parametrize(("made", "lane"), [(an_event, Lane.EVENT), (a_condition, Lane.STATUS)])
async def test_all_that_is_short_waits(made: Any, lane: Lane, tmp_path: Path) -> None:
    async with a_dispatcher(tmp_path) as (dispatcher, answered):
        for number in range(COUNT):
            dispatcher.submit(made(number, short))
        assert (dispatcher.dropped_count(lane), next(answered)) == (0, 0)
