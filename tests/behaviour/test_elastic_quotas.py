"""What a tenant can create does not free its namespace of an ElasticQuota."""

from asched.core.cluster.facts import Seen
from asched.core.framework.effects import Bind
from asched.core.model.decode import decode
from asched.core.model.kinds import ELASTIC_QUOTA, LOCAL_QUEUE
from asched.core.model.quotas import ElasticQuota, LocalQueue
from tests.builders import a_pod, room
from tests.playbook import Play

LIMIT = {"cpu": "1", "memory": "64Gi", "ephemeral-storage": "64Gi"}


def test_a_local_queue_frees_no_namespace_of_its_quota() -> None:
    plugins = {"multiPoint": {"enabled": [{"name": "CapacityScheduling"}]}}
    own = {"schedulerName": "default-scheduler", "plugins": plugins}
    play = Play(room("n1", 8), profiles=[own])
    metadata = {"name": "q", "namespace": "default", "uid": "q"}
    quota = {"metadata": metadata, "spec": {"min": LIMIT, "max": LIMIT}}
    play.turn(Seen(ELASTIC_QUOTA, decode(ElasticQuota, quota)))
    play.turn(Seen(LOCAL_QUEUE, decode(LocalQueue, {"metadata": metadata})))

    play.see(a_pod("large").requests(cpu="2"))
    assert not play.of(Bind)
    assert "ElasticQuota default is more than Max" in play.condition()["message"]
    play.see(a_pod("small").requests(cpu="1"))
    assert play.the(Bind).pod.name == "small"
