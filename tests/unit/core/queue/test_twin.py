"""Random walks: the queue and its twin must agree on every place after every step. No pods are
equal here: what becomes of those that are, `test_due_filter.py` says.
"""

from random import Random

import pytest

from asched.core.cluster.changes import Change
from asched.core.framework.registrations import Hint, HintFunction, Registration
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.queue.backoff import BackoffTimes
from asched.core.queue.queued import QueuedPod
from tests.unit.core.queue.twin import Twin, Waiting
from tests.unit.core.queue.waiting import (
    NODE_ADDED,
    NODE_LABEL,
    POD_RELABELLED,
    VOLUME_ADDED,
    Gate,
    Scene,
    a_node,
    a_pod,
)

TRIGGERS = (NODE_ADDED, NODE_LABEL, VOLUME_ADDED)
PLUGINS = ("Fit", "Ports", "Gate")
SHAPES: tuple[dict[str, str], ...] = ({}, {"app": "web"}, {"app": "db"})
STEPS = 300
#: Operation -> how often it is drawn.
WEIGHTS = {
    "see": 8,
    "lose": 1,
    "pop": 6,
    "fail": 8,
    "change": 5,
    "activate": 1,
    "wait": 3,
    "flush_backoff": 2,
    "flush_rest": 1,
}


def whims(plugin: str, salt: int) -> HintFunction:
    """A hint that depends on the shape of the pod and on the change, not on the pod's name."""

    def hint(pod: Pod, old: object, new: object) -> Hint:
        version = new.metadata.name if isinstance(new, Node) else "self"
        weight = sum(map(ord, f"{plugin}{salt}{version}{sorted(pod.labels.items())}"))
        return Hint.QUEUE if weight % 3 == 0 else Hint.SKIP

    return hint


class Walk:
    """Pods of three shapes and two priorities; every name has at most one living pod."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        registrations = {plugin: [Registration(POD_RELABELLED)] for plugin in PLUGINS}
        for plugin in PLUGINS:
            for trigger in self.draw.sample(TRIGGERS, 2):
                hint = whims(plugin, seed) if self.draw.random() < 0.8 else None
                registrations[plugin].append(Registration(trigger, hint))
        self.scene = Scene(
            registrations,
            gates=[Gate("Gate")],
            backoff=BackoffTimes(1, 4),
        )
        self.twin = Twin(
            registrations,
            gates=["Gate"],
            may_enter=lambda pod, _: not pod.spec.scheduling_gates,
            initial_s=1,
            max_s=4,
            rest_s=300,
        )
        self.flying: list[tuple[QueuedPod, Waiting]] = []
        self.now_s = 100.0
        self.count = 0
        self.visited: set[str] = set()

    def step(self) -> None:
        self.now_s += 0.01
        self.count += 1
        (operation,) = self.draw.choices(list(WEIGHTS), weights=list(WEIGHTS.values()))
        getattr(self, operation)()
        self.agree(f"step {self.count}, {operation}")

    def some_pod(self) -> Pod | None:
        """A living pod whose predecessor of the same name is not in flight."""
        known = [pod for pod in self.scene.api.values() if not self.is_flying(pod)]
        return self.draw.choice(known) if known else None

    def is_flying(self, pod: Pod) -> bool:
        return any(queued.key == pod.key for queued, _ in self.flying)

    # --- operations ------------------------------------------------------------------------------

    def see(self) -> None:
        name = self.draw.choice("abcdefgh")
        old = self.scene.api.get(f"default/{name}")
        pod = a_pod(
            name,
            uid=old.uid if old else f"uid-{self.count}",
            version=self.count,
            labels=self.draw.choice(SHAPES),
            priority=self.draw.choice([0, 5]),
            gates=["Gate"] if self.draw.random() < 0.2 else [],
        )
        self.scene.api[pod.key] = pod
        if old is None:
            self.scene.queue.add(pod, self.now_s)
            self.twin.add(pod, self.now_s)
        else:
            self.scene.queue.update(old, pod, self.now_s)
            self.twin.update(old, pod, self.now_s)

    def lose(self) -> None:
        pod = self.some_pod()
        if pod is not None:
            del self.scene.api[pod.key]
            self.scene.queue.delete(pod)
            self.twin.delete(pod)

    def pop(self) -> None:
        queued, waiting = self.scene.queue.pop(self.now_s), self.twin.pop()
        assert (queued is None) == (waiting is None)
        if queued is not None and waiting is not None:
            assert queued.key == waiting.pod.key
            self.flying.append((queued, waiting))

    def fail(self) -> None:
        if not self.flying:
            return
        queued, waiting = self.flying.pop(self.draw.randrange(len(self.flying)))
        plugins = set(self.draw.choice([[], ["Fit"], ["Fit"], ["Ports"], ["Fit", "Ports"]]))
        pending = set(self.draw.choice([[], [], [], ["Ports"]]))
        self.scene.fail(queued, *plugins, pending=sorted(pending), now_s=self.now_s)
        pod = self.scene.api[queued.key]
        self.twin.fail(waiting, pod, plugins, pending, self.now_s)

    def change(self) -> None:
        node = a_node(f"n{self.draw.randrange(6)}")
        limit = self.draw.choice([None, None, 0, 5])
        change = Change(self.draw.choice(TRIGGERS), None, node, limit)
        self.scene.queue.move(change, self.now_s)
        self.twin.move(change, self.now_s)

    def activate(self) -> None:
        pod = self.some_pod()
        if pod is not None:
            self.scene.queue.activate([pod], self.now_s)
            self.twin.activate(pod)

    def wait(self) -> None:
        self.now_s += self.draw.choice([0.3, 0.7, 1, 2, 150])

    def flush_backoff(self) -> None:
        self.scene.queue.flush_backoff(self.now_s)
        self.twin.flush_backoff(self.now_s)

    def flush_rest(self) -> None:
        if not self.flying:  # else it is a change for those in flight, which the histories cover
            self.scene.queue.flush_unschedulable(self.now_s)
            self.twin.flush_rest(self.now_s)

    # --- what must hold ---------------------------------------------------------------------------

    def agree(self, where: str) -> None:
        ours, twins = self.scene.names(), self.twin.names()
        self.visited |= ours.keys()
        for waiting in (ours.get("error_backoff", []), twins.get("error_backoff", [])):
            waiting.sort()  # pods of one second have no order there
        assert ours == twins, where
        listing = self.scene.queue.places.listing()
        active, backoff, errors, unschedulable, gated = map(len, listing)
        pending = self.scene.queue.places.pending()
        assert pending == (active, backoff + errors, unschedulable, gated), where
        blamed = sum(len(queued.rejectors) for part in listing for queued in part)
        assert sum(self.scene.witness.waiting_for.values()) == blamed, where
        assert min(self.scene.witness.waiting_for.values(), default=0) >= 0, where
        assert self.scene.witness.complaints == [], where


@pytest.mark.parametrize("seed", range(10))
def test_both_agree_all_the_way(seed: int) -> None:
    walk = Walk(seed)

    for _ in range(STEPS):
        walk.step()

    assert walk.visited == {"active", "backoff", "error_backoff", "unschedulable", "gated"}
