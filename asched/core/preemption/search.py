"""Search for the node to make room on: cached prospects, the choice, or why there is none.

Bounds  BYTES_MAX of cached prospects; the least recently used are dropped.
"""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import NodeTable
from asched.core.cluster.pods import PodInfo
from asched.core.framework.attempt import Rejection
from asched.core.framework.fitting import cached
from asched.core.framework.order_free import POD_PLACE, takes_of
from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.results.draw import draw
from asched.core.framework.results.nominated import is_blind, is_plain
from asched.core.framework.status import Code
from asched.core.framework.trial import Candidate, Trial
from asched.core.preemption import candidates, victims
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.pods_by_priority import PodsByPriority
from asched.core.preemption.victims import AmountsFilter, DryRun, NominatedRequests, suppose

I64 = npt.NDArray[np.int64]

#: Limit for all of them, as far as they grow with the cluster ...
BYTES_MAX: Final = 64 << 20
#: ... bytes for a row (outcome, costs, codes), and for a potential victim.
ROW_BYTES, POD_BYTES = 56, 16
#: ... and, for a row and a resource, for nominated requests: each refers to the layer it last saw,
#: which may have no other user any more ...
LAYER_BYTES: Final = 8
#: ... and for everything else ...
OWN_BYTES: Final = 64 << 10
#: ... but never fewer prospects than this.
PROSPECTS_MIN: Final = 4
#: Rows tried before checking whether they are enough, if there is a limit.
BLOCK: Final = 64
#: Upstream's reason for nodes that are no candidates.
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"


class Limit(NamedTuple):
    """How many candidates are enough: the larger of a share of the nodes and a number."""

    percentage: int
    number: int

    def of(self, count: int) -> int:
        return min(max(count * self.percentage // 100, self.number), count)


class Findings(NamedTuple):
    """The open rows int64[M] with their prospects."""

    prospects: "candidates.Prospects"
    open: I64
    #: every row that was tried
    tried: I64


class VictimSearch:
    """One per plugin. `limit` None: upstream's own, which only bounds cost."""

    def __init__(
        self, cluster: Cluster, limit: Limit, budgets: Budgets, *, is_restricted: bool
    ) -> None:
        self._cluster = cluster
        self._limit = limit
        self._is_restricted = is_restricted
        self._pods_by_priority = cluster.singleton(PodsByPriority)
        self._budgets = budgets
        self._cached: OrderedDict[Hashable, candidates.Prospects] = OrderedDict()

    def find(
        self, pod: PodInfo, rejection: Rejection, trial: Trial, *, with_empty: bool = False
    ) -> Findings:
        """Try the rows that were rejected for a reason that evicting pods may resolve.
        `with_empty`: rows without victims, which an extender rejected, are open as well.
        """
        rows = rejection.candidates
        is_fresh = rejection.pre_filter is None
        prospects = self._prospects(pod, trial, is_fresh=is_fresh)
        blocked = self._blocked(pod, prospects, rows, trial)
        if is_fresh and isinstance(prospects, candidates.TrialProspects):
            self._close_by_amounts(pod, rows, prospects, trial)
        if self._has_limit(prospects, rows):
            self._try_some(pod, rows, blocked, prospects, trial)
            outcome = prospects.outcome[rows]
        else:
            outcome = prospects.tried(pod, rows, trial)
        is_open = outcome == candidates.OPEN
        if with_empty:
            is_open |= outcome == candidates.NO_NEED
        return Findings(prospects, rows[is_open & ~blocked], rows)

    def is_hopeless(self, pod: PodInfo, trial: Trial) -> bool:
        """Whether amounts alone show that evicting pods helps on no row, whatever other filters
        say. The result for a row is shared by all pods with the same requests, until the row
        changes.
        """
        if cached(trial).state.outcome.rejection is not None or self._is_restricted:
            return False
        prospects = self._of_amounts(pod, trial)
        rows = _large_enough(pod, prospects.verdicts, self._cluster.nodes).nonzero()[0]
        outcome = prospects.tried(pod, rows, trial)
        return not ((outcome == candidates.OPEN) | (outcome == candidates.NO_NEED)).any()

    def on_row(self, pod: PodInfo, fit: AmountsFilter, more: NominatedRequests) -> DryRun:
        """The victims on a placed pod's own row, by one filter of amounts. `more`: what counts
        there beside the placed pods.
        """
        self._budgets.catch_up()
        self._pods_by_priority.catch_up(in_one_go=True)
        pods = self._pods_by_priority.pods(pod.row)
        steps = candidates.ROW_STEPS + candidates.POD_STEPS * len(pods)
        self._budgets.find(pods)
        self._cluster.budget.note(steps + self._budgets.steps_for(pods))
        rows = np.array((pod.row,))
        parts = self._cluster, self._pods_by_priority, self._budgets
        found = suppose(pod, rows, (fit,), *parts, more)
        if not found.lower[0]:
            return candidates.NO_LOWER_PODS
        if not len(found.some):
            return DryRun((), 0, fit.plugin.explain(pod, int(found.codes[0][0])))
        slots = found.victims[:, 0].nonzero()[0].tolist()
        return DryRun(tuple([pods[slot] for slot in slots]), int(found.costs[0, 0]), None)

    def best(self, pod: PodInfo, findings: Findings, trial: Trial) -> Candidate:
        """The candidate with the lowest cost; there is one."""
        tied = victims.cheapest(findings.prospects.costs, findings.open)
        row = int(tied[draw(trial.seed, len(tied))])
        return findings.prospects.candidate(pod, row, trial)

    def all(self, pod: PodInfo, findings: Findings, trial: Trial) -> dict[str, Candidate]:
        """Every candidate with its victims, by node name."""
        found = (findings.prospects.candidate(pod, row, trial) for row in findings.open.tolist())
        return {candidate.node: candidate for candidate in found}

    def some(self, pod: PodInfo, findings: Findings, trial: Trial) -> dict[str, Candidate]:
        """As many candidates as upstream would pass to an extender."""
        count = self._limit.of(len(findings.tried))
        start = draw(trial.seed, max(len(findings.open), 1))
        rows = np.roll(findings.open, -start)[:count]
        return self.all(pod, findings._replace(open=rows), trial)

    def errors(self, pod: PodInfo, findings: Findings, trial: Trial) -> list[str]:
        """Errors of filters."""
        rejections = findings.prospects.rejections(pod, findings.tried, trial)
        return [
            f'running "{status.plugin}" filter plugin: {status.message}'
            for status, _ in rejections
            if status.code is Code.ERROR
        ]

    def without_victims(self, pod: PodInfo, findings: Findings, trial: Trial) -> list[str]:
        """The names of nodes on which the pod fits without victims: another plugin, or an extender,
        had rejected them.
        """
        rows = findings.tried[findings.prospects.outcome[findings.tried] == candidates.NO_NEED]
        blocked = self._blocked(pod, findings.prospects, rows, trial)
        nodes = self._cluster.nodes.node_at
        return [node.name for row in rows[~blocked].tolist() if (node := nodes[row]) is not None]

    def reasons(self, pod: PodInfo, findings: Findings, trial: Trial) -> dict[str, int]:
        """Reason -> number of nodes, for the nodes that were tried."""
        counts: dict[str, int] = {}
        for status, number in findings.prospects.rejections(pod, findings.tried, trial):
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + number
        return counts

    # --- inside ----------------------------------------------------------------------------------

    def _prospects(self, pod: PodInfo, trial: Trial, *, is_fresh: bool) -> "candidates.Prospects":
        """Cached prospects of preemptors like this one, brought up to date."""
        state = cached(trial).state
        if is_fresh and is_plain(pod, state):
            return self._of_amounts(pod, trial)
        key = (state.number, pod.cls.key)
        prospects = self._cached.get(key) if is_fresh else None
        if prospects is None:
            parts = (self._cluster, self._pods_by_priority, self._budgets)
            prospects = self._keep(key, candidates.TrialProspects(*parts))
        self._bring_up(key, prospects, pod, trial, state.active)
        return prospects

    def _of_amounts(self, pod: PodInfo, trial: Trial) -> "candidates.PlainProspects":
        """Prospects by filters that read only amounts, shared by all pods with the same
        requests.
        """
        verdicts = [v for v in cached(trial).state.active if v.plugin.reads_only_amounts]
        key = (pod.pod.priority, *map(id, verdicts))
        prospects = self._cached.get(key)
        if not isinstance(prospects, candidates.PlainProspects):
            parts = (self._cluster, self._pods_by_priority, self._budgets, verdicts)
            prospects = candidates.PlainProspects(*parts)
            self._keep(key, prospects)
        self._bring_up(key, prospects, pod, trial, verdicts)
        return prospects

    def _bring_up(
        self,
        key: Hashable,
        prospects: "candidates.Prospects",
        pod: PodInfo,
        trial: Trial,
        verdicts: Sequence[CachedVerdict],
    ) -> None:
        self._budgets.catch_up()
        self._pods_by_priority.catch_up()
        self._cached.move_to_end(key)
        nominated = cached(trial).nominated_pods.nominated_amounts
        prospects.refresh(verdicts, nominated.layer(pod.pod.priority))
        prospects.keep_apart(nominated.row_of(pod))

    def _keep(self, key: Hashable, prospects: "candidates.Prospects") -> "candidates.Prospects":
        self._cached[key] = prospects
        cluster = self._cluster
        capacity = cluster.nodes.columns.capacity
        each = capacity * ROW_BYTES + len(cluster.placed) * POD_BYTES
        each += OWN_BYTES + LAYER_BYTES * cluster.nodes.columns.size_of("R") * capacity
        while len(self._cached) > max(PROSPECTS_MIN, BYTES_MAX // each):
            self._cached.popitem(last=False)
        return prospects

    def _close_by_amounts(
        self, pod: PodInfo, rows: I64, prospects: "candidates.TrialProspects", trial: Trial
    ) -> None:
        """Skip the trial of rows that fail by amounts even without victims, provided that no
        earlier filter considers pods in another way.
        """
        active = cached(trial).state.active
        before = list(takewhile(lambda v: not v.plugin.reads_only_amounts, active))
        unknown = rows[prospects.outcome[rows] == candidates.UNKNOWN]
        if not len(unknown) or not self._cluster.priorities.are_below(pod.pod.priority):
            return
        if not all(is_blind(verdict.plugin, pod) for verdict in before):
            return
        plain = self._of_amounts(pod, trial)
        closed = unknown[plain.tried(pod, unknown, trial) == candidates.REJECTED]
        for status, members in plain.rejecting(pod, closed, active[: len(before) + 1]):
            prospects.close(members, status)

    def _blocked(
        self, pod: PodInfo, prospects: "candidates.Prospects", rows: I64, trial: Trial
    ) -> npt.NDArray[np.bool_]:
        """Rows that a filter which ignores pods rejects too, after the filter that rejected them
        first.
        """
        blocked = np.zeros(len(rows), dtype=np.bool_)
        if isinstance(prospects, candidates.PlainProspects):
            after = False
            for verdict in cached(trial).state.active:
                if after and not verdict.is_clear and is_blind(verdict.plugin, pod):
                    blocked |= verdict.codes[rows] != 0
                after |= verdict.plugin.reads_only_amounts
        return blocked

    def _has_limit(self, prospects: "candidates.Prospects", rows: I64) -> bool:
        if self._is_restricted:
            return True
        return (
            isinstance(prospects, candidates.TrialProspects)
            and len(rows) > candidates.EXHAUSTIVE_MAX
        )

    def _try_some(
        self,
        pod: PodInfo,
        rows: I64,
        blocked: npt.NDArray[np.bool_],
        prospects: "candidates.Prospects",
        trial: Trial,
    ) -> None:
        """Try rows, from one chosen by the seed on, until there are enough candidates."""
        wanted = self._limit.of(len(rows))
        start = draw(trial.seed, max(len(rows), 1))
        turned = np.roll(rows, -start)
        free = np.roll(~blocked, -start)
        unknown = turned[prospects.outcome[turned] == candidates.UNKNOWN]
        if not self._cluster.priorities.are_below(pod.pod.priority):
            prospects.evaluate(pod, unknown, trial)
            return
        while True:
            is_open = (prospects.outcome[turned] == candidates.OPEN) & free
            kind = prospects.costs[0, turned[is_open]] == 0
            if (kind.any() and len(kind) >= wanted) or not len(unknown):
                return
            size = min(BLOCK, max(wanted - len(kind), 1))
            prospects.evaluate(pod, unknown[:size], trial)
            unknown = unknown[size:]


def _large_enough(
    pod: PodInfo, verdicts: Sequence[CachedVerdict], nodes: NodeTable
) -> npt.NDArray[np.bool_]:
    """bool[N]: the rows on which the pod would fit if they were empty, as far as these
    filters say.
    """
    fits: npt.NDArray[np.bool_] = nodes.columns.read("live")[: nodes.height]
    offered = nodes.columns.read("allocatable")
    for at, amount in takes_of([verdict.plugin for verdict in verdicts], pod).items():
        if at != POD_PLACE:
            fits = fits & (offered[at, : nodes.height] >= amount)
    return fits
