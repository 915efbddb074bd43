"""Kinds that cannot be watched: listed again and again, and nobody waits for them."""

import random
from contextlib import asynccontextmanager

from asched.core.cluster.facts import Listed
from asched.core.model.decode import decode
from asched.hardware.load.node_metrics import NODE_METRICS, NodeMetrics
from asched.kube.polling import KEPT_LISTS, ListedObjects, Poller
from tests.unit.kube.conftest import session_with
from tests.unit.kube.scripted import Seen, Wire, reply, scripted

PATH = "/apis/metrics.k8s.io/v1beta1/nodes"


def metrics(name: str, second: int, cpu: str = "1") -> dict[str, object]:
    return {
        "metadata": {"name": name},
        "timestamp": f"2026-11-22T12:00:{second:02d}Z",
        "window": "10s",
        "usage": {"cpu": cpu, "memory": "1Gi"},
    }


@asynccontextmanager
async def polling(answers):
    """A poller that is told these answers, the last one again and again; its facts."""
    said = iter(answers)
    now = [next(said)]

    async def handler(request: Seen, wire: Wire) -> bytes:
        assert request.path == PATH
        answer = now[0]
        now[0] = next(said, answer)
        return answer

    facts: list[Listed] = []
    async with scripted(handler) as server, session_with(server) as session:
        kind = NODE_METRICS._replace(poll_s=0.01)
        poller = Poller(kind, session.general, facts.append, random.Random(1))
        yield poller, facts


async def test_each_list_is_a_fact_and_objects_carry_their_past() -> None:
    answers = [
        reply(200, {"metadata": {}, "items": [metrics("n1", at, f"{100 * at}m")]}) for at in (1, 2)
    ]
    async with polling(answers) as (poller, facts):
        await poller.once()
        await poller.once()

    assert [fact.kind.name for fact in facts] == ["NodeMetrics"] * 2
    (told,) = facts[-1].objects
    assert isinstance(told, NodeMetrics)
    assert [sample.cpu for sample in told.samples] == [200.0, 100.0]


def test_what_one_list_leaves_out_stays_for_a_while() -> None:
    def told(name: str, second: int) -> NodeMetrics:
        return decode(NodeMetrics, metrics(name, second))

    past = ListedObjects()
    past.with_it([told("n1", 1), told("n2", 1)])
    for at in range(KEPT_LISTS):
        known = past.with_it([told("n1", 2 + at)])
        assert {one.metadata.name for one in known} == {"n1", "n2"}
    assert {one.metadata.name for one in past.with_it([told("n1", 50)])} == {"n1"}
