"""The museum: each incident tells its story, and would notice the mistake it is about."""

import asyncio
from typing import Any

import pytest

from asched.core.state.facts import Listed
from asched.core.state.list_parts import ListParts
from asched.core.state.nominated import Nominator
from asched.core.state.refusals import Refusals
from asched.kube.hearing import ReflectorWatchdog
from asched.kube.history import History
from asched_lab.sim.museum import INCIDENTS
from asched_lab.sim.scenario import play
from tests.sim.findings import findings


@pytest.mark.parametrize("name", INCIDENTS)
def test_each_says_what_happened_and_how_soon_all_is_well_again(name: str) -> None:
    kind = INCIDENTS[name]

    assert kind.what
    assert kind.threads
    assert kind.recovers_in_s < 60
    measured = any(play(kind, seed).recoveries_s for seed in (1, 2))
    assert measured, "nothing was measured"


def test_who_does_not_notice_silence_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def patient(*_: object) -> None:
        await asyncio.Future()

    monkeypatch.setattr(ReflectorWatchdog, "watch_over", patient)
    monkeypatch.setattr("asched.kube.pace.STREAM_S", 600.0)

    assert findings("Incident11", range(2))


def test_a_list_that_deletes_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    take = ListParts.take

    def deaf(self: ListParts, fact: Listed) -> Any:
        listed, _ = yield from take(self, fact)
        return listed, None

    monkeypatch.setattr(ListParts, "take", deaf)

    assert findings("Incident05", range(2))


def test_going_on_after_a_restore_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fine(*_: object, **__: object) -> None:
        """No version is ever lower."""

    monkeypatch.setattr(History, "check", fine)

    assert findings("Incident17", range(4))


def test_promises_that_nobody_takes_back_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nominator, "delete", lambda *_: None)

    assert "is promised to" in findings("Incident06", range(4))


def test_sending_the_next_pod_to_the_same_kubelet_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Refusals, "rows", lambda *_: ())

    assert "were refused within a minute" in findings("Incident01", range(3))
