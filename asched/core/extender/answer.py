"""Serve as an extender: a kube-scheduler asks, our plugins answer.

    filter       the filters' verdict on each node asked about, with their reasons
    prioritize   the scorers' sum, spread over 0 to 10 between the worst and the best of the nodes
    preempt      candidates on which our filters agree once the victims are gone
    bind         the bind plugins; a generator, because they call the API

The pod's schedulerName selects the profile; pods with other names use the first. Nodes are looked
up by name in the cache of the cluster; an unknown node is rejected, and evicting pods from it is
not proposed.

Bounds  none of its own: one answer covers all nodes of the cluster at once.
Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/kube-scheduler/extender/v1/types.go
"""

from collections.abc import Generator, Iterable, Mapping
from typing import Any, Final

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.pools import deciding_profile
from asched.core.extender import wire
from asched.core.framework.effects import Effect
from asched.core.framework.rejection import Rejection
from asched.core.framework.results.class_state import ClassState
from asched.core.framework.results.peaks import NOT_FEASIBLE
from asched.core.framework.runner import Runner
from asched.core.framework.status import Code, Status
from asched.core.model.arrays import Mask
from asched.core.model.decode import decode
from asched.core.model.meta import ObjectMeta
from asched.core.model.pod import Pod

#: MaxExtenderPriority: the score of the best node.
PRIORITY_MAX: Final = 10
UNKNOWN_NODE: Final = "node(s) not known to the extender yet"
NO_REASON: Final = "node(s) refused by the extender"


class Advisor:
    """The verdicts of our plugins. Only reads the cluster; callers run between two facts."""

    def __init__(self, cluster: Cluster, runners: Mapping[str, Runner]) -> None:
        self._cluster = cluster
        self._runners = runners

    def filter(self, question: wire.Arguments) -> dict[str, Any]:
        """ExtenderFilterResult. Raises PointError, MalformedObjectError."""
        runner, info = self._about(decode(Pod, question.pod))
        passed: list[str] = []
        failed: dict[str, str] = {}
        never: dict[str, str] = {}
        state, refused, rejection = self._filter(runner, info)
        for name in question.node_names:
            row = self._cluster.nodes.row_of.get(name)
            if row is None:
                never[name] = UNKNOWN_NODE
                continue
            if state.outcome.rejection is None and state.feasible[row] and row not in refused:
                passed.append(name)
                continue
            status = rejection.status_at(row) or rejection.absent
            reason = status.message if status is not None and status.message else NO_REASON
            is_curable = status is not None and status.code is Code.UNSCHEDULABLE
            (failed if is_curable else never)[name] = reason
        return wire.filter_answer(question, passed, failed, never)

    def prioritize(self, question: wire.Arguments) -> list[dict[str, Any]]:
        """HostPriorityList; nodes on which the pod does not fit get 0. Raises PointError,
        MalformedObjectError.
        """
        runner, info = self._about(decode(Pod, question.pod))
        state, refused, _ = self._filter(runner, info)
        scores = dict.fromkeys(question.node_names, 0)
        if state.outcome.rejection is not None:
            return wire.priorities_answer(scores)
        eligible = self._rows(question.node_names, len(state.feasible)) & state.feasible
        eligible[list(refused)] = False
        if eligible.any():
            ranking = state.rank(info, eligible)
            totals = ranking[eligible & (ranking != NOT_FEASIBLE)]
            lowest, spread = int(totals.min()), int(totals.max()) - int(totals.min())
            for name in scores:
                row = self._cluster.nodes.row_of.get(name)
                if row is not None and eligible[row]:
                    over = int(ranking[row]) - lowest
                    scores[name] = over * PRIORITY_MAX // spread if spread else PRIORITY_MAX
        return wire.priorities_answer(scores)

    def preempt(self, question: wire.PreemptionArguments) -> dict[str, Any]:
        """ExtenderPreemptionResult. Raises PointError, MalformedObjectError."""
        runner, info = self._about(decode(Pod, question.pod))
        state, _, _ = self._filter(runner, info)
        accepted = {
            name: victims
            for name, victims in question.victims.items()
            if self._fits_without(runner, info, state, name, victims.uids)
        }
        return wire.preemption_answer(accepted)

    def bind(self, question: wire.BindingArguments) -> Generator[Effect, Answer, Status]:
        """Bind by the plugins of the pod's profile. Raises what they raise."""
        key = f"{question.namespace}/{question.name}"
        pod = self._cluster.pods_seen.get(key)
        if pod is None or pod.uid != question.uid:
            metadata = ObjectMeta(
                name=question.name, namespace=question.namespace, uid=question.uid
            )
            pod = Pod(metadata=metadata)
        runner, info = self._about(pod)
        status = Status(Code.ERROR, ("every bind plugin skipped the pod",))
        for plugin in runner.binders(info):
            answer: Status = yield from plugin.bind(info, question.node)
            if answer.code is not Code.SKIP:
                return answer
        return status

    # --- inside ----------------------------------------------------------------------------------

    def _about(self, pod: Pod) -> tuple[Runner, PodInfo]:
        first = next(iter(self._runners.values()))
        runner = self._runners.get(deciding_profile(pod, first.profile.pools)) or first
        return runner, self._cluster.classes.info_of(pod)

    def _filter(
        self, runner: Runner, info: PodInfo
    ) -> tuple[ClassState, dict[int, Status], Rejection]:
        """(the class with its verdicts, rows rejected by nominated pods, which plugin rejects which
        row).
        """
        dry_run = runner.dry_run(info)
        state, refused = dry_run.state, dry_run.in_words()
        return state, refused, runner.rejection(info, state, refused)

    def _fits_without(
        self, runner: Runner, info: PodInfo, state: ClassState, name: str, uids: Iterable[str]
    ) -> bool:
        row = self._cluster.nodes.row_of.get(name)
        outcome = state.outcome
        if row is None or (outcome.rows is not None and row not in outcome.rows):
            return False
        if outcome.rejection is not None and outcome.rejection.code is not Code.UNSCHEDULABLE:
            return False
        placed = self._cluster.pods_on(row)
        victims = [placed[uid] for uid in uids if uid in placed]
        with self._cluster.supposing().gone(victims, row):
            return runner.nominated_pods.status_with(info, state, row) is None

    def _rows(self, names: Iterable[str], height: int) -> Mask:
        mask = np.zeros(height, dtype=np.bool_)
        row_of = self._cluster.nodes.row_of
        mask[[row_of[name] for name in names if name in row_of]] = True
        return mask
