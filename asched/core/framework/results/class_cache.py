"""All kept work of one profile, bounded in bytes: what was unused for longest goes first."""

from collections import OrderedDict
from collections.abc import Hashable
from itertools import count
from typing import Final

from asched.core.framework.points import IDLE
from asched.core.framework.profile import Filterer, Profile, Scorer
from asched.core.framework.results.active_plugins import ActivePlugins, cached_plugins, without
from asched.core.framework.results.cached import CachedScores, CachedVerdict
from asched.core.framework.results.classes import ClassState
from asched.core.framework.results.feasible import Feasible
from asched.core.framework.results.prepared import Prepared, PreparedFilter, PreparedScores, Work
from asched.core.framework.results.ranking import Ranking
from asched.core.framework.results.shared import SharedResults
from asched.core.framework.results.weighted import WeightedPoints
from asched.core.state.cluster import Cluster
from asched.core.state.pods import PodInfo

#: What all kept work of a profile takes at most ...
BYTES_MAX: Final = 96 << 20
#: ... where a class counts for this beside its rows: four times what it takes, since thousands of
#: classes are of no use in a small cluster ...
CLASS_BYTES: Final = 64 << 10
#: ... but never fewer classes than this.
CLASSES_MIN: Final = 4

#: Which part of it may be results that no class uses any more.
UNUSED_SHARE: Final = 1 / 8

#: Bytes a row of a filter's answer, of a scorer's, ...
CODE_BYTES, SCORE_BYTES = 4, 8
#: ... and of what a class has of its own: whether it fits, and its total. Normalised scores, too.
STATE_BYTES: Final = 9


#: What each plugin reads of a class of pods, in the order of `cached_plugins`.
Keys = tuple[Hashable, ...]

#: Each cache has a number of its own: a class of pods may outlive the profile it was asked about.
_numbers: Final = count(1)


class ClassCache:
    """Makes the states of classes, and shares the answers of single plugins between them."""

    def __init__(self, profile: Profile, cluster: Cluster) -> None:
        self.profile = profile
        self.cluster = cluster
        self.work = Work()
        self._number = next(_numbers)
        self._states: OrderedDict[Keys, ClassState] = OrderedDict()
        self._plugins = cached_plugins(profile)
        self._names = tuple(plugin.name for plugin in self._plugins)
        self._active_plugins_by_key: dict[tuple[str, ...], ActivePlugins] = {}
        #: of each state: its own bytes a row, and the keys of the shared results it uses
        self._held: dict[Keys, tuple[int, list[Hashable]]] = {}
        self._own_bytes = 0  # a row, of the states themselves
        self._shared = SharedResults()

    @property
    def size(self) -> int:
        """Classes whose work is kept."""
        return len(self._states)

    def state_of(self, pod: PodInfo) -> ClassState:
        """The state of the pod's class, made if it is new.

        Classes that no plugin tells apart share one state: pods that differ only in labels nobody
        asks for cost what equal pods cost.
        """
        key = self._key_of(pod)
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = self._make(key)
            self._drop_unused()
        else:
            self._states.move_to_end(key)
        return state

    @property
    def bytes(self) -> int:
        """About what the kept work takes."""
        row = self._own_bytes + self._shared.row_bytes
        return row * self.cluster.nodes.height + CLASS_BYTES * len(self._states)

    def _drop_unused(self) -> None:
        while len(self._states) > CLASSES_MIN and self.bytes > BYTES_MAX:
            key, _ = self._states.popitem(last=False)
            own, held = self._held.pop(key)
            self._own_bytes -= own
            self._shared.leave(held)
            self._shared.drop_unused(UNUSED_SHARE * BYTES_MAX / self.cluster.nodes.height)

    def _make(self, keys: Keys) -> ClassState:
        profile = self.profile
        key_of = dict(zip(self._names, keys, strict=True))
        active_plugins = self._active_plugins(
            tuple([name for name, key in key_of.items() if key is IDLE])
        )
        nodes = self.cluster.nodes
        held: list[Hashable] = []
        verdicts = [self._verdict(f, key_of[f.plugin.name], held) for f in active_plugins.filters]
        feasible = Feasible(nodes)
        points = [
            WeightedPoints(nodes, self._cached_scores(s, key_of[s.plugin.name], held), s, feasible)
            for s in active_plugins.scorers
        ]
        # a row: what no other state uses
        unshared = len(verdicts) + len(points) - len(held)
        normalised = sum(one.plugin.normalizes for one in points)
        own = STATE_BYTES + SCORE_BYTES * (unshared + normalised)
        self._held[keys] = own, held
        self._own_bytes += own
        floor = 0 if profile.scorers else 1
        noughts = active_plugins.noughts
        ranking = Ranking(self.cluster, feasible, points, noughts=noughts, floor=floor)
        judged = {f.plugin.name for f in active_plugins.filters if f.pre_filter is not None}
        prepared = [
            PreparedFilter(plugin, self.cluster, self.work)
            for plugin in active_plugins.pre_filters
            if plugin.name not in judged
        ]
        return ClassState(
            self.cluster,
            active_plugins,
            verdicts,
            prepared,
            ranking,
            feasible,
            asks_all=profile.always_check_all_filters,
        )

    def _key_of(self, pod: PodInfo) -> Keys:
        """All share keys together. Plugins may tell classes apart once objects or terms change."""
        cluster = self.cluster
        now = (cluster.epoch, cluster.topology.terms_generation)
        known = pod.cls.keys.get(self._number)
        if known is not None and known[0] == now:
            found: Keys = known[1]
            return found
        key = tuple([plugin.share_key(pod) for plugin in self._plugins])
        pod.cls.keys[self._number] = (now, key)
        return key

    def _active_plugins(self, idle: tuple[str, ...]) -> ActivePlugins:
        active_plugins = self._active_plugins_by_key.get(idle)
        if active_plugins is None:
            active_plugins = self._active_plugins_by_key[idle] = without(self.profile, idle)
        return active_plugins

    def _verdict(self, filterer: Filterer, key: Hashable, held: list[Hashable]) -> CachedVerdict:
        held.append(("Filter", filterer.plugin.name, key))

        def make() -> CachedVerdict:
            half, cluster, work = filterer.pre_filter, self.cluster, self.work
            prepared = (
                Prepared(filterer.plugin, cluster, work)
                if half is None
                else PreparedFilter(half, cluster, work)
            )
            return CachedVerdict(cluster.nodes, prepared, work)

        return self._shared.take(held[-1], CODE_BYTES, make)

    def _cached_scores(self, scorer: Scorer, key: Hashable, held: list[Hashable]) -> CachedScores:
        plugin = scorer.plugin

        def make() -> CachedScores:
            cluster, work = self.cluster, self.work
            prepared = PreparedScores(plugin, scorer.pre_score, cluster, work)
            return CachedScores(cluster.nodes, prepared, work)

        if plugin.reads_feasible:  # belongs to one feasible set, so to one class
            return make()
        held.append(("Score", plugin.name, key))
        return self._shared.take(held[-1], SCORE_BYTES, make)
