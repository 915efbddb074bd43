"""NodeResourcesBalancedAllocation against its twin, on all rows together and one by one."""

import pytest

from asched.core.config import args as config
from asched.core.framework.status import Code
from asched.core.plugins.resources.balanced_allocation import NodeResourcesBalancedAllocation
from tests.builders import all_rows, pending
from tests.conformance.twins import node_resources_balanced_allocation as twin
from tests.unit.core.plugins.resources.amount_worlds import GPU, AmountWorld

THREE = config.NodeResourcesBalancedAllocationArgs(
    tuple(config.ResourceSpec(name) for name in ("cpu", GPU, "memory", "ephemeral-storage"))
)


@pytest.mark.parametrize("args", [None, THREE], ids=["two resources", "four"])
@pytest.mark.parametrize("seed", range(8))
def test_a_row_gets_the_points_that_its_twin_gets(
    args: config.NodeResourcesBalancedAllocationArgs | None, seed: int
) -> None:
    """Without PreScore, which leaves pods out that ask for nothing, these get nothing."""
    world = AmountWorld(seed)
    plugin, view = NodeResourcesBalancedAllocation(args, world.cluster), all_rows(world.cluster)
    rows = list(range(view.size))
    places = [world.place_of(row) for row in rows]
    for pod in world.waiting:
        info = pending(world.cluster, pod)
        expected = [twin.raw_score(pod.build(), place, world.picture, args) for place in places]
        is_idle = plugin.pre_score(info, view, view.live).status.code is Code.SKIP
        assert is_idle is (expected[0] is None)
        points = plugin.score(info, view, None).tolist()
        assert points == [0 if one is None else one for one in expected]

        offer_both = [not set(place_offers(place)) & {"0"} for place in places]
        few = plugin.score_few(info, rows, None)
        is_short = args is None and not is_idle
        assert few == (points if is_short and all(offer_both) else None)
        for row in rows:
            short = is_short and offer_both[row]
            assert plugin.score_few(info, [row], None) == ([points[row]] if short else None)


def place_offers(place: twin.Place) -> list[str]:
    offered = place.node.status.allocatable or {}
    return [str(offered.get(name, "0")) for name in ("cpu", "memory")]
