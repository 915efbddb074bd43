"""The trials of one installation of asched; each writes a row into the column of the installation.

Seconds are of this machine's clock. A gap reaches from the event to the first binding of a pod that
was created after it, where two pods a second are created.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from realcluster.api import Api, Pods, wait
from realcluster.cluster import Cluster
from realcluster.installations import INSTALLATIONS, Administrator, Asched, KubeScheduler
from realcluster.results import Results
from realcluster.settings import NODES, REPOSITORY, Settings
from realcluster.stream import Stream
from realcluster.workloads import (
    deployment,
    gang,
    local_volume,
    never_started,
    one_per_node,
    pod_spec,
    stateful_set,
    static_pod,
    storage_class,
)

LIMIT_S = 600.0
REFUSED_S = 60.0
FEW, MANY = 20, 200
GROUP_CRD = REPOSITORY / "tests/e2e/operators/crd.yaml"
#: Kinds that expire, or that API servers do not serve for long.
PASSING = ("events", "componentstatuses")


class Trial:
    """An installation in a cluster that runs, and what is done with it."""

    def __init__(self, settings: Settings, column: str) -> None:
        self._settings = settings
        self._column = column
        self._cluster = Cluster(settings)
        self._administrator = Administrator(settings)
        self._api = Api(settings.kubeconfig)
        self._installation = INSTALLATIONS[column](settings, self._administrator)
        self._scheduler = self._installation.scheduler

    def run(self, only: list[str]) -> None:
        """Run the trials in their order, or those whose names are given."""
        results = Results(self._settings.folder / "results.json")
        for name, (_, trial) in TRIALS.items():
            possible = isinstance(self._installation, Asched) or name in WITH_KUBE_SCHEDULER
            if possible and (not only or name in only):
                begun = time.monotonic()
                cell = trial(self)
                results.add(name, self._column, cell)
                print(f"{name} ({time.monotonic() - begun:.0f} s): {cell}", flush=True)

    # Installing.

    def install(self) -> str:
        before = self._doctor("before")
        begun = time.monotonic()
        self._installation.install()
        self._wait_for_replicas()
        seconds = time.monotonic() - begun
        if not isinstance(self._installation, Asched):
            return f"{seconds:.1f} s"
        return f"{seconds:.1f} s; doctor before: {before}, after: {self._doctor('after')}"

    def secure(self) -> str:
        """What the kernel says of the process in a pod that the level `restricted` admits."""
        level = self._get("namespace", self._installation.namespace, "metadata.labels")
        enforced = json.loads(level)["pod-security.kubernetes.io/enforce"]
        pod, number = self._leader()
        process = self._process(pod, number)
        status = self._cluster.on_node(number, "cat", f"/proc/{process}/status")
        values = dict(line.split(":\t", 1) for line in status.splitlines())
        wanted = ("CapEff", "NoNewPrivs", "Seccomp")
        shown = ", ".join(f"{name} {values[name]}" for name in wanted)
        return f"{enforced}: user {values['Uid'].split()[0]}, {shown}"

    def probe(self) -> str:
        """The process of the standby stands still."""
        standby, number = self._standby()
        restarts = self._restarts(standby)
        self._cluster.on_node(number, "kill", "-STOP", str(self._process(standby, number)))
        unready = wait(lambda: not self._is_ready(standby), LIMIT_S, "failed readiness")
        alive = wait(lambda: self._restarts(standby) > restarts, LIMIT_S, "a restart")
        self._wait_for_replicas()
        return f"not ready after {unready:.0f} s, restarted after {unready + alive:.0f} s"

    # Pods.

    def few(self) -> str:
        """Containers that run."""
        return self._deploy(FEW, started=True)

    def many(self) -> str:
        """Containers that never start, so that the machine's CPUs are left to the scheduler."""
        return self._deploy(MANY, started=False)

    def gang(self) -> str:
        if not self._administrator.run(
            "kubectl", "get", "crd", "podgroups.scheduling.x-k8s.io"
        ).stdout:
            self._administrator.do("kubectl", "create", "-f", str(GROUP_CRD))
            self._administrator.do("kubectl", "wait", "--for=condition=Established", "crd", "--all")
        self._asched.change("batch")
        self._wait_for_replicas()
        with Pods(self._api, "app=four") as four, Pods(self._api, "app=nine") as nine:
            self._apply(*gang("nine", 9, "700m", self._scheduler))
            wait(lambda: len(nine.seen) == 9, LIMIT_S, "the pods of the gang")
            self._apply(*gang("four", 4, "400m", self._scheduler))
            wait(lambda: len(four.started()) == 4, LIMIT_S, "the gang")
            bound = sorted(each.bound or 0.0 for each in four.seen.values())
            last = max(each.created for each in four.seen.values())
            explained = self._explain(next(iter(nine.seen)), "gang")
            stuck = len(nine.bound())
        self._delete(
            *gang("nine", 9, "700m", self._scheduler), *gang("four", 4, "400m", self._scheduler)
        )
        whole = f"of nine without room {stuck} bound, {self._named(explained, 'gang', 'group')}"
        return f"four bound {_ms(bound[-1] - last)} ms after the last was created, {whole}"

    def volumes(self) -> str:
        """Two local volumes for three claims of a class with WaitForFirstConsumer; then a third."""
        name = "volumes"
        volumes = [local_volume("first", "node2", "a"), local_volume("second", "node3", "a")]
        self._apply(storage_class(), *volumes)
        with Pods(self._api, f"app={name}") as pods:
            self._apply(stateful_set(name, 3, self._scheduler))
            wait(lambda: len(pods.started()) == 2, LIMIT_S, "pods with volumes")
            time.sleep(5)
            waiting = 3 - len(pods.bound())
            third = local_volume("third", "node3", "b")
            begun = time.monotonic()
            self._apply(third)
            wait(lambda: len(pods.bound()) == 3, LIMIT_S, "a binding of the third pod")
            bound = time.monotonic() - begun
            wait(lambda: len(pods.started()) == 3, LIMIT_S, "the third pod")
            running = time.monotonic() - begun
            places = sorted(each.node for each in pods.seen.values())
        self._delete(stateful_set(name, 3, self._scheduler))
        self._administrator.do("kubectl", "delete", "pvc", "-l", f"app={name}")
        self._delete(*volumes, third, storage_class())
        third_pod = f"bound {bound:.1f} s after its volume, Running {running:.1f} s"
        return f"local: {waiting} of 3 waits; {third_pod}; on {', '.join(places)}"

    def refused(self) -> str:
        """A node is fuller than its kubelet reports; pods exclude each other from nodes."""
        number = NODES[-1]
        file = self._settings.node_folder(number) / "manifests/unseen.json"
        file.write_text(json.dumps(static_pod("1500m")), encoding="utf-8")
        path = f"/api/v1/nodes/node{number}/proxy/pods"
        wait(lambda: "unseen" in json.dumps(self._api.ask("GET", path)), LIMIT_S, "the static pod")
        return self._refusals(file)

    # Leaders.

    def killed(self) -> str:
        pod, number = self._leader()
        with Stream(self._api, self._scheduler, "killed") as stream:
            process = self._process(pod, number)
            moment = time.monotonic()
            self._cluster.on_node(number, "kill", "-KILL", str(process))
            gap = stream.gap_after(moment)
        self._wait_for_replicas()
        return f"{gap:.1f} s"

    def stopped(self) -> str:
        pod, _ = self._leader()
        with Stream(self._api, self._scheduler, "stopped") as stream:
            moment = time.monotonic()
            self._kubectl("-n", self._installation.namespace, "delete", "pod", pod, "--wait=false")
            gap = stream.gap_after(moment)
            self._wait_for_replicas()
            longest = stream.longest_wait()
        return f"{gap:.1f} s, longest wait {longest:.1f} s"

    def without_power(self) -> str:
        _, number = self._leader()
        node = f"node{number}"
        with Stream(self._api, self._scheduler, "power") as stream:
            moment = time.monotonic()
            self._cluster.cut_power(number)
            gap = stream.gap_after(moment)
            wait(lambda: self._node_state(node) == "Unknown", LIMIT_S, "a node that is not ready")
            noticed = time.monotonic() - moment
            lost = [each for each in stream.pods.seen.values()
                    if each.node == node and each.created >= moment]  # fmt: skip
        begun = time.monotonic()
        self._cluster.start_node(number)
        self._cluster.wait_for_nodes()
        self._wait_for_replicas()
        back = time.monotonic() - begun
        meanwhile = f"{len(lost)} pods bound to it until it is not ready ({noticed:.0f} s)"
        return f"{gap:.1f} s; {meanwhile}; two ready {back:.0f} s after power is back"

    def drained(self) -> str:
        _, number = self._leader()
        with Stream(self._api, self._scheduler, "drained") as stream:
            begun = time.monotonic()
            self._administrator.do("kubectl", "drain", f"node{number}")
            seconds = time.monotonic() - begun
            gap = stream.gap_after(begun)
            self._wait_for_replicas()
            longest = stream.longest_wait()
        self._administrator.do("kubectl", "uncordon", f"node{number}")
        return f"{seconds:.0f} s; gap {gap:.1f} s, longest wait {longest:.1f} s"

    # The release.

    def upgraded(self) -> str:
        texts = []
        changes: list[tuple[str, Callable[[], None]]] = [
            ("upgrade", lambda: self._asched.change("high-load", self._settings.next_tag)),
            ("rollback", self._asched.undo),
        ]
        for name, change in changes:
            with Stream(self._api, self._scheduler, name) as stream:
                begun = time.monotonic()
                change()
                self._installation.wait_for_rollout()
                seconds = time.monotonic() - begun
                self._wait_for_replicas()
            waits = stream.longest_wait()
            texts.append(
                f"{name} {seconds:.0f} s, {len(stream.pods.seen)} pods, longest {waits:.1f} s"
            )
        path = "spec.template.spec.containers[0].image"
        image = self._get("deployment", self._installation.deployment, path)
        assert image == self._settings.image, image
        return "; ".join(texts)

    def reinstalled(self) -> str:
        begun = time.monotonic()
        self._installation.uninstall()
        gone = time.monotonic() - begun
        left = self._left() or "nothing"
        self._installation.install()
        self._wait_for_replicas()
        with Pods(self._api, "app=again") as pods:
            self._apply(deployment("again", 1, pod_spec(self._scheduler)))
            wait(pods.bound, LIMIT_S, "a binding")
            bound = pods.bound()[0]
        self._delete(deployment("again", 1, pod_spec(self._scheduler)))
        transitions = self._lease("leaseTransitions")
        removed = f"removed in {gone:.0f} s, left: {left}"
        return f"{removed}; next: first pod bound after {_ms(bound)} ms, {transitions} transitions"

    def uninstall(self) -> str:
        self._installation.uninstall()
        return f"left: {self._left() or 'nothing'}"

    # What the trials share.

    @property
    def _asched(self) -> Asched:
        assert isinstance(self._installation, Asched)
        return self._installation

    def _deploy(self, count: int, *, started: bool) -> str:
        """Times of this scheduler, and before it those of kube-scheduler if it is there."""
        ours, theirs = self._installation, KubeScheduler
        words = ("get", "namespace", theirs.namespace, "--ignore-not-found")
        beside = ours.scheduler != theirs.scheduler and self._kubectl(*words)
        text = ""
        if beside:
            measured = self._deployed(count, theirs.scheduler, started)
            text = f" (kube-scheduler a moment before: {measured})"
        return f"{self._deployed(count, ours.scheduler, started)}{text}"

    def _deployed(self, count: int, scheduler: str, started: bool) -> str:
        name = f"load-{scheduler}"
        spec = pod_spec(scheduler)
        made = deployment(name, count, spec if started else never_started(spec))
        with Pods(self._api, f"app={name}") as pods:
            seconds = pods.started if started else pods.bound
            self._apply(made)
            wait(lambda: len(seconds()) == count, LIMIT_S, f"{count} pods")
            bound, running = pods.bound(), pods.started()
        self._delete(made)
        self._wait_for_no_pod(name)
        middle, high = bound[count // 2], bound[int(0.99 * count) - 1]
        later = f", Running {running[count // 2]:.1f} s later" if started else ""
        return f"{_ms(middle)} / {_ms(high)} ms{later}"

    def _refusals(self, static: Path) -> str:
        """How often the kubelet refuses; what explain says; seconds from more room to Running."""
        name, scheduler = "refused", self._scheduler
        made = deployment(name, len(NODES), one_per_node(name, pod_spec(scheduler, cpu="600m")))
        with Pods(self._api, f"app={name}") as pods:
            self._apply(made)
            begun = time.monotonic()
            wait(lambda: _refused_in(pods), LIMIT_S, "a refusal")
            text = self._explain_refusal(pods) if self._scheduler == Asched.scheduler else ""
            time.sleep(max(0.0, begun + REFUSED_S - time.monotonic()))
            count = len(_refused_in(pods))
            static.unlink()
            begun = time.monotonic()
            wait(lambda: len(pods.started()) == len(NODES), LIMIT_S, "the refused pod")
            running = time.monotonic() - begun
        self._delete(made)
        self._wait_for_no_pod(name)
        return (
            f"{count} refusals in {REFUSED_S:.0f} s{text}; Running {running:.0f} s after more room"
        )

    def _explain_refusal(self, pods: Pods) -> str:
        def waiting() -> list[str]:
            return [name for name, each in list(pods.seen.items()) if each.bound is None]

        refused = self._explain(_refused_in(pods)[0], "refused")
        wait(waiting, LIMIT_S, "a pod that waits")
        time.sleep(1)  # for its first attempt
        left_out = self._explain(waiting()[0], "left-out")
        named = (self._named(refused, "OutOfcpu"), self._named(left_out, "left out for"))
        return f"; refused pod: {named[0]}, waiting pod: {named[1]}"

    def _doctor(self, when: str) -> str:
        ran = self._administrator.run("asched", "doctor")
        self._log(f"doctor-{when}", ran.stdout + ran.stderr)
        return f"exit {ran.returncode}"

    def _explain(self, pod: str, file: str) -> str:
        lease = f"{self._installation.namespace}/{self._installation.lease}"
        text = self._administrator.do("asched", "explain", pod, f"--lease={lease}")
        self._log(file, text)
        return text

    def _named(self, text: str, *words: str) -> str:
        found = next((word for word in words if word in text), "")
        return f"explain names it ({found})" if found else "explain does not name it"

    def _log(self, file: str, text: str) -> None:
        path: Path = self._settings.logs / f"{self._column}-{file}.txt"
        path.write_text(text, encoding="utf-8")

    def _left(self) -> str:
        """Objects that are named or labelled after asched."""
        kinds = self._kubectl("api-resources", "--verbs=list", "-o=name").split()
        wanted = ",".join(kind for kind in kinds if kind.partition(".")[0] not in PASSING)
        text = self._kubectl("get", wanted, "--all-namespaces", "-o=json")
        found = []
        for each in json.loads(text)["items"]:
            metadata: dict[str, Any] = each["metadata"]
            words = [metadata["name"], metadata.get("namespace", "")]
            words += [*metadata.get("finalizers", ()), *metadata.get("labels", {}).values()]
            if any("asched" in word or "helm" in word for word in words):
                found.append(f"{each['kind']} {metadata['name']}")
        return ", ".join(found)

    # Questions to the API server.

    def _kubectl(self, *words: str) -> str:
        return self._administrator.do("kubectl", *words)

    def _get(self, kind: str, name: str, path: str) -> str:
        words = ("get", kind, name, f"-o=jsonpath={{.{path}}}")
        return self._kubectl("-n", self._installation.namespace, *words)

    def _apply(self, *objects: dict[str, Any]) -> None:
        document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self._administrator.do("kubectl", "create", "-f", "-", stdin=json.dumps(document))

    def _delete(self, *objects: dict[str, Any]) -> None:
        document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self._administrator.do("kubectl", "delete", "-f", "-", stdin=json.dumps(document))

    def _wait_for_no_pod(self, name: str) -> None:
        words = ("get", "pods", f"--selector=app={name}", "-o=name")
        wait(lambda: not self._kubectl(*words), LIMIT_S, "the end of pods")

    def _replicas(self) -> list[dict[str, Any]]:
        namespace = self._installation.namespace
        selector = "labelSelector=app.kubernetes.io/component%3Dscheduler"
        path = f"/api/v1/namespaces/{namespace}/pods?{selector}"
        pods = self._api.ask("GET", path)["items"]
        return [pod for pod in pods if pod["status"]["phase"] not in ("Succeeded", "Failed")]

    def _wait_for_replicas(self) -> None:
        """Wait for two ready replicas and no other, of which one leads."""

        def holds() -> bool:
            pods = self._replicas()
            return (
                len(pods) == 2
                and all(_is_ready(pod) for pod in pods)
                and self._lease("holderIdentity").partition("_")[0]
                in {pod["metadata"]["name"] for pod in pods}
            )

        wait(holds, LIMIT_S, "two ready replicas")

    def _lease(self, field: str) -> str:
        """A field of the Lease; empty where it does not exist yet."""
        words = (
            "get",
            "lease",
            self._installation.lease,
            "--ignore-not-found",
            f"-o=jsonpath={{.spec.{field}}}",
        )
        return self._kubectl("-n", self._installation.namespace, *words)

    def _leader(self) -> tuple[str, int]:
        """The pod that leads, and the number of its node."""
        name = self._lease("holderIdentity").partition("_")[0]
        return name, _node_number(self._replica(name))

    def _standby(self) -> tuple[str, int]:
        leader, _ = self._leader()
        (pod,) = (each for each in self._replicas() if each["metadata"]["name"] != leader)
        return pod["metadata"]["name"], _node_number(pod)

    def _replica(self, name: str) -> dict[str, Any]:
        (pod,) = (each for each in self._replicas() if each["metadata"]["name"] == name)
        return pod

    def _is_ready(self, name: str) -> bool:
        return _is_ready(self._replica(name))

    def _restarts(self, name: str) -> int:
        return int(self._replica(name)["status"]["containerStatuses"][0]["restartCount"])

    def _process(self, pod: str, number: int) -> int:
        """The number, on the node, of the process of a replica."""
        status = self._replica(pod)["status"]["containerStatuses"][0]
        container = status["containerID"].removeprefix("containerd://")
        tasks = self._cluster.on_node(number, "ctr", "--namespace", "k8s.io", "task", "list")
        (process,) = (line.split()[1] for line in tasks.splitlines() if line.startswith(container))
        return int(process)

    def _node_state(self, node: str) -> str:
        conditions = self._api.ask("GET", f"/api/v1/nodes/{node}")["status"]["conditions"]
        (state,) = (each["status"] for each in conditions if each["type"] == "Ready")
        return str(state)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f}"


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def _node_number(pod: dict[str, Any]) -> int:
    return int(pod["spec"]["nodeName"].removeprefix("node"))


def _refused_in(pods: Pods) -> list[str]:
    return [name for name, each in list(pods.seen.items()) if each.reason == "OutOfcpu"]


#: Names, titles of rows, and what is done, in order.
TRIALS: dict[str, tuple[str, Callable[[Trial], str]]] = {
    "install": ("From apply to two ready replicas", Trial.install),
    "secure": ("Pod Security Standard, and what the kernel says of the process", Trial.secure),
    "few": (f"{FEW} pods of a Deployment: creation to binding, p50 / p99", Trial.few),
    "probe": ("The standby's process stands still (SIGSTOP): probes", Trial.probe),
    "killed": ("Leader killed (SIGKILL): gap", Trial.killed),
    "stopped": ("Leader's pod deleted: gap", Trial.stopped),
    "power": ("Node of the leader without power: gap", Trial.without_power),
    "drained": ("`kubectl drain` of the leader's node, without flags", Trial.drained),
    "upgraded": ("Upgrade to another image and configuration, and rollback", Trial.upgraded),
    "refused": ("A kubelet refuses a pod (OutOfcpu)", Trial.refused),
    "volumes": ("Volumes with WaitForFirstConsumer", Trial.volumes),
    "many": (f"{MANY} pods that never start: creation to binding, p50 / p99", Trial.many),
    "reinstalled": ("Uninstall, and install again", Trial.reinstalled),
    "gang": ("A gang (PodGroup of scheduling.x-k8s.io)", Trial.gang),
    "uninstall": ("Uninstall", Trial.uninstall),
}
#: What kube-scheduler can do, too.
WITH_KUBE_SCHEDULER = ("install", "few", "killed", "stopped", "power", "drained", "refused", "many")
