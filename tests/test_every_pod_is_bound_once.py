"""The promise of this house: when the API server burns, every pod is still bound, and bound once.

That nobody is bound twice is the API server's to enforce. What is looked at here: that every pod
is bound at all, that no node is overcommitted, and that no place stays taken for nothing. These
are five lives of virtual time, which find mistakes and prove nothing. In them requests are refused
(409, 429 with Retry-After, 5xx), lost on the way there, lost on the way back, answered with an
error although they were carried out, or carried out long after anybody waited; watches lag, break
and expire (410); the scheduler dies in the middle of it. Over sockets the same is shown by
tests/e2e/test_burning_server.py, and `asched chaos --scenario Inferno --runs 1000` goes on.
"""

from collections import Counter

import pytest

from asched_lab.apiserver.context import Change
from asched_lab.apiserver.resources import PODS
from asched_lab.sim import faults
from asched_lab.sim.steps import AddNodes, AddPods
from asched_lab.sim.world import World

PODS_COUNT = 40
FIRE = (
    faults.Overload(rate=0.1),
    faults.Conflicts(rate=0.1),
    faults.ServerErrors(rate=0.1, applied_share=0.5),
    faults.LostAnswers(rate=0.2, applied_share=0.5),
    faults.LateWrites(rate=0.1),
    faults.Unreachable(rate=0.1),
    faults.SlowAnswers(seconds_max=3.0),
    faults.StaleWatch(lag_s_max=10.0),
    faults.BrokenWatches(every_s=20.0),
    faults.ExpiredWatches(every_s=20.0),
    # A start takes up to a minute in this fire.
    faults.Restarts(every_s=90.0),
)


@pytest.mark.parametrize("seed", range(5))
def test_when_the_api_server_burns_every_pod_is_still_bound_exactly_once(seed: int) -> None:
    """1. Pods come while everything burns; there are just as many places. 2. The fire ends. 3. Each
    pod got a node, and got it once: counted at the server, where nothing can be hidden; and no
    place was given away that might have been taken.
    """
    placements: Counter[str] = Counter()

    def count(change: Change) -> None:
        before = change.old.obj["spec"].get("nodeName") if change.old is not None else None
        after = change.new.obj["spec"].get("nodeName")
        if after and after != before:
            placements[change.new.key[1]] += 1

    with World(seed, FIRE) as world:
        world.server.store.table(PODS.storage).listeners.append(count)
        for _ in range(PODS_COUNT // 4):
            AddPods(count=4).do(world)
            AddNodes(cpu=(16,), pods=(4,)).do(world)
            world.run_for(30.0)
        assert placements, "nothing was bound in the fire"
        world.active_faults.is_on = False
        world.run_for(120.0)

        assert len(world.pods()) == PODS_COUNT
        assert set(placements.values()) == {1}
        assert len(placements) == PODS_COUNT
        assert not world.ledger.broken
