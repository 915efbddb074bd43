"""deploy/examples/my-scheduler: its configuration, its rights and its three pods, in a run."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from asched_lab.apiserver.call import User
from asched_lab.apiserver.server import ApiServer
from tests.deploy.manifests import DEPLOY, JsonObject, container, documents, one
from tests.support import HANG_S, ROOT

FOLDER = DEPLOY / "examples" / "my-scheduler"
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")


def objects(name: str) -> list[JsonObject]:
    return documents(FOLDER / f"{name}.yaml")


def command_line(folder: Path) -> list[str]:
    """The Deployment's flags, the mounted ConfigMap being a folder here."""
    config_map = one(objects("config"), "ConfigMap")
    for key, text in config_map["data"].items():
        (folder / key).write_text(text, encoding="utf-8")
    started = container(one(objects("deployment"), "Deployment"))
    mount = started["volumeMounts"][0]["mountPath"]
    return [word.replace(mount, str(folder)) for word in started["command"][1:]]


def test_it_can_be_applied_over_the_manifest_of_the_documentation() -> None:
    """A selector cannot be changed, and the Kubernetes page on several schedulers has this one."""
    spec = one(objects("deployment"), "Deployment")["spec"]
    assert spec["selector"]["matchLabels"] == {"component": "scheduler", "tier": "control-plane"}
    assert spec["template"]["metadata"]["labels"].items() >= spec["selector"]["matchLabels"].items()


#: The Deployment of that page, as far as the API server looks at it.
DOCUMENTED = """
apiVersion: apps/v1
kind: Deployment
metadata:
  labels: {component: scheduler, tier: control-plane}
  name: my-scheduler
  namespace: kube-system
spec:
  selector: {matchLabels: {component: scheduler, tier: control-plane}}
  replicas: 1
  template:
    metadata: {labels: {component: scheduler, tier: control-plane, version: second}}
    spec:
      serviceAccountName: my-scheduler
      containers:
      - name: kube-second-scheduler
        image: example.com/my-kube-scheduler:1.0
        command: [/usr/local/bin/kube-scheduler, --config=/etc/kubernetes/my-scheduler/my.yaml]
        volumeMounts: [{name: config-volume, mountPath: /etc/kubernetes/my-scheduler}]
      volumes: [{name: config-volume, configMap: {name: my-scheduler-config}}]
"""


@pytest.mark.real
@pytest.mark.parametrize("ours_first", [False, True])
def test_kubectl_applies_one_after_the_other(
    real_kubeconfig: str, tmp_path: Path, ours_first: bool
) -> None:
    documented = tmp_path / "documented.yaml"
    documented.write_text(DOCUMENTED, encoding="utf-8")
    pages = ["-f", str(documented)], ["-k", str(FOLDER)]
    for arguments in reversed(pages) if ours_first else pages:
        done = subprocess.run(
            [
                tool("kubectl"),
                f"--kubeconfig={real_kubeconfig}",
                "apply",
                "--validate=false",
                *arguments,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def tool(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['KUBEBUILDER_ASSETS']}:{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"{name} is not in KUBEBUILDER_ASSETS")
    return found


async def test_the_third_pod_is_placed_and_the_others_are_left_alone(tmp_path: Path) -> None:
    account = User("system:serviceaccount:kube-system:my-scheduler", GROUPS)
    server = ApiServer(users={"scheduler": account})
    await server.start(token="administrator")
    try:
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "20"}
        status = {"allocatable": amounts, "capacity": amounts}
        server.create("nodes", {"metadata": {"name": "n1"}, "status": status})
        for manifest in (*objects("rbac"), *objects("pods")):
            server.create("", manifest)
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(server.kubeconfig().replace("administrator", "scheduler"))
        words = [*command_line(tmp_path), "--secure-port=0"]
        scheduler = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "asched", "run", *words),
            cwd=ROOT,
            env={**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path)},
        )
        try:
            async with asyncio.timeout(HANG_S):
                while not node_of(server, "pod-my-scheduler"):
                    assert scheduler.returncode is None
                    await asyncio.sleep(0.05)
        finally:
            if scheduler.returncode is None:
                scheduler.terminate()
            status_code = await scheduler.wait()
        assert status_code == 0
        assert node_of(server, "pod-my-scheduler") == "n1"
        assert node_of(server, "pod-unnamed") == node_of(server, "pod-default-scheduler") == ""
        lease = server.get("leases", "kube-system", "my-scheduler")
        assert lease is not None
        assert lease["spec"]["holderIdentity"] == ""  # released on the way out
        (event,) = [e for e in server.list("events") if e["reason"] == "Scheduled"]
        assert event["reportingComponent"] == "my-scheduler"
    finally:
        await server.stop()


def node_of(server: ApiServer, name: str) -> str:
    pod = server.get("pods", "default", name)
    assert pod is not None
    return str(pod["spec"].get("nodeName", ""))
