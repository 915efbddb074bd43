"""What workloads come to in a plan, in the form that their controllers take for their own."""

import pytest

from asched_lab.whatif.makers import INDEX, NoPlanError, Parts, selected, taken_apart
from tests.lab.whatif.clusters import a_node, a_snapshot

LABELS = {"app": "web"}
CONTAINERS = [{"name": "main", "image": "pause"}]


def of_kind(kind: str, **spec: object) -> dict:
    group = {"Job": "batch/v1", "CronJob": "batch/v1", "ReplicationController": "v1"}
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": CONTAINERS}}
    return {
        "apiVersion": group.get(kind, "apps/v1"),
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"template": template, **spec},
    }


def parts(manifest: dict, *objects: dict, replicas: int | None = None) -> Parts:
    return taken_apart(manifest, replicas, "default", "p1", a_snapshot(*objects))


@pytest.mark.parametrize(
    ("manifest", "replicas", "why"),
    [
        (of_kind("CronJob"), None, "kubectl create job NAME --from=cronjob/web"),
        (of_kind("Job", suspend=True), None, "Job default/web is suspended, so it has no pods"),
        (of_kind("Job", managedBy="kueue.x-k8s.io/multikueue"), None, "is managed by kueue"),
        (of_kind("DaemonSet"), 3, "it has one pod per node, not --replicas"),
        (of_kind("StatefulSet", template=None) | {"spec": {}}, None, "has no spec.template"),
        (of_kind("ReplicaSet") | {"metadata": {}}, None, "has no metadata.name"),
    ],
    ids=["cron", "suspended", "managed", "replicas", "template", "name"],
)
def test_what_cannot_be_promised_is_refused_by_name(
    manifest: dict, replicas: int | None, why: str
) -> None:
    with pytest.raises(NoPlanError) as raised:
        parts(manifest, replicas=replicas)
    assert why in str(raised.value)


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController", "StatefulSet", "Job"])
def test_pods_are_what_their_owner_selects(kind: str) -> None:
    selector = LABELS if kind == "ReplicationController" else {"matchLabels": LABELS}
    more = {"parallelism": 3} if kind == "Job" else {"replicas": 3, "selector": selector}
    made = parts(of_kind(kind, **more))
    (owner,) = made.owners
    assert len({pod["metadata"]["name"] for pod in made.pods}) == 3
    for pod in made.pods:
        assert pod["metadata"]["name"].startswith("web-")
        assert selected(owner).items() <= pod["metadata"]["labels"].items()
        assert LABELS.items() <= pod["metadata"]["labels"].items()
    assert selected(owner)


def test_the_pods_of_an_indexed_job_know_their_index() -> None:
    made = parts(of_kind("Job", parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1))
    for index, pod in enumerate(made.pods):
        metadata, spec = pod["metadata"], pod["spec"]
        assert metadata["name"].startswith(f"web-{index}-")
        assert metadata["labels"][INDEX] == metadata["annotations"][INDEX] == str(index)
        failures = "batch.kubernetes.io/job-index-failure-count"
        assert metadata["annotations"][failures] == "0"
        assert spec["hostname"] == f"web-{index}"
        (variable,) = spec["containers"][0]["env"]
        assert variable["name"] == "JOB_COMPLETION_INDEX"
    assert "env" not in CONTAINERS[0]


def test_a_daemon_set_has_a_pod_for_each_node_that_it_would_choose() -> None:
    closed = a_node("n3")
    closed["spec"] = {"taints": [{"key": "team", "effect": "NoSchedule"}]}
    made = parts(of_kind("DaemonSet"), a_node("n1"), a_node("n2"), closed)
    nodes = set()
    for pod in made.pods:
        assert pod["metadata"]["labels"]["pod-template-generation"] == "1"
        required = pod["spec"]["affinity"]["nodeAffinity"]
        (term,) = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        nodes.update(term["matchFields"][0]["values"])
    assert nodes == {"n1", "n2"}
