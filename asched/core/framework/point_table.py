"""The extension points as a table: the base class and the method of each."""

from typing import Any, Final

from asched.core.framework.group_post_filter import GroupPostFilterPlugin
from asched.core.framework.placements import PlacementGeneratePlugin, PlacementScorePlugin
from asched.core.framework.points import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)

#: The base class of each extension point of the configuration.
POINTS: Final[dict[str, Any]] = {
    "queueSort": QueueSortPlugin,
    "preEnqueue": PreEnqueuePlugin,
    "preFilter": PreFilterPlugin,
    "filter": FilterPlugin,
    "postFilter": PostFilterPlugin,
    "preScore": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "preBind": PreBindPlugin,
    "bind": BindPlugin,
    "postBind": PostBindPlugin,
    "placementGenerate": PlacementGeneratePlugin,
    "placementScore": PlacementScorePlugin,
    "podGroupPostFilter": GroupPostFilterPlugin,
}


def points_of(cls: type[Plugin]) -> frozenset[str]:
    """The extension points at which a configuration may name this plugin."""
    return cls.listed_at.union(point for point, base in POINTS.items() if issubclass(cls, base))


#: The methods of the bases, and the point at which each is called.
POINT_OF_METHOD: Final[dict[str, str]] = {
    "sort_key": "queueSort",
    "pre_enqueue": "preEnqueue",
    "pre_filter": "preFilter",
    "filter": "filter",
    "filter_few": "filter",
    "filter_one": "filter",
    "explain": "filter",
    "post_filter": "postFilter",
    "pre_score": "preScore",
    "score": "score",
    "score_few": "score",
    "score_one": "score",
    "normalize": "score",
    "reserve": "reserve",
    "unreserve": "reserve",
    "permit": "permit",
    "permit_late": "permit",
    "pre_bind_pre_flight": "preBind",
    "pre_bind": "preBind",
    "bind": "bind",
    "post_bind": "postBind",
    "group_post_filter": "podGroupPostFilter",
    "generate_placements": "placementGenerate",
    "score_placement": "placementScore",
    "normalize_placements": "placementScore",
}
