"""Many pods that share one claim write it one after the other, in virtual time.

Each write names the version before it, so that of several concurrent writes all but one are
refused.
"""

from heapq import heappop, heappush
from typing import Any

from asched.core.cluster.facts import Bound, Done, Fact, Gone, Refused, Seen
from asched.core.framework.effects import Bind, Patch
from asched.core.model.claim import FINALIZER, ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import DEVICE_CLASS, POD, RESOURCE_CLAIM, RESOURCE_SLICE
from tests.builders import PodBuilder, a_node, a_pod
from tests.device_builders import a_claim_object, a_class, a_slice, allocated
from tests.playbook import Play

#: A turn of a pod that does not get on.
TURN_S = 5.0


class Server(Play):
    """A scheduler, and an API server that takes `write_s` for a write of the claim."""

    def __init__(self, write_s: float) -> None:
        super().__init__(a_node("n1").allocatable(cpu="1k", memory="1Ti", pods="1000"))
        self.write_s = write_s
        #: pods whose next write is slower, and pods whose writes are refused for good
        self.slow_s: dict[str, float] = {}
        self.refused: set[str] = set()
        self.started_s = self.now_s
        self.writers: list[str] = []
        self.bound: list[str] = []
        self.conflicts = 0
        self._due: list[tuple[float, int, Patch]] = []
        metadata = {"finalizers": [FINALIZER], "resourceVersion": "1"}
        self._claim = a_claim_object("c", metadata=metadata, **allocated())
        self.turn(
            Seen(DEVICE_CLASS, a_class()),
            Seen(RESOURCE_SLICE, a_slice("a")),
            self._shown(),
        )

    def _shown(self) -> Fact:
        return Seen(RESOURCE_CLAIM, decode(ResourceClaim, self._claim))

    def run(self, *facts: Fact, seconds: float) -> None:
        """Hand in facts and let so much time pass."""
        until_s, waiting = self.now_s + seconds, list(facts)
        while True:
            self.turn(*waiting)
            waiting = self._accepted()
            if waiting:
                continue
            deadline_s = self.machine.next_deadline_s()
            moments = [until_s, *(due_s for due_s, _, _ in self._due[:1])]
            next_s = min(moments if deadline_s is None else [*moments, deadline_s])
            self.now_s = max(self.now_s, next_s)
            while self._due and self._due[0][0] <= self.now_s:
                waiting += self._answers(heappop(self._due)[2])
            if self.now_s >= until_s and not waiting:
                return

    def _accepted(self) -> list[Fact]:
        """Take the writes of the last turn; bindings are answered at once."""
        for patch in self.of(Patch):
            writer = patch.body["status"]["reservedFor"][-1]["name"]
            self.writers.append(writer)
            due_s = self.now_s + self.slow_s.pop(writer, self.write_s)
            heappush(self._due, (due_s, patch.id, patch))
        self.bound += [bind.pod.name for bind in self.of(Bind)]
        return [Bound(bind.id) for bind in self.of(Bind)]

    def _answers(self, patch: Patch) -> list[Fact]:
        known = self._claim["metadata"]["resourceVersion"]
        if patch.body["status"]["reservedFor"][-1]["name"] in self.refused:
            return [Refused(patch.id, 403, "forbidden")]
        if patch.body["metadata"]["resourceVersion"] != known:
            self.conflicts += 1
            return [Refused(patch.id, 409, "the object has been modified")]
        metadata = {**self._claim["metadata"], "resourceVersion": str(int(known) + 1)}
        status = {**self._claim["status"], **patch.body["status"]}
        self._claim = {**self._claim, "metadata": metadata, "status": status}
        return [Done(patch.id, self._claim), self._shown()]


def sharing(name: str) -> PodBuilder:
    shared: list[dict[str, Any]] = [{"name": "c", "resourceClaimName": "c"}]
    return a_pod(name, "d").requests(cpu="1").spec(resourceClaims=shared)


def named(count: int) -> list[str]:
    return [f"p{number:03}" for number in range(count)]


def seen(names: list[str]) -> list[Fact]:
    return [Seen(POD, sharing(name).build()) for name in names]


def test_a_slow_server_is_written_to_in_order_and_without_conflicts() -> None:
    server, names = Server(write_s=0.3), named(100)
    server.run(*seen(names), seconds=0.3 * 100 + 1.0)
    assert server.conflicts == 0
    assert server.bound == server.writers == names


def test_a_pod_whose_write_is_not_answered_delays_the_others_by_one_turn() -> None:
    server, names = Server(write_s=0.1), named(30)
    server.slow_s["p004"] = 60.0
    server.run(*seen(names), seconds=TURN_S + 5.0)
    assert server.bound == [name for name in names if name != "p004"]
    assert server.conflicts == 0
    server.run(seconds=60.0)
    assert server.bound[-1] == "p004", "its write was refused, and repeated"


def test_a_refused_write_lets_the_next_pod_write_at_once() -> None:
    server, names = Server(write_s=0.1), named(5)
    server.refused.add("p000")
    server.run(*seen(names), seconds=1.0)
    assert server.bound == names[1:]


def test_a_pod_that_is_deleted_while_it_waits_delays_no_other() -> None:
    server, names = Server(write_s=0.5), named(5)
    server.run(*seen(names), seconds=0.2)
    server.run(Gone(POD, sharing("p001").build()), seconds=0.5 * 4 + 0.1)
    assert server.bound == [names[0], *names[2:]]
    assert server.writers == server.bound
