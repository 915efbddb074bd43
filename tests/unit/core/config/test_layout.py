"""The layout of pools: what replicas have to agree on."""

from typing import Any

import pytest

from asched.core.config.defaults import configuration
from asched.core.config.layout import layout_of

POOLS = [
    {"name": "batch", "namespaces": ["jobs"]},
    {"name": "gpu", "namespaceSelector": {"matchLabels": {"team": "ml"}}},
]
PROFILES = [{"schedulerName": "asched"}, {"schedulerName": "packing"}]


def layout(changes: dict[str, Any], **more: Any) -> str:
    """The layout with changes of the second pool."""
    pools = [POOLS[0], {**POOLS[1], **changes}]
    return layout_of(configuration({"profiles": PROFILES, "pools": pools, **more}))


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "tpu"},
        {"nodeSelector": {"accelerator": "yes"}},
        {"namespaces": ["training"]},
        {"namespaceSelector": {"matchLabels": {"team": "ai"}}},
    ],
)
def test_what_a_pool_selects_is_part_of_the_layout(changes: dict[str, Any]) -> None:
    assert layout(changes) != layout({})


def test_the_times_of_leases_are_part_of_the_layout() -> None:
    assert layout({}, leaderElection={"leaseDuration": "20s"}) != layout({})


@pytest.mark.parametrize("profile", ["asched", "packing"])
def test_replicas_that_decide_by_different_profiles_share_pools(profile: str) -> None:
    assert layout({"profile": profile}) == layout({})
