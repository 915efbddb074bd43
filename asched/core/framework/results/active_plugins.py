"""The plugins of a profile that are active for a class of pods.

Most plugins concern pods with volumes, devices, ports or affinities. For all other pods they are
*idle* (`IDLE` as share key): their PreFilter and PreScore would skip, their filter would reject
nothing, their Reserve would store nothing. `ActivePlugins` is a profile without its idle plugins,
so that these cost nothing per pod.

    share keys of a class ── which are IDLE? ──> ActivePlugins

Classes with the same idle plugins share one. Benchmark `decide-plain`: 217 calls a pod; with all
plugins 255.
"""

from collections.abc import Collection, Iterable

import msgspec

from asched.core.framework.points import CachedPlugin, PreBindPlugin, PreFilterPlugin, ReservePlugin
from asched.core.framework.profile import Filterer, Profile, Scorer


class ActivePlugins(msgspec.Struct, frozen=True):
    """Each point's plugins in profile order. `idle` are the names of the omitted ones."""

    idle: frozenset[str]
    pre_filters: tuple[PreFilterPlugin, ...]
    filters: tuple[Filterer, ...]
    scorers: tuple[Scorer, ...]
    reserves: tuple[ReservePlugin, ...]
    pre_binds: tuple[PreBindPlugin, ...]
    #: idle filters without a PreFilter: they count as called, and accept every node
    passed: tuple[str, ...]
    #: idle scorers whose PreScore is absent or does not skip: they score every node 0
    zero_scorers: tuple[str, ...]

    @property
    def deciding(self) -> tuple[CachedPlugin, ...]:
        """The plugins that decide where a pod fits, each once."""
        asked: list[CachedPlugin] = [filterer.plugin for filterer in self.filters]
        return tuple(dict.fromkeys((*asked, *self.pre_filters)))

    @property
    def keeps_all(self) -> bool:
        """Whether all results about where a pod fits are cached: then they apply to equal pods."""
        return all(plugin.depends_on is not None for plugin in self.deciding)


def cached_plugins(profile: Profile) -> tuple[CachedPlugin, ...]:
    """Every plugin with cached results, each once: the filters, then the other scorers."""
    found: dict[str, CachedPlugin] = {f.plugin.name: f.plugin for f in profile.filters}
    for scorer in profile.scorers:
        found.setdefault(scorer.plugin.name, scorer.plugin)
    return tuple(found.values())


def without(profile: Profile, idle: Collection[str]) -> ActivePlugins:
    """The profile without these plugins."""
    silent = frozenset(idle)
    return ActivePlugins(
        idle=silent,
        pre_filters=tuple(p for p in profile.pre_filters if p.name not in silent),
        filters=tuple(f for f in profile.filters if f.plugin.name not in silent),
        scorers=tuple(s for s in profile.scorers if s.plugin.name not in silent or _fails(s)),
        reserves=tuple(p for p in profile.reserves if p.name not in silent),
        pre_binds=tuple(p for p in profile.pre_binds if p.name not in silent),
        passed=tuple(
            f.plugin.name
            for f in profile.filters
            if f.plugin.name in silent and f.pre_filter is None
        ),
        zero_scorers=tuple(
            s.plugin.name
            for s in profile.scorers
            if s.plugin.name in silent
            and (s.pre_score is None or s.plugin.scores_idle)
            and not _fails(s)
        ),
    )


def _fails(scorer: Scorer) -> bool:
    """Whether it fails the attempt of any pod: its PreScore is missing."""
    return scorer.pre_score is None and bool(scorer.plugin.without_pre_score)


def up_to(plugins: Iterable[PreFilterPlugin], last: str) -> frozenset[str]:
    """The names of the plugins that run until `last` ends the step; all if none ends it."""
    ran = set()
    for plugin in plugins:
        ran.add(plugin.name)
        if plugin.name == last:
            break
    return frozenset(ran)
