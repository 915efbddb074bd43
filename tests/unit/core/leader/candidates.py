"""Candidates for one lease in a scripted world."""

from asched.core.leader.election import (
    CreateLease,
    Election,
    LeaseTimes,
    Lost,
    Read,
    Wait,
    WriteLease,
)

RULES = LeaseTimes("me", lease_s=15.0, renew_s=10.0, retry_s=2.0)


class World:
    """One lease, its API server, and a clock that jumps to the next one that wakes."""

    def __init__(self) -> None:
        self.lease = None
        self.version = 0
        self.is_up = True
        self.now_s = 1_000.0
        #: (time, method, holder written or None, succeeded)
        self.requests = []

    def perform(self, election, act):
        """Carry out requests until the candidate waits or has lost."""
        while not isinstance(act, Wait | Lost):
            act = self._once(election, act)
        return act

    def _once(self, election, act):
        method = {Read: "GET", CreateLease: "POST", WriteLease: "PUT"}[type(act)]
        record = getattr(act, "record", None)
        succeeds = self.is_up and self._accepts(act)
        self.requests.append((self.now_s, method, record and record.holder, succeeds))
        if not succeeds:
            return election.failed(self.now_s)
        if isinstance(act, Read):
            return election.lease_read(self.lease, self.now_s)
        self.put(record, act)
        return election.written(self.lease, self.now_s)

    def _accepts(self, act):
        if isinstance(act, CreateLease):
            return self.lease is None
        if isinstance(act, WriteLease):
            return act.lease["metadata"]["resourceVersion"] == str(self.version)
        return True

    def put(self, record, written=None):
        """A write with annotations; without any, as one by another client, it leaves them."""
        self.version += 1
        kept = ((self.lease or {}).get("metadata") or {}).get("annotations") or {}
        annotations = {**kept, **(written.annotations if written is not None else {})}
        self.lease = {
            "metadata": {
                "name": "l",
                "resourceVersion": str(self.version),
                "annotations": annotations,
            },
            "spec": record.spec(),
        }

    def run(self, candidates, until_s):
        """Wake candidates in turn; gives (time, name) of each beginning leadership."""
        waits = dict.fromkeys(candidates, self.now_s)
        began = []
        while waits:
            name = min(waits, key=waits.get)
            if waits[name] > until_s:
                break
            self.now_s = max(self.now_s, waits.pop(name))
            election = candidates[name]
            was_leader = election.is_leader
            act = self.perform(election, election.woke(self.now_s))
            if election.is_leader and not was_leader:
                began.append((self.now_s, name))
            if isinstance(act, Wait):
                waits[name] = act.until_s
        self.now_s = until_s
        return began


def candidate(name="me", draw=lambda: 0.5, rules=RULES, schedulers=("asched",)):
    times = LeaseTimes(name, rules.lease_s, rules.renew_s, rules.retry_s)
    return Election(times, draw, schedulers)
