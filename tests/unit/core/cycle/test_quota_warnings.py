"""Quotas that give way to Kueue's: each is told so in one event."""

from typing import Any

from asched.batch.quota_warnings import NOTE, REASON
from asched.core.cluster.facts import Gone, Seen
from asched.core.framework.effects import EmitEvent
from asched.core.model.decode import decode
from asched.core.model.kinds import ELASTIC_QUOTA, LOCAL_QUEUE
from asched.core.model.workload import ElasticQuota, LocalQueue
from tests.playbook import Play

OWN = {"schedulerName": "default-scheduler"}
ENABLED = {"multiPoint": {"enabled": [{"name": "CapacityScheduling"}]}}


def a_play(**profile: Any) -> Play:
    return Play(profiles=[{**OWN, "plugins": ENABLED, **profile}])


def quota(name: str, namespace: str = "team") -> Seen:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return Seen(ELASTIC_QUOTA, decode(ElasticQuota, {"metadata": metadata, "spec": {}}))


def queue(namespace: str = "team") -> LocalQueue:
    return decode(LocalQueue, {"metadata": {"name": "queue", "namespace": namespace}})


def told(play: Play) -> list[tuple[str, str, str]]:
    events = play.of(EmitEvent)
    return [(e.regarding.kind, e.regarding.name, e.reason) for e in events if e.note == NOTE]


def test_a_quota_beside_a_local_queue_is_told_once() -> None:
    play = a_play()
    play.turn(quota("mine"), quota("theirs", "other"))
    assert told(play) == []

    play.turn(Seen(LOCAL_QUEUE, queue()))
    assert told(play) == [("ElasticQuota", "mine", REASON)]

    play.turn(quota("mine"))
    assert told(play) == []
    play.turn(quota("second"))
    assert told(play) == [("ElasticQuota", "second", REASON)]


def test_it_is_told_again_once_the_queue_went_and_came() -> None:
    play = a_play()
    play.turn(quota("mine"), Seen(LOCAL_QUEUE, queue()))
    play.turn(Gone(LOCAL_QUEUE, queue()))
    assert told(play) == []

    play.turn(Seen(LOCAL_QUEUE, queue()))

    assert told(play) == [("ElasticQuota", "mine", REASON)]
