"""A run of a few nodes: what is kept between equal pods changes nothing, and nothing overflows."""

from collections import Counter
from pathlib import Path

import pytest

from asched.hardware.gpu.ledger import held_by
from asched_lab.trace.arrivals import arrivals
from asched_lab.trace.engine import STRATEGIES, Engine
from asched_lab.trace.fleet import Fleet
from asched_lab.trace.openb import TraceNode, TracePod, load
from asched_lab.trace.policies import POLICIES
from asched_lab.trace.run import Run, play
from tests.lab.trace import tiny

DETERMINISTIC = [name for name in POLICIES if name != "random"]


@pytest.mark.parametrize("policy", DETERMINISTIC)
def test_what_is_kept_is_what_would_be_said_afresh(policy: str, tmp_path: Path) -> None:
    trace = load("openb:tiny", tiny.write(tmp_path))
    setting = arrivals(trace, 3)
    counts = list(Counter(pod.demand for pod in trace.pods).items())
    kept = Run(Fleet(setting.nodes), POLICIES[policy][1](counts, 3))
    fresh = Run(Fleet(setting.nodes), POLICIES[policy][1](counts, 3))
    for pod in setting.pods:
        fresh.forget()
        assert kept.offer(pod) == fresh.offer(pod)
    assert (kept.fleet.shares.free == fresh.fleet.shares.free).all()


@pytest.mark.parametrize("policy", list(POLICIES))
def test_nothing_is_given_twice(policy: str, tmp_path: Path) -> None:
    trace = load("openb:tiny", tiny.write(tmp_path))
    setting = arrivals(trace, 3)
    fleet = Fleet(setting.nodes)
    counts = list(Counter(pod.demand for pod in trace.pods).items())
    run = Run(fleet, POLICIES[policy][1](counts, 3))
    given = sum(pod.demand.total for pod in setting.pods if run.offer(pod) is not None)
    left = fleet.shares.free
    assert given
    assert int(left.sum()) == setting.devices * 1000 - given
    assert left.min() >= 0
    assert fleet.shares.cpu.min() >= 0
    assert fleet.memory.min() >= 0
    assert fleet.free == int((left == 1000).sum())


@pytest.mark.parametrize("policy", STRATEGIES)
def test_the_engine_gives_nothing_twice_and_leaves_nobody_out_who_fits(
    policy: str, tmp_path: Path
) -> None:
    trace = load("openb:tiny", tiny.write(tmp_path))
    setting = arrivals(trace, 3)
    engine = Engine(setting.nodes, STRATEGIES[policy])
    using: dict[str, list[TracePod]] = {node.name: [] for node in setting.nodes}
    for pod in setting.pods:
        place = engine.offer(pod)
        if place is not None:
            using[place].append(pod)
        else:
            assert not any(_has_room(node, using[node.name], pod) for node in setting.nodes)
    for node in setting.nodes:
        assert _has_room(node, using[node.name], None)
    assert sum(map(len, using.values())) > len(setting.pods) / 2


def _has_room(node: TraceNode, using: list[TracePod], pod: TracePod | None) -> bool:
    """Whether a node holds these pods, and one more, as tightly as it can."""
    held = [*using, pod] if pod else using
    if pod and pod.demand.models and node.model not in pod.demand.models:
        return False
    if sum(one.demand.cpu for one in held) > node.cpu or sum(p.memory for p in held) > node.memory:
        return False
    before = held_by([one.demand for one in using if one.demand.number], node.devices)
    after = held_by([one.demand for one in held if one.demand.number], node.devices)
    total = sum(one.demand.total for one in held)
    if pod and pod.demand.number:
        fitting = sum(share >= pod.demand.milli for share in before)
        return fitting >= pod.demand.number
    return sum(after) == node.devices * 1000 - total


def test_a_seed_repeats_its_run(tmp_path: Path) -> None:
    trace = load("openb:tiny", tiny.write(tmp_path))
    first, again = (play(trace, "random", 5) for _ in range(2))
    assert first._replace(seconds=0) == again._replace(seconds=0)
