"""The pods that manifests come to."""

import pytest

from asched_lab.apiserver.resources import PODS, find
from asched_lab.whatif.workloads import WorkloadError, make
from tests.lab.whatif.clusters import a_deployment, a_node, a_pod, a_store

Json = dict


def made(*manifests: Json, there: tuple[Json, ...] = (), **options):
    store = a_store(a_node("n1"), *there)
    return make(manifests, store, **options), store


def pods(store) -> list[Json]:
    return store.listed(PODS)


def test_a_deployment_comes_to_pods_of_a_replica_set() -> None:
    result, store = made(a_deployment("web", 3))
    assert set(result.asked.values()) == {"Deployment default/web"}
    (owner,) = store.listed(find("replicasets"))
    for pod in pods(store):
        (reference,) = pod["metadata"]["ownerReferences"]
        assert reference["uid"] == owner["metadata"]["uid"]
        labels = owner["spec"]["selector"]["matchLabels"]
        assert labels.items() <= pod["metadata"]["labels"].items()
        assert pod["spec"]["schedulerName"] == "default-scheduler"  # as admission has it
        assert [t["key"] for t in pod["spec"]["tolerations"]] == [
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/unreachable",
        ]
    assert len({pod["metadata"]["uid"] for pod in pods(store)}) == 3
    names = [key.partition("/")[2] for key in result.asked]
    assert names == sorted(names)  # pods of one age are tried by name


@pytest.mark.parametrize(
    ("spec", "count"),
    [({}, 1), ({"parallelism": 4}, 4), ({"parallelism": 4, "completions": 3}, 3)],
)
def test_a_job_comes_to_as_many_pods_as_run_at_a_time(spec: Json, count: int) -> None:
    template = {"spec": {**a_pod("t")["spec"], "restartPolicy": "Never"}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "work"},
        "spec": {"template": template, **spec},
    }
    _, store = made(job)
    assert len(pods(store)) == count
    assert pods(store)[0]["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "work"


def test_a_stateful_set_goes_on_where_it_stands_and_brings_its_claims() -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    deployment = a_deployment("db", 2)
    stateful = {
        **deployment,
        "kind": "StatefulSet",
        "spec": {**deployment["spec"], "serviceName": "db", "volumeClaimTemplates": [claim]},
    }
    _, store = made(stateful, there=(a_pod("db-0", on="n1"),))

    assert [p["metadata"]["name"] for p in pods(store)] == ["db-0", "db-1", "db-2"]
    volumes = pods(store)[2]["spec"]["volumes"]
    mounted = {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-2"}}
    assert mounted in volumes
    claims = [c["metadata"]["name"] for c in store.listed(find("persistentvolumeclaims"))]
    assert claims == ["data-db-1", "data-db-2"]


def test_admission_has_its_say() -> None:
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"memory": "64Mi"}}]},
    }
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "2"}},
        "status": {"hard": {"pods": "2"}, "used": {"pods": "0"}},
    }
    priority = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 7,
    }
    deployment = a_deployment("web", 4, priorityClassName="high")
    result, store = made(deployment, there=(limits, quota, priority))

    assert len(pods(store)) == 2
    for pod in pods(store):
        assert pod["spec"]["priority"] == 7
        assert pod["spec"]["containers"][0]["resources"]["requests"]["memory"] == "64Mi"
    ((what, said),) = result.refused
    assert what == "Deployment default/web"
    assert "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2" in said


def test_nothing_is_ignored_in_silence() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    elsewhere = a_pod("far")
    elsewhere["metadata"]["namespace"] = "far"
    result, _ = made(config, elsewhere)
    assert result.notes == [
        "ConfigMap default/c is left out: asched does not read this kind and makes no pods of it",
        "namespace far does not exist; it is added",
    ]
    with pytest.raises(WorkloadError, match=r"DaemonSet default/x has no spec\.template"):
        made({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "x"}})
    with pytest.raises(WorkloadError, match=r"Pod has no metadata\.name"):
        made({"apiVersion": "v1", "kind": "Pod", "spec": {}})


def test_a_malformed_pod_is_refused_in_the_servers_words() -> None:
    result, _ = made(a_pod("bad", containers=[]))
    ((what, said),) = result.refused
    assert what == "Pod default/bad"
    assert "spec.containers: Required value" in said


def a_daemon_set(**spec) -> Json:
    deployment = a_deployment("agent", 1, "100m", **spec)
    del deployment["spec"]["replicas"]
    return {**deployment, "kind": "DaemonSet"}


def test_a_daemon_set_comes_to_a_pod_for_each_node_that_its_controller_would_choose() -> None:
    """A cordoned node and one that is not ready have theirs, one with a taint of its own has not,
    nor one of another zone; a node that has its pod gets no second one.
    """
    unschedulable = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    not_ready = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
    team = {"key": "team", "value": "a", "effect": "NoSchedule"}
    nodes = (
        a_node("cordoned", unschedulable=True, taints=[unschedulable]),
        a_node("down", taints=[not_ready]),
        a_node("kept", taints=[team]),
        a_node("far", zone="b"),
        a_node("served"),
    )
    wanted = a_daemon_set(nodeSelector={"topology.kubernetes.io/zone": "a"})
    served = a_pod("agent-x", on="served", owner="DaemonSet/agent")
    result, store = made(wanted, there=(*nodes, served))
    assert result.refused == []
    tied = {}
    for pod in pods(store):
        if pod["metadata"]["name"] == "agent-x":
            continue
        required = pod["spec"]["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        ((field,),) = (term["matchFields"] for term in required["nodeSelectorTerms"])
        tied[field["values"][0]] = pod
        assert pod["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
    assert set(tied) == {"n1", "cordoned", "down"}
