"""EASY backfilling, slowly: the first who waits has a reservation, everybody else goes around it.

A second reading of Lifka's rule (1995): a job may go ahead of the first one if it ends before that
one can start, or uses no more than what the first one leaves then. Processors have no places.
"""

import heapq
from collections.abc import Sequence

from tests.backfill.workload import Job


class Easy:
    """`slack_s`: how long after its limit a job is known to have gone."""

    def __init__(self, processors: int, slack_s: float) -> None:
        self.free = processors
        self.slack_s = slack_s
        self.running: list[tuple[float, Job]] = []  # when it is known to have gone
        self.waiting: list[Job] = []
        self.started: dict[str, float] = {}
        self.count = 0

    def run(self, jobs: Sequence[Job]) -> dict[str, float]:
        """When each job starts, by name."""
        moments = [(job.arrives_s, 1, number, job) for number, job in enumerate(jobs)]
        heapq.heapify(moments)
        while moments:
            now_s, is_arrival, _, job = heapq.heappop(moments)
            if is_arrival:
                self.waiting.append(job)
            else:
                self.free += job.size
                self.running = [one for one in self.running if one[1] is not job]
            for begun in self._start(now_s):
                self.count += 1
                heapq.heappush(moments, (now_s + begun.run_s, 0, self.count, begun))
        return self.started

    def _start(self, now_s: float) -> list[Job]:
        begun: list[Job] = []
        while self.waiting and self.waiting[0].size <= self.free:
            begun.append(self._take(self.waiting[0], now_s))
        if not self.waiting:
            return begun
        shadow_s, extra = self._shadow(self.waiting[0])
        for job in self.waiting[1:]:
            ends_in_time = now_s + job.limit_s + self.slack_s <= shadow_s
            if job.size <= self.free and (ends_in_time or job.size <= extra):
                extra -= 0 if ends_in_time else job.size
                begun.append(self._take(job, now_s))
        return begun

    def _take(self, job: Job, now_s: float) -> Job:
        self.waiting.remove(job)
        self.free -= job.size
        self.running.append((now_s + job.limit_s + self.slack_s, job))
        self.started[job.name] = now_s
        return job

    def _shadow(self, first: Job) -> tuple[float, int]:
        """When the first one can start, and how many processors it leaves then."""
        free = self.free
        for ends_s, job in sorted(self.running, key=lambda one: one[0]):
            free += job.size
            if free >= first.size:
                return ends_s, free - first.size
        raise AssertionError(f"{first} never fits")


def utilisation(jobs: Sequence[Job], started: dict[str, float], processors: int) -> float:
    """Which part of all processors ran something, from the first arrival to the last."""
    begin_s, end_s = jobs[0].arrives_s, jobs[-1].arrives_s
    used = 0.0
    for job in jobs:
        at_s = started.get(job.name, end_s)
        used += job.size * max(min(at_s + job.run_s, end_s) - max(at_s, begin_s), 0.0)
    return used / (processors * (end_s - begin_s))
