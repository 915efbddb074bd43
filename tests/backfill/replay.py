"""A workload on a machine with Backfill: each job is a gang, each of its pods has a whole node.

Pods have their job's limit as activeDeadlineSeconds and end after its run time. Every promise is
written down as it is made and moved.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from asched.batch.backfill.reservations import Reservations, StartTimes
from asched.batch.backfill.starts import REPLAN_S
from asched.core.cluster.facts import Bound, Gone, Seen, WallClock
from asched.core.framework.effects import Bind
from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP, POD
from asched.core.model.timestamp import rfc3339
from asched.core.model.workload import CoschedulingGroup
from tests.backfill.workload import Job
from tests.builders import a_node, a_pod
from tests.playbook import Play

LABEL = "scheduling.x-k8s.io/pod-group"
EPOCH_S = 1_700_000_000.0
#: A job has whole nodes.
CPUS = 1
#: Turns that who waits is given once nothing happens any more.
REST_TURNS = 100
#: A start is seen at a turn, and turns come with facts and deadlines.
LATE_S = REPLAN_S + 5.0


@dataclass(slots=True)
class Kept:
    """What became of a job's start: the promises in order with their causes, and the start."""

    promises: list[tuple[float, str]] = field(default_factory=list)
    started_s: float | None = None


class Replay:
    def __init__(self, processors: int, args: dict[str, Any] | None = None, **more: Any) -> None:
        nodes = [
            a_node(f"n{at}").allocatable(cpu=str(CPUS), memory="64Gi", pods="100")
            for at in range(processors // CPUS)
        ]
        plugins = {
            "multiPoint": {
                "enabled": [{"name": "Coscheduling"}, {"name": "Backfill"}],
                "disabled": [{"name": "PrioritySort"}, {"name": "DefaultPreemption"}],
            }
        }
        whole = {"maxNamespacePercentage": 100}  # all jobs are of one namespace
        config = [{"name": "Backfill", "args": {**whole, **(args or {})}}]
        own = {"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": config}
        self.play = Play(*nodes, profiles=[{**own, **more}])
        self.play.turn(WallClock(EPOCH_S - self.play.now_s))
        self.began_s = self.play.now_s
        self.jobs: dict[str, Job] = {}
        self.kept: dict[str, Kept] = {}
        self.ends: list[tuple[float, str]] = []
        self.turns = 0

    @property
    def now_s(self) -> float:
        """Since the beginning."""
        return self.play.now_s - self.began_s

    def run(self, jobs: Sequence[Job]) -> dict[str, float]:
        """When each job started, by name."""
        self.jobs = {job.name: job for job in jobs}
        arrivals = list(reversed(jobs))
        turns_left = REST_TURNS  # with nobody running and nobody to come
        while arrivals or self.ends or (turns_left and self._waits()):
            next_s = min(
                arrivals[-1].arrives_s if arrivals else float("inf"),
                self.ends[0][0] if self.ends else float("inf"),
            )
            due_s = self.play.machine.next_deadline_s()
            turns_left = turns_left - 1 if next_s == float("inf") else REST_TURNS
            if due_s is not None and due_s - self.began_s < next_s:
                self._turn(max(due_s - self.began_s, self.now_s + 0.01))
                continue
            if next_s == float("inf"):
                break
            facts: list[Any] = []
            while self.ends and self.ends[0][0] <= next_s:
                facts += self._end(heapq.heappop(self.ends)[1])
            while arrivals and arrivals[-1].arrives_s <= next_s:
                facts += _arrive(arrivals.pop())
            self._turn(max(next_s, self.now_s), *facts)
        return {n: k.started_s for n, k in self.kept.items() if k.started_s is not None}

    def _waits(self) -> bool:
        started = sum(kept.started_s is not None for kept in self.kept.values())
        return started < len(self.jobs)

    def _turn(self, at_s: float, *facts: Any) -> None:
        self.turns += 1
        self.play.turn(*facts, after_s=at_s - self.now_s)
        while binds := self.play.of(Bind):
            answers: list[Any] = []
            for bind in binds:
                pods = self.play.parts.cluster.pods_seen
                pod = decode(
                    type(pods[bind.pod.key]),
                    _shown(self.jobs[_job_of(bind.pod.name)], bind.pod.name, bind.node, at_s),
                )
                answers += [Bound(bind.id), Seen(POD, pod)]
                self._begin(_job_of(bind.pod.name))
            self.play.turn(*answers)
        self._note()

    def _begin(self, name: str) -> None:
        kept = self.kept.setdefault(name, Kept())
        if kept.started_s is None:
            kept.started_s = self.now_s
            heapq.heappush(self.ends, (self.now_s + self.jobs[name].run_s, name))

    def _end(self, name: str) -> list[Any]:
        job, seen = self.jobs[name], self.play.parts.cluster.pods_seen
        pods = [Gone(POD, seen[f"default/{name}-{at}"]) for at in range(job.size)]
        return [*pods, Gone(COSCHEDULING_GROUP, _group(job))]

    def _note(self) -> None:
        for one in self.play.parts.cluster.singleton(Reservations).all():
            name = one.owner.rpartition("/")[2]
            promises = self.kept.setdefault(name, Kept()).promises
            start_s = one.start_s + self.play.parts.cluster.wall_ahead_s - EPOCH_S
            if not promises or promises[-1][0] != start_s:
                promises.append((start_s, one.cause))

    def broken(self) -> list[str]:
        """Starts that were moved back without a cause, and those that came later than promised."""
        found = []
        for name, kept in self.kept.items():
            best_s = float("inf")
            for start_s, cause in kept.promises:
                if start_s > best_s and not cause:
                    found.append(f"{name}: {best_s:.0f} became {start_s:.0f} without a cause")
                best_s = min(best_s, start_s)
            is_late = kept.started_s is not None and kept.started_s > best_s + LATE_S
            if is_late and not any(cause for _, cause in kept.promises):
                found.append(f"{name}: promised by {best_s:.0f}, started at {kept.started_s:.0f}")
        return found

    @property
    def outcomes(self) -> dict[str, int]:
        kept = self.play.parts.cluster.singleton(StartTimes)
        return {**kept.outcomes, **{f"later: {cause}": n for cause, n in kept.causes.items()}}


def _job_of(pod: str) -> str:
    return pod.rpartition("-")[0]


def _group(job: Job) -> CoschedulingGroup:
    metadata = {"name": job.name, "namespace": "default", "uid": f"uid-{job.name}"}
    return decode(CoschedulingGroup, {"metadata": metadata, "spec": {"minMember": job.size}})


def _pod(job: Job, name: str) -> Any:
    pod = a_pod(name).labels({LABEL: job.name}).requests(cpu="1")
    return pod.spec(activeDeadlineSeconds=job.limit_s, schedulerName="default-scheduler")


def _shown(job: Job, name: str, node: str, at_s: float) -> Any:
    pod = _pod(job, name).on(node).status(startTime=rfc3339(EPOCH_S + at_s))
    return {**pod.json}


def _arrive(job: Job) -> list[Any]:
    pods = [Seen(POD, _pod(job, f"{job.name}-{at}").build()) for at in range(job.size)]
    return [Seen(COSCHEDULING_GROUP, _group(job)), *pods]
