"""The cached states of a profile's classes, limited in bytes; the least recently used are dropped
first.

If no two pods are equal, results are not reused. Classes used only once are in a short queue of
their own: they displace no other class. Benchmark `decide-different`, 3,000 pods on 5,000 nodes:
131 MB; with one queue 179.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final, NamedTuple
from weakref import ref

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.framework.points import IDLE, PreFilterPlugin
from asched.core.framework.profile import Filterer, Profile, Scorer
from asched.core.framework.results.active_plugins import ActivePlugins, cached_plugins, without
from asched.core.framework.results.cached import CachedScores, CachedVerdict
from asched.core.framework.results.class_state import ClassState
from asched.core.framework.results.feasible import Feasible
from asched.core.framework.results.operation_counts import OperationCounts
from asched.core.framework.results.prepared import Prepared, PreparedFilter, PreparedScores
from asched.core.framework.results.ranking import Ranking
from asched.core.framework.results.shared_results import Entry, SharedResults
from asched.core.framework.results.weighted_points import WeightedPoints
from asched.core.framework.status import MISTAKES, raise_plugin_error

#: Limit of all cached results of a profile ...
BYTES_MAX: Final = 96 << 20
#: ... where a class counts for this besides its rows: four times its size, since thousands of
#: classes are useless in a small cluster ...
CLASS_BYTES: Final = 64 << 10
#: ... but at least this number of classes is cached.
CLASSES_MIN: Final = 4

#: The share for classes used only once, ...
ONCE_SHARE: Final = 1 / 32
#: ... and for results that no class uses any more.
UNUSED_SHARE: Final = 1 / 8

#: Bytes per row of a filter's result, of a scorer's, ...
CODE_BYTES, SCORE_BYTES = 4, 8
#: ... and of a class itself: feasibility and total. Also of normalized scores.
STATE_BYTES: Final = 9


#: The data of a class of pods that each plugin reads, in the order of `cached_plugins`.
Keys = tuple[Hashable, ...]

#: A number per cache: a class of pods may outlive the profile.
_numbers: Final = count(1)


class _CacheEntry:
    """The cached state for one set of keys. Found by identity: the keys are long, and hashing them
    for every pod would cost more than the rest of the lookup. Benchmark `decide-plain`: 217 calls a
    pod; with share keys for every pod 248.
    """

    __slots__ = ("__weakref__", "held", "keys", "me", "own", "queue", "state")

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        #: for classes of pods, which may outlive the profile and must not keep its results
        self.me = ref(self)
        #: None until it is made
        self.state: ClassState | None = None
        #: the queue it is in
        self.queue: EntryQueue
        #: its own bytes per row, and the shared results it uses
        self.own = 0
        self.held: list[Entry] = []


EntryQueue = OrderedDict[_CacheEntry, None]


class _TakingPart(NamedTuple):
    """The active plugins of a class, and which of its keys each of them reads."""

    active_plugins: ActivePlugins
    filters: tuple[tuple[Filterer, int], ...]
    scorers: tuple[tuple[Scorer, int], ...]
    pre_filters: tuple[PreFilterPlugin, ...]  # without a filter
    own: int  # own bytes per row


class ClassCache:
    """Makes the states of classes, and shares the results of single plugins between them."""

    def __init__(self, profile: Profile, cluster: Cluster) -> None:
        self.profile = profile
        self.cluster = cluster
        self.work = OperationCounts()
        self._number = next(_numbers)
        self._by_keys: dict[Keys, _CacheEntry] = {}
        #: of both, the least recently used comes first
        self._once: EntryQueue = OrderedDict()
        self._reused: EntryQueue = OrderedDict()
        self._plugins = cached_plugins(profile)
        self._names = tuple(plugin.name for plugin in self._plugins)
        self._taking_part_by_idle: dict[tuple[str, ...], _TakingPart] = {}
        self._own_bytes = 0  # per row, of the states themselves
        self._shared = SharedResults()

    @property
    def size(self) -> int:
        """The number of cached classes."""
        return len(self._once) + len(self._reused)

    def state_of(self, pod: PodInfo) -> ClassState:
        """The state of the pod's class, made if it is new.

        Classes that no plugin distinguishes share one state: pods that differ only in unused labels
        cost as much as equal pods. Plugins may distinguish classes later, when objects or terms
        change.
        """
        cluster, keys = self.cluster, pod.cls.keys
        epoch, terms = cluster.epoch, cluster.topology.terms_generation
        known = keys.get(self._number)
        if known is not None and known[0] == epoch and known[1] == terms:
            found: _CacheEntry | None = known[2]()
            if found is not None and found.state is not None:
                self._reuse(found)
                return found.state
        if pod.cls.refusal:  # longer than other keys: a state of its own also without plugins
            share_keys: tuple[Hashable, ...] = (pod.cls.refusal,) * (len(self._plugins) + 1)
        else:
            try:
                share_keys = tuple([(asked := plugin).share_key(pod) for plugin in self._plugins])
            except MISTAKES as raised:
                raise_plugin_error(asked.name, "schedule", raised)
        kept = self._by_keys.get(share_keys) or _CacheEntry(share_keys)
        keys[self._number] = (epoch, terms, kept.me)
        if kept.state is not None:
            self._reuse(kept)
            return kept.state
        state = kept.state = self._make(kept)
        self._by_keys[share_keys] = kept
        kept.queue = self._once if known is None else self._reused
        kept.queue[kept] = None
        self._drop_unused()
        return state

    def _reuse(self, kept: _CacheEntry) -> None:
        reused = self._reused
        if kept.queue is not reused:
            del kept.queue[kept]
            kept.queue = reused
            reused[kept] = None
        reused.move_to_end(kept)

    @contextmanager
    def unmeasured(self) -> Iterator[None]:
        """Measure no plugin meanwhile."""
        meter, self.work.meter = self.work.meter, None
        try:
            yield
        finally:
            self.work.meter = meter

    @property
    def bytes(self) -> int:
        """The approximate size of the cached results."""
        height = self.cluster.nodes.height
        own = self._own_bytes * height + CLASS_BYTES * self.size
        return own + self._shared.bytes(height)

    def _drop_unused(self) -> None:
        """Drop states; those used once have about the same size each."""
        own, size, height = self._own_bytes, self.size, self.cluster.nodes.height
        once, each = len(self._once), CLASS_BYTES + own // size * height
        while once > CLASSES_MIN and once * each > ONCE_SHARE * BYTES_MAX:
            self._drop(self._once)
            once -= 1
        while self.bytes > BYTES_MAX and self.size > CLASSES_MIN:
            self._drop(self._reused or self._once)

    def _drop(self, queue: EntryQueue) -> None:
        kept, _ = queue.popitem(last=False)
        del self._by_keys[kept.keys]
        self._own_bytes -= kept.own
        self._shared.leave(kept.held)
        self._shared.drop_unused(UNUSED_SHARE * BYTES_MAX, self.cluster.nodes.height)

    def give_up(self) -> Iterator[None]:
        """Drop everything, class by class, when the cache is no longer used: plugins and objects
        that refer to them form cycles that would keep the cached results alive.
        """
        for queue in (self._once, self._reused):
            while queue:
                self._drop(queue)
                self._shared.drop_unused(0, self.cluster.nodes.height)
                yield

    def _make(self, kept: _CacheEntry) -> ClassState:
        keys, nodes = kept.keys, self.cluster.nodes
        idle = [name for name, key in zip(self._names, keys, strict=False) if key is IDLE]
        part = self._taking_part(tuple(idle))
        take, feasible = self._shared.take, Feasible(nodes)
        points: list[WeightedPoints] = []
        held = kept.held = [
            take(("Filter", filterer.plugin.name, keys[at]), CODE_BYTES, self._verdict, filterer)
            for filterer, at in part.filters
        ]
        verdicts: list[CachedVerdict] = [entry.result for entry in held]
        for scorer, at in part.scorers:
            if scorer.plugin.reads_feasible:  # depends on one feasible set, so on one class
                scores = self._scores(scorer)
            else:
                key = ("Score", scorer.plugin.name, keys[at])
                held.append(take(key, SCORE_BYTES, self._scores, scorer))
                scores = held[-1].result
            points.append(WeightedPoints(nodes, scores, scorer, feasible))
        kept.own = part.own
        self._own_bytes += kept.own
        zero_scorers, floor = part.active_plugins.zero_scorers, 0 if self.profile.scorers else 1
        return ClassState(
            self.cluster,
            part.active_plugins,
            verdicts,
            [PreparedFilter(plugin, self.cluster, self.work) for plugin in part.pre_filters],
            Ranking(self.cluster, feasible, points, zero_scorers=zero_scorers, floor=floor),
            feasible,
            asks_all=self.profile.always_check_all_filters,
        )

    def _taking_part(self, idle: tuple[str, ...]) -> _TakingPart:
        part = self._taking_part_by_idle.get(idle)
        if part is None:
            active_plugins = without(self.profile, idle)
            filters, scorers = active_plugins.filters, active_plugins.scorers
            judged = {f.plugin.name for f in filters if f.pre_filter is not None}
            # per row: data that no other state uses
            own = sum(s.plugin.reads_feasible + s.plugin.normalizes for s in scorers)
            part = self._taking_part_by_idle[idle] = _TakingPart(
                active_plugins,
                tuple([(f, self._names.index(f.plugin.name)) for f in filters]),
                tuple([(s, self._names.index(s.plugin.name)) for s in scorers]),
                tuple([p for p in active_plugins.pre_filters if p.name not in judged]),
                STATE_BYTES + SCORE_BYTES * own,
            )
        return part

    def _verdict(self, filterer: Filterer) -> CachedVerdict:
        half, cluster, work = filterer.pre_filter, self.cluster, self.work
        prepared = (
            Prepared(filterer.plugin, cluster, work)
            if half is None
            else PreparedFilter(half, cluster, work)
        )
        return CachedVerdict(cluster.nodes, prepared, work)

    def _scores(self, scorer: Scorer) -> CachedScores:
        cluster, work = self.cluster, self.work
        prepared = PreparedScores(scorer.plugin, scorer.pre_score, cluster, work)
        return CachedScores(cluster.nodes, prepared, work)
