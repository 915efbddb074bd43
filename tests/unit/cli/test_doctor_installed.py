"""`asched doctor` without flags, beside an installation that works or is broken in one way."""

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from asched_lab.apiserver import crud
from asched_lab.apiserver.resources import find
from asched_lab.apiserver.server import ApiServer
from tests.deploy.manifests import DEPLOY, documents
from tests.unit.cli.programs import asched

Json = dict[str, Any]
NAMESPACE = "asched-system"
LEADER, STANDBY = "asched-5d8f9c7b6d-aaaaa", "asched-5d8f9c7b6d-bbbbb"


def ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Installation:
    """deploy/base with two ready replicas, one of which has the lease."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        for name in ("namespace", "rbac", "rbac-serving", "flow", "deployment"):
            for manifest in documents(DEPLOY / "base" / f"{name}.yaml"):
                server.create("", manifest)
        self.configure((DEPLOY / "base/scheduler.yaml").read_text("utf-8"))
        self.scale(2)
        for name in (LEADER, STANDBY):
            self.pod(name, NAMESPACE, labels=self.deployment["spec"]["selector"]["matchLabels"])
            self.report(name, containerStatuses=[{"name": "asched", "state": {"running": {}}}])
        self.renew(f"{LEADER}_0b1c")

    @property
    def deployment(self) -> Json:
        found = self.server.get("deployments", NAMESPACE, "asched")
        assert found is not None
        return found

    def put(self, plural: str, obj: Json) -> None:
        self.server.ctx.put(find(plural), obj)

    def delete(self, plural: str, namespace: str, name: str) -> None:
        record = self.server.ctx.get(find(plural), namespace, name)
        assert record is not None
        crud.delete(self.server.ctx, find(plural), record, {"gracePeriodSeconds": 0})

    def configure(self, text: str) -> None:
        metadata = {"name": "asched-config", "namespace": NAMESPACE}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        self.server.create("configmaps", {**body, "data": {"config.yaml": text}})

    def scale(self, replicas: int) -> None:
        spec = {**self.deployment["spec"], "replicas": replicas}
        self.put("deployments", {**self.deployment, "spec": spec})

    def pod(self, name: str, namespace: str, labels: Json, **spec: Any) -> None:
        container = {"name": "asched", "image": "asched"}
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        self.server.create(
            "pods", {"metadata": metadata, "spec": {"containers": [container], **spec}}
        )

    def report(
        self, name: str, *, ready: bool = True, phase: str = "Running", **status: Any
    ) -> None:
        """What the kubelet writes of a replica."""
        pod = self.server.get("pods", NAMESPACE, name)
        assert pod is not None
        condition = {"type": "Ready", "status": str(ready)}
        self.put("pods", {**pod, "status": {"phase": phase, "conditions": [condition], **status}})

    def report_all(self, **status: Any) -> None:
        for name in (LEADER, STANDBY):
            self.report(name, **{"ready": False, **status})

    def renew(self, holder: str, seconds_ago: float = 0) -> None:
        self.server.create(
            "",
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": "asched", "namespace": NAMESPACE},
                "spec": {
                    "holderIdentity": holder,
                    "leaseDurationSeconds": 15,
                    "renewTime": ago(seconds_ago).replace("Z", ".000000Z"),
                },
            },
        )

    def lose_lease(self, holder: str = "", seconds_ago: float = 300) -> None:
        self.delete("leases", NAMESPACE, "asched")
        if holder:
            self.renew(holder, seconds_ago)


@pytest.fixture
async def installed() -> AsyncIterator[Installation]:
    server = ApiServer()
    await server.start()
    try:
        yield Installation(server)
    finally:
        await server.stop()


async def doctor(installed: Installation, folder: Path, *words: str) -> tuple[int, list[Json]]:
    """The exit status, and the findings that are not OK."""
    file = folder / "kubeconfig"
    file.write_text(installed.server.kubeconfig())
    status, output, err = await asched("doctor", f"--kubeconfig={file}", "-o=json", *words)
    assert err == ""
    findings = json.loads(output)
    assert all(finding["cure"] for finding in findings if finding["state"] != "ok")
    return status, [finding for finding in findings if finding["state"] != "ok"]


async def test_it_finds_the_installation_by_itself(installed: Installation, tmp_path: Path) -> None:
    assert await doctor(installed, tmp_path) == (0, [])
    file = tmp_path / "kubeconfig"
    _, output, _ = await asched("doctor", f"--kubeconfig={file}")
    assert "asched-system/asched is checked, with its flags, its file and its account" in output
    assert 'checking the rights of "system:serviceaccount:asched-system:asched"' in output
    assert "asched-system/asched has 2 of 2 replicas ready" in output
    assert f'asched-system/asched is held by "{LEADER}_0b1c"' in output
    assert output.rstrip().endswith("no problem found")


async def test_replicas_that_are_gone_are_no_rivals(
    installed: Installation, tmp_path: Path
) -> None:
    """Neither are those of an installation that was removed."""
    for number, host in enumerate(("asched-66d9f7c9b8-ccccc", "my-asched-66d9f7c9b8-ddddd")):
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"e{number}", "namespace": "default"},
            "eventTime": ago(20).replace("Z", ".000000Z"),
            "reason": "Scheduled",
            "action": "Binding",
            "type": "Normal",
            "note": "assigned",
            "reportingController": "asched",
            "reportingInstance": f"asched-{host}",
            "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        }
        installed.server.create("", event)
    assert await doctor(installed, tmp_path) == (0, [])


def waiting(why: str, text: str = "", **last: Any) -> Callable[[Installation], None]:
    """Both replicas wait for the same."""
    container: Json = {"name": "asched", "state": {"waiting": {"reason": why, "message": text}}}
    if last:
        container |= {"restartCount": 7, "lastState": {"terminated": last}}
    return lambda installed: installed.report_all(phase="Pending", containerStatuses=[container])


def restarts(installed: Installation) -> None:
    """It runs at this moment, as between two crashes."""
    ended = {"exitCode": 139, "reason": "Error", "finishedAt": ago(20)}
    installed.report_all(
        containerStatuses=[
            {
                "name": "asched",
                "restartCount": 9,
                "state": {"running": {}},
                "lastState": {"terminated": ended},
            }
        ]
    )


def without_pods(installed: Installation) -> None:
    for name in (LEADER, STANDBY):
        installed.delete("pods", NAMESPACE, name)
    message = 'pods "asched-5d8f9c7b6d-" is forbidden: error looking up service account'
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
    status = {"conditions": [{**failure, "message": message}]}
    installed.put("deployments", {**installed.deployment, "status": status})
    installed.lose_lease()


def without_node(installed: Installation) -> None:
    for name in (LEADER, STANDBY):
        pod = installed.server.get("pods", NAMESPACE, name)
        assert pod is not None
        said = "0/3 nodes are available: 3 Insufficient cpu."
        condition = {"type": "PodScheduled", "status": "False", "message": said}
        installed.put("pods", {**pod, "status": {"phase": "Pending", "conditions": [condition]}})


def without_config_map(installed: Installation) -> None:
    installed.delete("configmaps", NAMESPACE, "asched-config")
    installed.report_all(phase="Pending")


def with_wrong_configuration(installed: Installation) -> None:
    installed.delete("configmaps", NAMESPACE, "asched-config")
    text = (DEPLOY / "base/scheduler.yaml").read_text("utf-8")
    installed.configure(f"{text}parallelism: 0\n")


def untried(installed: Installation) -> None:
    for number in range(3):
        installed.pod(f"web-{number}", "default", {}, schedulerName="asched")
        pod = installed.server.get("pods", "default", f"web-{number}")
        assert pod is not None
        metadata = {**pod["metadata"], "creationTimestamp": ago(600)}
        installed.put("pods", {**pod, "metadata": metadata})


def with_a_rival(installed: Installation) -> None:
    (manifest,) = documents(DEPLOY / "base/deployment.yaml")
    spec = manifest["spec"]["template"]["spec"]
    spec["serviceAccountName"] = "other"
    spec["containers"][0]["image"] = "kube-scheduler"
    spec["containers"][0]["args"] = ["--config=/etc/asched/config.yaml"]
    manifest["metadata"] |= {"name": "second", "namespace": "kube-system"}
    installed.server.create("", manifest)
    config_map = installed.server.get("configmaps", NAMESPACE, "asched-config")
    assert config_map is not None
    metadata = {"name": "asched-config", "namespace": "kube-system"}
    data = {"config.yaml": config_map["data"]["config.yaml"].replace("Name: asched", "Name: x", 1)}
    data["config.yaml"] = data["config.yaml"].replace("schedulerName: x", "schedulerName: asched")
    installed.server.create("configmaps", {"metadata": metadata, "data": data})


#: A way to break an installation, the check that finds it, and words of its text and its cure.
BROKEN: dict[str, tuple[Callable[[Installation], None], str, str, str]] = {
    "the image cannot be pulled": (
        waiting("ImagePullBackOff", 'Back-off pulling image "asched:0.1.0"'),
        "replicas",
        f"0 of 2 replicas ready; {LEADER}: ImagePullBackOff (Back-off pulling image",
        "correct the image of deployment asched",
    ),
    "the process ends again and again": (
        waiting("CrashLoopBackOff", exitCode=2, message="config.yaml:3:1: parallelism: ..."),
        "replicas",
        "CrashLoopBackOff (exit code 2: config.yaml:3:1: parallelism",
        f"kubectl -n asched-system logs {LEADER} --previous",
    ),
    "the process runs between two crashes": (
        restarts,
        "replicas",
        "CrashLoopBackOff (exit code 139)",
        "--previous",
    ),
    "the memory does not suffice": (
        waiting("CrashLoopBackOff", exitCode=137, reason="OOMKilled"),
        "replicas",
        "OOMKilled",
        "raise the memory limit",
    ),
    "it is scaled to zero": (
        lambda installed: installed.scale(0),
        "replicas",
        "asched-system/asched is scaled to 0",
        "kubectl -n asched-system scale deployment asched --replicas=2",
    ),
    "no pod can be created": (
        without_pods,
        "replicas",
        "FailedCreate (pods",
        "kubectl -n asched-system rollout restart deployment/asched",
    ),
    "no node has room for it": (
        without_node,
        "replicas",
        "Unschedulable (0/3 nodes are available: 3 Insufficient cpu.)",
        "free or add a node",
    ),
    "its ConfigMap is missing": (
        without_config_map,
        "installation",
        "/etc/asched/config.yaml is in no ConfigMap that exists",
        "correct its flags or its ConfigMap",
    ),
    "its configuration is invalid": (
        with_wrong_configuration,
        "installation",
        "parallelism: Invalid value: 0",
        "asched config check FILE",
    ),
    "it runs and is never ready": (
        lambda installed: installed.report_all(
            containerStatuses=[{"name": "asched", "state": {"running": {}}}]
        ),
        "replicas",
        f"0 of 2 replicas ready; {LEADER}: NotReady",
        "/readyz names the check",
    ),
    "no replica has the lease": (
        lambda installed: installed.lose_lease(),
        "lease",
        "asched-system/asched has no holder; no replica schedules",
        "kubectl -n asched-system logs deployment/asched",
    ),
    "the last holder is long gone": (
        lambda installed: installed.lose_lease(f"{LEADER}_0b1c"),
        "lease",
        f'has no holder: "{LEADER}_0b1c" renewed it 5 min ago',
        "kubectl -n asched-system logs deployment/asched",
    ),
    "its account lacks the rights": (
        lambda installed: installed.delete("clusterrolebindings", "", "asched"),
        "permissions",
        "scheduling: may not list, watch nodes",
        "kubectl apply -k deploy/base",
    ),
    "its account may not write the lease": (
        lambda installed: installed.delete("rolebindings", NAMESPACE, "asched-leader-election"),
        "permissions",
        "leader election: may not get",
        "kubectl apply -k deploy/base",
    ),
    "pods wait and none is tried": (
        untried,
        "waiting pods",
        '"asched": 3 of 3 waiting pods have not been tried; default/web-0 was created 10 min ago',
        "restart it",
    ),
    "another scheduler serves its name": (
        with_a_rival,
        "scheduler name",
        '"asched" is served by kube-system/second too',
        "give one of them another profiles[].schedulerName",
    ),
}


@pytest.mark.parametrize("way", BROKEN)
async def test_a_broken_installation_is_a_problem(
    installed: Installation, tmp_path: Path, way: str
) -> None:
    """One problem, with what is wrong and what to do, and exit status 1."""
    break_it, check, text, cure = BROKEN[way]
    break_it(installed)
    status, findings = await doctor(installed, tmp_path)
    assert status == 1
    problems = [f for f in findings if f["state"] == "problem" and f["check"] == check]
    assert any(text in f["text"] and cure in f["cure"] for f in problems), findings


async def test_one_replica_that_fails_beside_a_ready_one_is_a_warning(
    installed: Installation, tmp_path: Path
) -> None:
    container = {"name": "asched", "state": {"waiting": {"reason": "ErrImagePull"}}}
    installed.report(STANDBY, ready=False, containerStatuses=[container])
    status, findings = await doctor(installed, tmp_path)
    assert status == 0
    assert [(f["state"], f["check"]) for f in findings] == [("warning", "replicas")]


async def test_pods_without_an_installation_are_a_warning(
    installed: Installation, tmp_path: Path
) -> None:
    untried(installed)
    installed.delete("deployments", NAMESPACE, "asched")
    installed.lose_lease()
    status, findings = await doctor(installed, tmp_path)
    assert status == 0
    (found,) = [f for f in findings if f["check"] == "waiting pods"]
    assert (found["state"], "install" in found["cure"]) == ("warning", True)


async def test_of_two_installations_the_account_chooses(
    installed: Installation, tmp_path: Path
) -> None:
    (manifest,) = documents(DEPLOY / "base/deployment.yaml")
    manifest["metadata"]["name"] = "asched-too"
    manifest["spec"]["template"]["spec"]["serviceAccountName"] = "too"
    installed.server.create("", manifest)
    _, findings = await doctor(installed, tmp_path)
    (found,) = [f for f in findings if f["check"] == "installation"]
    assert "asched-system/asched, asched-system/asched-too" in found["text"]
    account = found["cure"].partition("such as ")[2].partition(",")[0]
    _, findings = await doctor(installed, tmp_path, account)
    assert [f for f in findings if f["check"] in ("installation", "replicas")] == []
