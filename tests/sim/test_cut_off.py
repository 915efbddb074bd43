"""A wire on which nothing came through for as long as a lease: how soon is somebody bound again?"""

from collections.abc import Callable

import pytest

from asched.kube.watchdog import HAND_OVER_S
from asched_lab.sim.faults import LostAnswers
from asched_lab.sim.museum.incident import break_watches
from asched_lab.sim.process import LEASE_S
from asched_lab.sim.steps import AddNodes, AddPods
from asched_lab.sim.world import World

#: No stream lives long enough for a bookmark.
BREAK_EVERY_S = 8.0
#: Seeds of one case.
LIVES = 5
#: What the trial on a real control plane asks for, at these leases: 10 s of 15.
RECOVERS_IN_S = LEASE_S * 2 / 3


def nothing_passes(world: World, seconds: float) -> None:
    for process in world.processes:
        process.cut_off(seconds)


def answers_are_lost(world: World, seconds: float) -> None:
    world.active_faults.begin(LostAnswers(rate=1.0, applied_share=1.0))
    world.clock.after(seconds, lambda: world.active_faults.end(LostAnswers))


def nothing_passes_to_the_deaf(world: World, seconds: float) -> None:
    """Streams broke for so long that nobody knows whether they tell everything; then the leader
    gives up because it does not hear, too.
    """
    for _ in range(round(HAND_OVER_S / BREAK_EVERY_S)):
        break_watches(world)
        world.run_for(BREAK_EVERY_S)
    nothing_passes(world, seconds)


def recovery_s(seed: int, trouble: Callable[[World, float], None]) -> float:
    """Seconds from the end of the trouble to the next binding."""
    with World(seed, replicas=2) as world:
        AddNodes(count=4, cpu=(8,)).do(world)
        world.run_for(world.rng.uniform(12.0, 15.0))
        bound_s: list[float] = []
        world.on_bound.append(lambda _bind: bound_s.append(world.clock.now_s()))
        trouble(world, LEASE_S)
        world.run_for(LEASE_S)
        healed_s = world.clock.now_s()
        AddPods(count=3).do(world)
        world.run_for(4 * LEASE_S)
        assert not world.ledger.broken
        assert len(bound_s) == 3
        return bound_s[0] - healed_s


@pytest.mark.parametrize("trouble", [nothing_passes, answers_are_lost, nothing_passes_to_the_deaf])
def test_whoever_lost_the_lease_gives_it_back_when_it_can(
    trouble: Callable[[World, float], None],
) -> None:
    took_s = [recovery_s(seed, trouble) for seed in range(LIVES)]
    assert max(took_s) < RECOVERS_IN_S, sorted(round(seconds, 1) for seconds in took_s)
