"""All kept work of one profile, bounded: what was unused for longest goes first."""

from collections import OrderedDict
from collections.abc import Hashable
from itertools import count
from typing import Any, Final

from asched.core.framework.classes import ClassState
from asched.core.framework.kept import KeptScores, KeptVerdict, Work
from asched.core.framework.points import IDLE, ScorePlugin
from asched.core.framework.profile import Filterer, Profile
from asched.core.framework.ranking import Ranking
from asched.core.framework.roster import Roster, cached_plugins, without
from asched.core.framework.weighted import WeightedPoints
from asched.core.state.cluster import Cluster
from asched.core.state.pods import PodInfo

#: Classes whose work is kept, per profile. At 5,000 nodes a class holds about 0.4 MB (a dozen
#: plugins with 4 to 8 bytes a row), so 256 of them take 100 MB at most.
CLASSES_MAX: Final = 256
#: Answers of single plugins kept for reuse between classes, per plugin.
ANSWERS_MAX: Final = 512


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
        self._rosters: dict[tuple[str, ...], Roster] = {}
        self._verdicts: dict[str, OrderedDict[Hashable, KeptVerdict]] = {
            filterer.plugin.name: OrderedDict() for filterer in profile.filters
        }
        self._scores: dict[str, OrderedDict[Hashable, KeptScores]] = {
            scorer.plugin.name: OrderedDict() for scorer in profile.scorers
        }

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
            if len(self._states) > CLASSES_MAX:
                self._states.popitem(last=False)
        else:
            self._states.move_to_end(key)
        return state

    def _make(self, keys: Keys) -> ClassState:
        profile, work = self.profile, self.work
        key_of = dict(zip(self._names, keys, strict=True))
        roster = self._roster(tuple([name for name, key in key_of.items() if key is IDLE]))
        verdicts = [self._verdict(f, key_of[f.plugin.name]) for f in roster.filters]
        points = [
            WeightedPoints(self._kept_scores(s.plugin, key_of[s.plugin.name]), s)
            for s in roster.scorers
        ]
        floor = 0 if profile.scorers else 1
        ranking = Ranking(self.cluster, work, points, noughts=roster.noughts, floor=floor)
        asks_all = profile.always_check_all_filters
        return ClassState(self.cluster, roster, work, verdicts, ranking, asks_all=asks_all)

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

    def _roster(self, idle: tuple[str, ...]) -> Roster:
        roster = self._rosters.get(idle)
        if roster is None:
            roster = self._rosters[idle] = without(self.profile, idle)
        return roster

    def _verdict(self, filterer: Filterer, key: Hashable) -> KeptVerdict:
        answers = self._verdicts[filterer.plugin.name]
        kept = answers.get(key)
        if kept is None:
            kept = KeptVerdict(filterer.plugin, filterer.pre_filter, self.work)
            _remember(answers, key, kept)
        return kept

    def _kept_scores(self, plugin: ScorePlugin, key: Hashable) -> KeptScores:
        if plugin.reads_feasible:  # belongs to one feasible set, so to one class
            return KeptScores(plugin)
        answers = self._scores[plugin.name]
        kept = answers.get(key)
        if kept is None:
            kept = KeptScores(plugin)
            _remember(answers, key, kept)
        return kept


def _remember(answers: OrderedDict[Hashable, Any], key: Hashable, kept: Any) -> None:
    answers[key] = kept
    if len(answers) > ANSWERS_MAX:
        answers.popitem(last=False)
