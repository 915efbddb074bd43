"""kubectl on a real API server, and what a pod of a Deployment would run there.

with real_api_server() as kubeconfig:
    cluster = Cluster(kubeconfig)
    cluster.apply(objects)
    words = started(objects, folder)      # of `asched run`
"""

import json
import socket
import subprocess
from pathlib import Path

from tests.deploy.manifests import JsonObject, container, kubectl, one

FOREIGN = ("ServiceMonitor", "PrometheusRule")
#: Kinds that expire, or that API servers do not serve for long.
PASSING = ("events", "componentstatuses")
#: Annotation: what a user has applied.
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Cluster:
    """kubectl on a real API server."""

    def __init__(self, kubeconfig: str) -> None:
        self.kubeconfig = kubeconfig

    def run(
        self, *words: str, send: list[JsonObject] | None = None, raw: object = None
    ) -> subprocess.CompletedProcess[str]:
        """`send` are objects for standard input, `raw` is its text."""
        sent = raw if send is None else {"apiVersion": "v1", "kind": "List", "items": send}
        text = None if sent is None else json.dumps(sent)
        command = [kubectl(), f"--kubeconfig={self.kubeconfig}", *words]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)

    def do(self, *words: str, send: list[JsonObject] | None = None) -> str:
        made = self.run(*words, send=send)
        assert made.returncode == 0, made.stderr
        return made.stdout

    def apply(self, objects: list[JsonObject], *words: str) -> None:
        namespaces = {o["metadata"].get("namespace", "default") for o in objects}
        spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                  for name in sorted(namespaces - {"default", "kube-system"})]  # fmt: skip
        if spaces:
            self.do("apply", "-f", "-", send=spaces)
        known = [o for o in objects if o["kind"] not in ("Namespace", *FOREIGN)]
        self.do("apply", "--validate=strict", "-f", "-", *words, send=known)

    def account(self, namespace: str, name: str, folder: Path) -> str:
        """A kubeconfig with a token of a ServiceAccount and nothing else."""
        document = json.loads(Path(self.kubeconfig).read_text(encoding="utf-8"))
        token = self.do("-n", namespace, "create", "token", name).strip()
        document["users"] = [{"name": "u", "user": {"token": token}}]
        document["contexts"][0]["context"]["user"] = "u"
        path = folder / f"{namespace}.kubeconfig"
        path.write_text(json.dumps(document), encoding="utf-8")
        return str(path)


def traces(cluster: Cluster) -> list[str]:
    """Objects of every kind and namespace that are named after asched or a release, or whose
    labels, annotations or finalizers name asched.
    """
    kinds = cluster.do("api-resources", "--verbs=list", "-o=name").split()
    wanted = ",".join(kind for kind in kinds if kind.partition(".")[0] not in PASSING)
    found = []
    for obj in json.loads(cluster.do("get", wanted, "--all-namespaces", "-o=json"))["items"]:
        metadata = obj["metadata"]
        words = [metadata["name"], *metadata.get("finalizers", ())]
        for field in ("labels", "annotations"):
            words += (part for item in metadata.get(field, {}).items() for part in item
                      if item[0] != APPLIED)  # fmt: skip
        if any("asched" in word or "helm" in word for word in words):
            found.append(f"{obj['kind']} {metadata.get('namespace', '')}/{metadata['name']}")
    return found


def account_of(objects: list[JsonObject]) -> str:
    return str(one(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"])


def started(objects: list[JsonObject], folder: Path) -> list[str]:
    """The flags of the Deployment, its mounts being folders here, on a free port."""
    (config,) = (o for o in objects if o["kind"] == "ConfigMap")
    (folder / "config.yaml").write_text(config["data"]["config.yaml"], encoding="utf-8")
    command, *words = container(one(objects, "Deployment"))["args"]
    assert command == "run"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [word.replace("/etc/asched", str(folder)) for word in words]
    return [*words, f"--secure-port={port}", "--bind-address=127.0.0.1"]
