"""All kept work of one profile, bounded: what was unused for longest goes first."""

from collections import OrderedDict
from collections.abc import Hashable
from itertools import count
from typing import Any, Final

from asched.core.framework.classes import ClassState
from asched.core.framework.kept import KeptScores, KeptVerdict, Work
from asched.core.framework.profile import Profile
from asched.core.framework.ranking import Ranking
from asched.core.framework.weighted import WeightedPoints
from asched.core.state.cluster import Cluster
from asched.core.state.pods import PodInfo

#: Classes whose work is kept, per profile. At 5,000 nodes a class holds about 0.4 MB (a dozen
#: plugins with 4 to 8 bytes a row), so 256 of them take 100 MB at most.
CLASSES_MAX: Final = 256
#: Answers of single plugins kept for reuse between classes, per plugin.
ANSWERS_MAX: Final = 512


#: What each plugin of a point reads of a class of pods, in the order of the profile.
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
        self._states: OrderedDict[Hashable, ClassState] = OrderedDict()
        self._verdicts: list[OrderedDict[Hashable, KeptVerdict]] = [
            OrderedDict() for _ in profile.filters
        ]
        self._scores: list[OrderedDict[Hashable, KeptScores]] = [
            OrderedDict() for _ in profile.scorers
        ]

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
            state = self._states[key] = self._make(*key)
            if len(self._states) > CLASSES_MAX:
                self._states.popitem(last=False)
        else:
            self._states.move_to_end(key)
        return state

    def _make(self, filter_keys: Keys, score_keys: Keys) -> ClassState:
        profile = self.profile
        verdicts = [self._verdict(index, key) for index, key in enumerate(filter_keys)]
        points = [
            WeightedPoints(self._kept_scores(index, key), profile.scorers[index])
            for index, key in enumerate(score_keys)
        ]
        ranking = Ranking(self.cluster, self.work, points)
        return ClassState(self.cluster, profile, self.work, verdicts, ranking)

    def _key_of(self, pod: PodInfo) -> tuple[Keys, Keys]:
        """All share keys together. Plugins may tell classes apart once objects or terms change."""
        cluster = self.cluster
        now = (cluster.epoch, cluster.topology.terms_generation)
        known = pod.cls.keys.get(self._number)
        if known is not None and known[0] == now:
            found: tuple[Keys, Keys] = known[1]
            return found
        key = (
            tuple([filterer.plugin.share_key(pod) for filterer in self.profile.filters]),
            tuple([scorer.plugin.share_key(pod) for scorer in self.profile.scorers]),
        )
        pod.cls.keys[self._number] = (now, key)
        return key

    def _verdict(self, index: int, key: Hashable) -> KeptVerdict:
        kept = self._verdicts[index].get(key)
        if kept is None:
            filterer = self.profile.filters[index]
            kept = KeptVerdict(filterer.plugin, filterer.pre_filter, self.work)
            _remember(self._verdicts[index], key, kept)
        return kept

    def _kept_scores(self, index: int, key: Hashable) -> KeptScores:
        plugin = self.profile.scorers[index].plugin
        if plugin.reads_feasible:  # belongs to one feasible set, so to one class
            return KeptScores(plugin)
        kept = self._scores[index].get(key)
        if kept is None:
            kept = KeptScores(plugin)
            _remember(self._scores[index], key, kept)
        return kept


def _remember(answers: OrderedDict[Hashable, Any], key: Hashable, kept: Any) -> None:
    answers[key] = kept
    if len(answers) > ANSWERS_MAX:
        answers.popitem(last=False)
