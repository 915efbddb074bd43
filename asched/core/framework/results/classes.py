"""Shared results of equal pods: the nodes on which a class of pods fits.

There is one `ClassState` per profile and class of pods. It updates the cached results of its
filters (see `by_row.py`) and folds them into a mask; its `Ranking` does the same for all scorers.
After a decision only changes are processed: an equal pod costs the rows of the changed nodes, and
one search for the largest total.

    Prepared (PreFilter) ──> CachedVerdict.codes ──> Feasible.mask ─────┐
    Prepared (PreScore) ───> CachedScores.raw ──> WeightedPoints ──> Ranking.totals

The plugins of a profile that are active for a class of pods.

Most plugins concern pods with volumes, devices, ports or affinities. For all other pods they are
*idle* (`IDLE` as share key): their PreFilter and PreScore would skip, their filter would reject
nothing, their Reserve would store nothing. `ActivePlugins` is a profile without its idle plugins,
so that these cost nothing per pod.

    share keys of a class ── which are IDLE? ──> Roster, one for each such set

Cached results of one profile, limited in bytes; the least recently used are dropped first.

If no two pods are equal, results are not reused. Classes used only once are in a short queue of
their own: they displace no other class, and their arrays, which are freed soon, stay in the CPU
cache.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, Final, NamedTuple, TypeVar
from weakref import ref

import msgspec
import numpy as np
import numpy.typing as npt

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.framework.points import (
    IDLE,
    CachedPlugin,
    FilterPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
)
from asched.core.framework.profile import Filterer, Profile, Scorer
from asched.core.framework.results import feasible
from asched.core.framework.results.by_row import ALWAYS, COUNTS, PLACEMENTS, Moves
from asched.core.framework.results.cached import CachedScores, CachedVerdict
from asched.core.framework.results.feasible import Feasible
from asched.core.framework.results.pre_filter import PreFilterOutcome, pre_filter, refused
from asched.core.framework.results.prepared import (
    OperationCounts,
    Prepared,
    PreparedFilter,
    PreparedScores,
)
from asched.core.framework.results.ranking import Ranking, WeightedPoints
from asched.core.framework.status import MISTAKES, raise_plugin_error

T = TypeVar("T")

#: Size of a result besides its rows: objects, prepared data, key. Some 1.7 kB in
#: `python -m asched_lab.measure.churn`; in a small cluster nearly the whole size.
RESULT_BYTES: Final = 2 << 10


class Entry:
    """A result, and the number of classes that use it."""

    __slots__ = ("key", "result", "row_bytes", "users")

    def __init__(self, key: Hashable, result: Any, row_bytes: int) -> None:
        self.key = key
        self.result = result
        self.row_bytes = row_bytes
        self.users = 1


class SharedResults:
    """Results by plugin and its inputs of a class, with the number of classes that use each.

    Unused results stay until they are dropped: the next class may have the same inputs.
    """

    def __len__(self) -> int:
        return len(self._entries)

    def __init__(self) -> None:
        self._entries: dict[Hashable, Entry] = {}
        self._unused: OrderedDict[Hashable, None] = OrderedDict()  # unused for longest comes first
        #: bytes per row of all results, and of unused ones
        self.row_bytes = self.unused_row_bytes = 0

    def take(self, key: Hashable, row_bytes: int, make: Callable[..., T], *of: Any) -> Entry:
        """Use the result of this key for one more class; `make(*of)` creates a missing one."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = Entry(key, make(*of), row_bytes)
            self.row_bytes += row_bytes
            return entry
        if not entry.users:
            del self._unused[key]
            self.unused_row_bytes -= entry.row_bytes
        entry.users += 1
        return entry

    def leave(self, entries: Iterable[Entry]) -> None:
        """One class less uses these."""
        for entry in entries:
            entry.users -= 1
            if not entry.users:
                self._unused[entry.key] = None
                self.unused_row_bytes += entry.row_bytes

    def bytes(self, height: int) -> int:
        """The size of all results for this number of rows."""
        return self.row_bytes * height + RESULT_BYTES * len(self._entries)

    def drop_unused(self, bytes_max: float, height: int) -> None:
        """Drop unused results beyond this size for this number of rows, those unused for longest
        first.
        """
        unused = self._unused
        while self.unused_row_bytes * height + RESULT_BYTES * len(unused) > bytes_max:
            entry = self._entries.pop(unused.popitem(last=False)[0])
            self.row_bytes -= entry.row_bytes
            self.unused_row_bytes -= entry.row_bytes


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
    noughts: tuple[str, ...]

    @property
    def judges(self) -> tuple[CachedPlugin, ...]:
        """The plugins that decide where a pod fits, each once."""
        asked: list[CachedPlugin] = [filterer.plugin for filterer in self.filters]
        return tuple(dict.fromkeys((*asked, *self.pre_filters)))

    @property
    def keeps_all(self) -> bool:
        """Whether all results about where a pod fits are cached: then they apply to equal pods."""
        return all(plugin.depends_on is not None for plugin in self.judges)


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
        noughts=tuple(
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


I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_numbers: Final = count(1)


class ClassState:
    """The mask and the ranking of one class. Valid for the pod of the last update."""

    def __init__(
        self,
        cluster: Cluster,
        active_plugins: ActivePlugins,
        verdicts: Sequence[CachedVerdict],
        prepared: Sequence[Prepared],
        ranking: Ranking,
        feasible: Feasible,
        *,
        asks_all: bool = False,
    ) -> None:
        """`prepared`: of PreFilter plugins without a filter. `asks_all`: every filter runs for
        every node (alwaysCheckAllPredicates).
        """
        #: unique
        self.number = next(_numbers)
        self._cluster = cluster
        self._asks_all = asks_all
        self.active_plugins = active_plugins
        self._verdicts = tuple(verdicts)
        every = [*[v.prepared for v in verdicts], *prepared]
        self._prepared = {p.plugin.name: p for p in every}
        self._moves = Moves(cluster)
        #: bits of `Moves` -> filters that depend on them
        self._concerned: dict[int, list[CachedVerdict]] = {}
        self._repeats = 0  # bits after which PreFilter runs again
        #: plugins that read counts of pods, with the results that were folded: results are shared,
        #: so another class may have updated them since
        self._counting: list[tuple[Prepared, PreFilterResult]] = []
        self._filters: tuple[str, ...] | None = None
        self._may_fail = [v for v in verdicts if v.plugin.errors_from is not None] != []
        self.ranking = ranking
        self.mask = feasible
        self.outcome = PreFilterOutcome()

    @property
    def feasible(self) -> Mask:
        """bool[N]"""
        return self.mask.mask

    @property
    def feasible_count(self) -> int:
        return self.mask.count

    @property
    def holds(self) -> bool:
        """Whether the filters' results apply to all equal pods until something changes."""
        return not self._repeats & ALWAYS

    @property
    def filters(self) -> tuple[str, ...]:
        """The names of the filters that are active, or accept every pod."""
        if self._filters is None:
            active = tuple(verdict.plugin.name for verdict in self.active)
            self._filters = (*active, *self.active_plugins.passed)
        return self._filters

    @property
    def active(self) -> list[CachedVerdict]:
        """The active filters, in profile order."""
        return self.outcome.active

    def update(self, pod: PodInfo, *, spares: bool = False) -> PreFilterOutcome:
        """Update everything but the ranking. Raises PointError.

        `spares`: ignore failed filters, since one node is checked before all others.
        """
        moved = self._moves.look()
        if moved & self._repeats or not self._repeats:
            self._fold_pre_filter(pod)
        elif moved & COUNTS:
            self._look_at_counts(pod)
        if self.outcome.rejection is None:
            self._judge(pod, moved)
            self._moves.settle()  # else the filters have not processed the changes
            if self._may_fail and not spares:
                self.end_on_errors(pod)
        return self.outcome

    def end_on_errors(self, pod: PodInfo) -> None:
        """Raises PointError if a filter failed on a node that was reached."""
        live = self._cluster.nodes.columns.read("live")
        feasible.end_on_errors(pod, self.active, live, self.outcome.rows)

    # --- inside ----------------------------------------------------------------------------------

    def _fold_pre_filter(self, pod: PodInfo) -> None:
        """Run every PreFilter with changed inputs, and fold all results."""
        self._repeats = 0  # until all have run
        self._concerned.clear()
        self._filters = None
        plugins = self.active_plugins.pre_filters
        if pod.cls.refusal:
            self.outcome = refused(pod.cls.refusal)
        else:
            self.outcome = pre_filter(pod, self._cluster, plugins, self._prepared, self._verdicts)
        if self.outcome.rejection is None:
            self._repeats, self._counting = ~PLACEMENTS, []
            for prepared in self._prepared.values():
                self._repeats |= prepared.reads & ~COUNTS
                if prepared.reads & COUNTS:
                    self._counting.append((prepared, prepared.result))
            self.mask.fold(self.active, self.outcome.rows)

    def _look_at_counts(self, pod: PodInfo) -> None:
        """Run those that read counts of pods; the others follow if a result has changed."""
        for prepared, folded in self._counting:
            now = prepared.update(pod)
            if now is not folded and now[:2] != folded[:2]:  # status, node names
                self._fold_pre_filter(pod)
                return

    def _judge(self, pod: PodInfo, moved: int) -> None:
        """Update codes and mask."""
        concerned = self.active if moved & ~PLACEMENTS else self._concerned.get(moved)
        if concerned is None:
            concerned = [v for v in self.active if v.reads & moved or v.plugin.asks_left]
            self._concerned[moved] = concerned
        try:
            for verdict in concerned:
                if verdict.plugin.asks_left and not self._asks_all:
                    verdict.ask_left(pod, self._left_for(verdict))
                else:
                    verdict.refresh(pod)
        except MISTAKES as raised:
            raise_plugin_error(verdict.plugin.name, "filter", raised)
        self.mask.refresh()

    def _left_for(self, asker: CachedVerdict) -> Mask:
        """The rows that no filter before this one rejected."""
        left: Mask = self._cluster.nodes.columns.read("live")[: self._cluster.nodes.height].copy()
        if self.outcome.rows is not None:
            narrowed = np.zeros(len(left), dtype=np.bool_)
            narrowed[list(self.outcome.rows)] = True
            left &= narrowed
        for verdict in self.active:
            if verdict is asker:
                break
            left &= verdict.codes == 0
        return left

    # --- for readers -----------------------------------------------------------------------------

    def fits(self, row: int) -> bool:
        """Whether the filters accept the pod on a row, regardless of PreFilter's node names."""
        if self.outcome.rows is None or row in self.outcome.rows:
            return self.mask.has(row)
        if not self._cluster.nodes.columns.read("live")[row]:
            return False
        return not any(verdict.plugin.asks_left or verdict.code_of(row) for verdict in self.active)

    def rank(self, pod: PodInfo, feasible: Mask | None = None) -> I64:
        """int64[N]: the total of each feasible row, NOT_FEASIBLE elsewhere.

        `feasible` restricts the set for this attempt (nominated pods, extenders, sampling); such a
        ranking is not cached.
        """
        if feasible is not None:
            return self.ranking.once(pod, feasible)
        return self.ranking.of(pod)

    def data_of(self, plugin: str) -> Any:
        """The data of a plugin's PreFilter; None without one."""
        prepared = self._prepared.get(plugin)
        return None if prepared is None else prepared.result.data

    def judges(self) -> tuple[I32, I32, list[FilterPlugin]]:
        """(judge, codes, plugins): per row 1 + the first rejecting plugin, and its code."""
        height = self._cluster.nodes.height
        judge = np.zeros(height, dtype=np.int32)
        codes = np.zeros(height, dtype=np.int32)
        plugins: list[FilterPlugin] = []
        for index, verdict in enumerate(self.active):
            plugins.append(verdict.plugin)
            if verdict.is_uniform:  # the usual case
                continue
            fresh = (judge == 0) & (verdict.codes != 0)
            judge[fresh] = index + 1
            codes[fresh] = verdict.codes[fresh]
        return judge, codes, plugins


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


class _CacheEntry:
    """The cached state for one set of keys. Found by identity: the keys are long, and hashing them
    for every pod would cost more than the rest of the lookup.
    """

    __slots__ = ("__weakref__", "held", "keys", "line", "me", "own", "state")

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        #: for classes of pods, which may outlive the profile and must not keep its results
        self.me = ref(self)
        #: None until it is made
        self.state: ClassState | None = None
        #: the queue it is in
        self.line: Line
        #: its own bytes per row, and the shared results it uses
        self.own = 0
        self.held: list[Entry] = []


Line = OrderedDict[_CacheEntry, None]


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
        self._once: Line = OrderedDict()
        self._again: Line = OrderedDict()
        self._plugins = cached_plugins(profile)
        self._names = tuple(plugin.name for plugin in self._plugins)
        self._taking_part_by_idle: dict[tuple[str, ...], _TakingPart] = {}
        self._own_bytes = 0  # per row, of the states themselves
        self._shared = SharedResults()

    @property
    def size(self) -> int:
        """The number of cached classes."""
        return len(self._once) + len(self._again)

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
                self._use_again(found)
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
            self._use_again(kept)
            return kept.state
        state = kept.state = self._make(kept)
        self._by_keys[share_keys] = kept
        kept.line = self._once if known is None else self._again
        kept.line[kept] = None
        self._drop_unused()
        return state

    def _use_again(self, kept: _CacheEntry) -> None:
        again = self._again
        if kept.line is not again:
            del kept.line[kept]
            kept.line = again
            again[kept] = None
        again.move_to_end(kept)

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
            self._drop(self._again or self._once)

    def _drop(self, line: Line) -> None:
        kept, _ = line.popitem(last=False)
        del self._by_keys[kept.keys]
        self._own_bytes -= kept.own
        self._shared.leave(kept.held)
        self._shared.drop_unused(UNUSED_SHARE * BYTES_MAX, self.cluster.nodes.height)

    def give_up(self) -> Iterator[None]:
        """Drop everything, class by class, when the cache is no longer used: plugins and objects
        that refer to them form cycles that would keep the cached results alive.
        """
        for line in (self._once, self._again):
            while line:
                self._drop(line)
                self._shared.drop_unused(0, self.cluster.nodes.height)
                yield

    def _make(self, kept: _CacheEntry) -> ClassState:
        keys, nodes = kept.keys, self.cluster.nodes
        idle = [name for name, key in zip(self._names, keys, strict=False) if key is IDLE]
        part = self._taking_part(tuple(idle))
        take, feasible, points = self._shared.take, Feasible(nodes), list[WeightedPoints]()
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
        noughts, floor = part.active_plugins.noughts, 0 if self.profile.scorers else 1
        return ClassState(
            self.cluster,
            part.active_plugins,
            verdicts,
            [PreparedFilter(plugin, self.cluster, self.work) for plugin in part.pre_filters],
            Ranking(self.cluster, feasible, points, noughts=noughts, floor=floor),
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
