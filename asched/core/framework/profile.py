"""A profile ready to run: plugin instances at their extension points, in order, with weights.

`core/config` resolves which plugin runs where; this module creates the instances, one per plugin
and profile, and checks that each implements its points.

`POINTS` has the base class of each extension point.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from asched.core.cluster.changes import WILDCARD, Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pools import Pools
from asched.core.config.merge import ResolvedProfile
from asched.core.framework.group_post_filter import GroupPostFilterPlugin
from asched.core.framework.placements import (
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PlacementScorer,
)
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
from asched.core.framework.registrations import Registration
from asched.core.framework.results.unprepared import Unprepared
from asched.core.framework.status import MISTAKES
from asched.core.model.kinds import NODE, Kind

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


@lru_cache(maxsize=512)
def points_of(cls: type[Plugin]) -> frozenset[str]:
    """The extension points at which a configuration may name this plugin."""
    return cls.listed_at.union(point for point, base in POINTS.items() if issubclass(cls, base))


Factory = Callable[[Any, Cluster], Plugin]

#: Registrations of a plugin that declares none: all changes.
EVERYTHING: Final = (Registration(Trigger(WILDCARD, Action.ALL)),)


class CannotBuildError(Exception):
    """A profile with an unknown plugin, or a plugin with invalid arguments."""


class Scorer(msgspec.Struct, frozen=True):
    plugin: ScorePlugin
    weight: int
    pre_score: PreScorePlugin | None


class Filterer(msgspec.Struct, frozen=True):
    """A filter with the PreFilter of the same plugin, if that is enabled, too."""

    plugin: FilterPlugin
    pre_filter: PreFilterPlugin | None


class Profile(msgspec.Struct, frozen=True):
    """One scheduler name and everything that runs for its pods."""

    scheduler_name: str
    percentage_of_nodes_to_score: int
    always_check_all_filters: bool
    plugins: Mapping[str, Plugin]
    queue_sort: QueueSortPlugin
    pre_enqueue: tuple[PreEnqueuePlugin, ...] = ()
    pre_filters: tuple[PreFilterPlugin, ...] = ()
    filters: tuple[Filterer, ...] = ()
    post_filters: tuple[PostFilterPlugin, ...] = ()
    scorers: tuple[Scorer, ...] = ()
    reserves: tuple[ReservePlugin, ...] = ()
    permits: tuple[PermitPlugin, ...] = ()
    pre_binds: tuple[PreBindPlugin, ...] = ()
    binds: tuple[BindPlugin, ...] = ()
    post_binds: tuple[PostBindPlugin, ...] = ()
    group_post_filters: tuple[GroupPostFilterPlugin, ...] = ()
    placement_generators: tuple[PlacementGeneratePlugin, ...] = ()
    placement_scorers: tuple[PlacementScorer, ...] = ()
    registrations: Mapping[str, tuple[Registration, ...]] = msgspec.field(default_factory=dict)
    extra_events: Mapping[str, tuple[Registration, ...]] = msgspec.field(default_factory=dict)
    #: Of the configuration; None: it has none.
    pools: Pools | None = None

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds its plugins read besides pods and nodes, each once."""
        plugins = self.plugins.values()
        return tuple(dict.fromkeys(kind for plugin in plugins for kind in plugin.kinds))


def build(
    resolved: ResolvedProfile,
    factories: Mapping[str, Factory],
    cluster: Cluster,
    percentage_of_nodes_to_score: int = 0,
    group_point: str = "postFilter",
    pools: Pools | None = None,
) -> Profile:
    """Create the plugins of a profile and put them at their points. Raises CannotBuildError.

    `group_point`: the point whose plugins make room for whole pod groups, if they can.
    """
    args = {config.name: config.args for config in resolved.profile.plugin_configs}
    made: dict[str, Plugin] = {}
    for name in resolved.plugin_names:
        factory = factories.get(name)
        if factory is None:
            raise CannotBuildError(f"plugin {name!r} is enabled but does not exist")
        try:
            made[name] = factory(args.get(name), cluster)
        except ValueError as error:
            raise CannotBuildError(f'initializing plugin "{name}": {error}') from error

    def at(point: str) -> tuple[Any, ...]:
        base = POINTS[point]
        chosen = [made[entry.name] for entry in resolved.at(point)]
        serving = [plugin for plugin in chosen if isinstance(plugin, base)]
        for plugin in chosen:
            if plugin not in serving and point not in plugin.listed_at:
                raise CannotBuildError(f'plugin "{plugin.name}" does not extend {point} plugin')
        return tuple(serving)

    pre_filters, pre_scores = at("preFilter"), at("preScore")
    percentage = resolved.profile.percentage_of_nodes_to_score
    return Profile(
        scheduler_name=resolved.scheduler_name,
        percentage_of_nodes_to_score=(
            percentage_of_nodes_to_score if percentage is None else percentage
        ),
        always_check_all_filters=resolved.profile.always_check_all_filters,
        plugins=made,
        queue_sort=at("queueSort")[0],
        pre_enqueue=at("preEnqueue"),
        pre_filters=pre_filters,
        filters=tuple(_filterer(plugin, pre_filters) for plugin in at("filter")),
        post_filters=at("postFilter"),
        scorers=tuple(
            Scorer(plugin, entry.weight, plugin if plugin in pre_scores else None)
            for plugin, entry in zip(at("score"), resolved.at("score"), strict=True)
        ),
        reserves=at("reserve"),
        permits=at("permit"),
        pre_binds=at("preBind"),
        binds=at("bind"),
        post_binds=at("postBind"),
        group_post_filters=tuple(
            plugin for plugin in at(group_point) if isinstance(plugin, GroupPostFilterPlugin)
        ),
        placement_generators=at("placementGenerate"),
        placement_scorers=tuple(
            PlacementScorer(plugin, entry.weight)
            for plugin, entry in zip(
                at("placementScore"), resolved.at("placementScore"), strict=True
            )
        ),
        registrations=registrations_of(resolved, made),
        extra_events={name: tuple(made[name].extra_events()) for name in _rejecting(resolved)},
        pools=pools,
    )


def _filterer(plugin: FilterPlugin, pre_filters: tuple[Any, ...]) -> Filterer:
    if plugin in pre_filters:
        return Filterer(plugin, plugin)  # type: ignore[arg-type]
    return Filterer(Unprepared(plugin) if plugin.without_pre_filter else plugin, None)


def registrations_of(
    resolved: ResolvedProfile, made: Mapping[str, Plugin]
) -> dict[str, tuple[Registration, ...]]:
    """The changes that requeue pods rejected by each plugin that can reject at some point."""
    found = {}
    for name in _rejecting(resolved):
        try:
            found[name] = with_implicit(made[name].registrations())
        except MISTAKES as error:
            text = f"{type(error).__name__}: {error}"
            raise CannotBuildError(
                f'plugin "{name}" failed to list its registrations: {text}'
            ) from error
    return found


def _rejecting(resolved: ResolvedProfile) -> Iterable[str]:
    points = ("preEnqueue", "preFilter", "filter", "reserve", "permit")
    return dict.fromkeys(entry.name for point in points for entry in resolved.at(point))


def with_implicit(registrations: Sequence[Registration] | None) -> tuple[Registration, ...]:
    """Upstream's addition: a plugin registered for new nodes also gets every change of taints."""
    if registrations is None:
        return EVERYTHING
    node_actions = Action(0)
    for registration in registrations:
        if registration.trigger.resource == NODE.resource:
            node_actions |= registration.trigger.action
    if node_actions & Action.ADD and not node_actions & Action.UPDATE_NODE_TAINT:
        taints = Registration(Trigger(NODE.resource, Action.UPDATE_NODE_TAINT))
        return (*registrations, taints)
    return tuple(registrations)
