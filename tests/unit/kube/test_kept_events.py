"""What is kept of events and conditions that cannot be written: a bound in bytes, by what tenants
can make longest.
"""

import tracemalloc
from collections.abc import Callable
from itertools import count
from typing import Any, Final

import pytest

from asched.core.framework.effects import Effect, EmitEvent, Lane, PatchPodStatus, PodRef
from asched.core.model.meta import ObjectReference
from asched.kube.dispatch import Dispatcher
from asched.kube.session import ConnectionOptions, connect
from tests.unit.kube.kubeconfigs import kubeconfig

MIB: Final = 1 << 20
#: One pod with 3,000 scheduling gates makes 167,000; more pods with fewer take less time here.
NOTE_LETTERS: Final = 8_000
NOTES: Final[dict[str, Callable[[int], str]]] = {
    # One letter outside of the first plane makes Python take four bytes for each.
    "wide": lambda number: f"\U0001f600 {number} " + "x" * NOTE_LETTERS,
    "short": lambda number: f"0/{number} nodes are available",
}

COUNT: Final = 30_000


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


@pytest.mark.parametrize("note", NOTES.values(), ids=NOTES)
@pytest.mark.parametrize(
    ("made", "lane", "most_mib"), [(an_event, Lane.EVENT, 170), (a_condition, Lane.STATUS, 170)]
)
async def test_what_waits_is_bounded_in_bytes(
    made: Any, lane: Lane, most_mib: int, note: Callable[[int], str], tmp_path: Any
) -> None:
    """Nothing is sent meanwhile, as where the server does not answer."""
    login = kubeconfig(tmp_path / "config", "https://127.0.0.1:1")
    session = await connect(ConnectionOptions(kubeconfig=str(login)), handshake=False)
    answered = count()
    dispatcher = Dispatcher(session, lambda _answer: next(answered) and None)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(COUNT):
            dispatcher.submit(made(number, note))
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        await session.close()
    assert kept < most_mib * MIB
    if note is NOTES["short"]:
        assert (dispatcher.dropped_count(lane), next(answered)) == (0, 0)
