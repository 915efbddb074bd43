"""Broken machines: each scenario would notice what it is there for."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import numpy as np
import pytest

from asched.core.cycle import binding, confirmation, orders, scheduling
from asched.core.dra.ledger import DeviceLedger
from asched.core.extender.consult import Chain
from asched.core.framework.status import SUCCESS
from asched.core.leader.election import Election
from asched.core.plugins.node_affinity import NodeAffinity
from asched.core.plugins.taint_toleration import TaintToleration
from asched.core.plugins.volumes.binding import VolumeBinding
from asched.core.preemption.budgets import Budgets
from asched.core.state.cluster import Cluster
from asched.kube.dispatch import Dispatcher
from asched.kube.transport import Transport
from asched.kube.watch import Reflector
from asched.serve.telemetry.measured import MeasuredDispatcher
from asched_lab.sim.scenario import Broken, play
from asched_lab.sim.scenarios import SCENARIOS

Breaks = Callable[[pytest.MonkeyPatch], None]

#: Lives until a mistake must have been found: which of them shows it is a matter of dice.
LIVES: Final = 20


@dataclass(frozen=True)
class Case:
    name: str
    scenario: str
    breaks: Breaks
    found: str  # among the words of what is found
    seed: int = 0  # the first to try


def sets(owner: Any, name: str, value: Any) -> Breaks:
    return lambda monkeypatch: monkeypatch.setattr(owner, name, value)


def everywhere(self: Any, pod: Any, nodes: Any, data: Any) -> Any:
    return np.zeros(nodes.size, dtype=np.int32)


def at_once(self: Any) -> Any:
    yield from ()
    return SUCCESS


def nothing_to_do(self: Any, pod: Any, node: str) -> Any:
    yield from ()
    return SUCCESS


def only_the_place(context: Any, attempt: Any, node: str) -> Generator[Any, Any, bool]:
    yield from ()
    return bool(context.cluster.forget(attempt.info))


def careless(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (binding, scheduling):
        monkeypatch.setattr(module, "give_back", only_the_place)


def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation, "SENDS_MAX", 1)
    monkeypatch.setattr(confirmation, "LANDS_WITHIN_S", 0.0)


def unfenced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transport, "_look_at_fence", lambda _: None)
    monkeypatch.setattr(MeasuredDispatcher, "_pump", Dispatcher._pump)


def list_once(self: Any, *found: Any) -> None:
    """Only the first list is handed over; later ones move the version on."""
    put = self.put
    if self.list_count:
        self.put = lambda _: None
    take_as_all(self, *found)
    self.put = put


take_as_all = Reflector._take_as_all

CASES = [
    Case(
        "requests that meet no fence",
        "LeaderChanges",
        unfenced,
        "does not lead and sends",
    ),
    Case(
        "a watch that does not hand over what it lists anew",
        "Churn",
        sets(Reflector, "_take_as_all", list_once),
        "the API does not know it",
    ),
    Case(
        "places given back while a lost binding may still show up",
        "LateBindings",
        hasty,
        "overcommits node",
    ),
    Case(
        "a leader that does not heed its fence",
        "LeaderChanges",
        sets(Election, "fence_s", property(lambda _: 1e12)),
        "two processes lead",
    ),
    Case(
        "taints that nobody looks at",
        "NodeFlapping",
        sets(TaintToleration, "filter", everywhere),
        "known to be ill",
    ),
    Case(
        "a door that everybody passes",
        "PermitWaits",
        sets(binding.Binding, "_wait_on_permit", at_once),
        "was not let through",
    ),
    Case("reservations that are kept", "PermitWaits", careless, "is reserved twice"),
    Case("reservations that outlive their pod", "EveryPhase", careless, "is reserved twice"),
    Case(
        "a place that is kept",
        "EveryPhase",
        sets(Cluster, "forget", lambda *_: False),
        "is still assumed",
    ),
    Case(
        "a profile whose rule is not heard",
        "SideBySide",
        sets(NodeAffinity, "filter", everywhere),
        "without ssd",
    ),
    Case(
        "a queue that is not told of new profiles",
        "Reloads",
        sets(orders, "reprofile", lambda *_: None),
        "is queued and does not wait",
        seed=9,
    ),
    Case(
        "devices in flight that do not count",
        "BusyDevices",
        sets(DeviceLedger, "reserve", lambda *_: None),
        "is held by 2 claims",
        seed=1,
    ),
    Case(
        "extenders that are not asked",
        "Advisers",
        sets(Chain, "is_interested", lambda *_: False),
        "did not grant",
    ),
    Case(
        "volumes that nobody waits for",
        "SlowVolumes",
        sets(VolumeBinding, "pre_bind", nothing_to_do),
        "was bound before its claim",
    ),
    Case(
        "budgets that speak for nobody",
        "Budgets",
        sets(Budgets, "speaking_for", lambda *_: np.zeros(0, dtype=np.int64)),
        "breaks a budget",
        seed=24,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_a_scenario_notices(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.breaks(monkeypatch)

    lives = range(case.seed, case.seed + LIVES)
    assert any(case.found in said for seed in lives for said in findings(case, seed))


def findings(case: Case, seed: int) -> list[str]:
    """What the scenario complains about; empty if it is content."""
    try:
        play(SCENARIOS[case.scenario], seed)
    except Broken as broken:
        return broken.findings
    return []
