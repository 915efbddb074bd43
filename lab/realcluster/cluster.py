"""The cluster: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and three nodes.

The control plane runs in one network namespace, with a bridge. Each node has its own network,
mount, PID, UTS, IPC and cgroup namespaces, in which node.sh runs containerd, kubelet, kube-proxy.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from realcluster.certificates import write_certificates
from realcluster.processes import Processes, command, in_network
from realcluster.settings import (
    API_ADDRESS,
    CONTROL_PLANE_NETWORK,
    NODES,
    PREFIX,
    SERVICES,
    Settings,
    node_address,
    node_network,
    pod_network,
)

START_S = 120.0
NODE_SCRIPT = Path(__file__).with_name("node.sh")
BRIDGE = "nodes"
ETCD = "http://127.0.0.1:2379"
CGROUPS = Path("/sys/fs/cgroup")


class Cluster:
    """Start and end the cluster and its parts; there is one cluster on a machine."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._processes = Processes(settings)

    def up(self) -> None:
        settings = self._settings
        for folder in (settings.state, settings.logs):
            folder.mkdir(parents=True, exist_ok=True)
        write_certificates(settings.certificates)
        self._make_network()
        self._start_control_plane()
        for number in NODES:
            self.start_node(number)
        self.wait_for_nodes()

    def down(self) -> None:
        for number in NODES:
            self.cut_power(number)
        for name in ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"):
            self._processes.end(name)
        command("ip", "netns", "delete", CONTROL_PLANE_NETWORK)
        for _, folder in self._node_cgroups(NODES[0]):
            _remove_cgroup(folder.parent)
        shutil.rmtree(self._settings.state)
        shutil.rmtree(self._settings.folder / "nodes")

    def kubectl(self, *words: str) -> str:
        program = self._settings.assets / "kubectl"
        option = f"--kubeconfig={self._settings.kubeconfig}"
        return command(*in_network(CONTROL_PLANE_NETWORK, program, option, *words))

    # The nodes.

    def start_node(self, number: int) -> None:
        settings, network = self._settings, node_network(number)
        self._connect(number)
        cgroups = self._node_cgroups(number)
        for controllers, folder in cgroups:
            _make_cgroup(folder, controllers)
        unshare = [
            "unshare",
            "-m",
            "-u",
            "-i",
            "-C",
            "-p",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ]
        self._processes.start(
            f"node{number}",
            ["ip", "netns", "exec", network, *unshare, "tini", "-g", "--", str(NODE_SCRIPT)],
            variables={
                "NODE": f"node{number}",
                "NODE_ADDRESS": node_address(number),
                "POD_NETWORK": pod_network(number),
                "ZONE": f"zone{number}",
                "FOLDER": str(settings.node_folder(number)),
                "CERTIFICATES": str(settings.certificates),
                "NODE_ASSETS": str(settings.node_assets),
                "NETWORK_PLUGINS": str(settings.network_plugins),
                "IMAGES": str(settings.images),
                "IMAGE": settings.image,
                "NEXT_TAG": settings.next_tag,
                "CGROUPS": " ".join(controllers for controllers, _ in cgroups),
            },
            cgroups=[folder for _, folder in cgroups],
        )

    def cut_power(self, number: int) -> None:
        """End everything on a node at once; no connection is closed, as when the power fails."""
        name, network = f"node{number}", node_network(number)
        if self._processes.number(name) is not None:
            command("ip", "-n", CONTROL_PLANE_NETWORK, "link", "set", name, "down")
            os.kill(self._processes.child(name), signal.SIGKILL)
        while self._processes.number(name) is not None:
            time.sleep(0.05)
        if Path("/run/netns", network).exists():
            command("ip", "netns", "delete", network)
            # The kernel would remove it with the namespace, but later.
            command("ip", "-n", CONTROL_PLANE_NETWORK, "link", "delete", name)
        for _, folder in self._node_cgroups(number):
            _remove_cgroup(folder)

    def on_node(self, number: int, *words: str) -> str:
        """What a command in all namespaces of a node prints."""
        init = self._processes.child(f"node{number}")
        return command("nsenter", f"--target={init}", "--all", "--", *words)

    def wait_for_nodes(self) -> None:
        self._wait(self._nodes_are_ready, "ready nodes")

    def start_kube_scheduler(self, name: str, port: int) -> None:
        self._start_plane(name, "kube-scheduler", "scheduler", f"--secure-port={port}")

    @property
    def processes(self) -> Processes:
        return self._processes

    # The parts.

    def _make_network(self) -> None:
        plane = CONTROL_PLANE_NETWORK
        command("ip", "netns", "add", plane)
        command("ip", "-n", plane, "link", "set", "lo", "up")
        command("ip", "-n", plane, "link", "add", BRIDGE, "type", "bridge")
        command("ip", "-n", plane, "address", "add", f"{API_ADDRESS}/24", "dev", BRIDGE)
        command("ip", "-n", plane, "link", "set", BRIDGE, "up")
        command(*in_network(plane, "sysctl", "-qw", "net.ipv4.ip_forward=1"))

    def _connect(self, number: int) -> None:
        """Make the network namespace of a node, and a cable from it to the bridge."""
        plane, network, cable = CONTROL_PLANE_NETWORK, node_network(number), f"node{number}"
        command("ip", "netns", "add", network)
        command("ip", "-n", network, "link", "set", "lo", "up")
        end = ("peer", "name", "eth0", "netns", network)
        command("ip", "-n", plane, "link", "add", cable, "type", "veth", *end)
        command("ip", "-n", plane, "link", "set", cable, "master", BRIDGE, "up")
        command("ip", "-n", network, "address", "add", f"{node_address(number)}/24", "dev", "eth0")
        command("ip", "-n", network, "link", "set", "eth0", "up")
        command("ip", "-n", network, "route", "add", "default", "via", API_ADDRESS)
        via = ("via", node_address(number))
        command("ip", "-n", plane, "route", "replace", pod_network(number), *via)
        command(*in_network(network, "sysctl", "-qw", "net.ipv4.ip_forward=1"))

    def _start_control_plane(self) -> None:
        settings, files = self._settings, self._settings.certificates
        peer = "http://127.0.0.1:2380"
        self._start_in_plane(
            "etcd",
            f"--data-dir={settings.state}/etcd",
            f"--listen-client-urls={ETCD}",
            f"--advertise-client-urls={ETCD}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        )
        self._start_in_plane(
            "kube-apiserver",
            f"--etcd-servers={ETCD}",
            f"--advertise-address={API_ADDRESS}",
            "--secure-port=6443",
            f"--tls-cert-file={files}/api.crt",
            f"--tls-private-key-file={files}/api.key",
            f"--client-ca-file={files}/ca.crt",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--service-account-key-file={files}/accounts.key",
            f"--service-account-signing-key-file={files}/accounts.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={SERVICES}",
            "--allow-privileged=true",
            "--kubelet-preferred-address-types=InternalIP",
            f"--kubelet-client-certificate={files}/kubelet-client.crt",
            f"--kubelet-client-key={files}/kubelet-client.key",
            f"--requestheader-client-ca-file={files}/front-proxy-ca.crt",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
            f"--proxy-client-cert-file={files}/front-proxy-client.crt",
            f"--proxy-client-key-file={files}/front-proxy-client.key",
            f"--cert-dir={settings.state}/kube-apiserver",
        )
        self._wait(lambda: self.kubectl("get", "--raw=/readyz") == "ok", "the API server")
        self._start_plane(
            "kube-controller-manager",
            "kube-controller-manager",
            "controllers",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={files}/accounts.key",
            f"--root-ca-file={files}/ca.crt",
            f"--cluster-signing-cert-file={files}/ca.crt",
            f"--cluster-signing-key-file={files}/ca.key",
        )
        self.start_kube_scheduler("kube-scheduler", 10259)
        binding = ("--clusterrole=system:node-proxier", "--user=system:kube-proxy")
        self.kubectl("create", "clusterrolebinding", "kube-proxy", *binding)

    def _start_plane(self, name: str, program: str, user: str, *flags: str) -> None:
        """Start a client of the API server that has leader election and a port of its own."""
        kubeconfig = self._settings.certificates / f"{user}.kubeconfig"
        options = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
        self._start_in_plane(
            name,
            *(f"--{option}={kubeconfig}" for option in options),
            "--bind-address=127.0.0.1",
            f"--cert-dir={self._settings.state}/{name}",
            *flags,
            program=program,
        )

    def _start_in_plane(self, name: str, *flags: str, program: str = "") -> None:
        words = [str(self._settings.assets / (program or name)), *flags]
        self._processes.start(name, in_network(CONTROL_PLANE_NETWORK, *words))

    def _node_cgroups(self, number: int) -> list[tuple[str, Path]]:
        """(controllers, folder) of each hierarchy; one without controllers with cgroup v2."""
        if (CGROUPS / "cgroup.controllers").exists():
            return [("", CGROUPS / PREFIX / f"node{number}")]
        return [
            (controllers, folder / PREFIX / f"node{number}")
            for controllers, folder in _own_cgroups()
        ]

    def _nodes_are_ready(self) -> bool:
        path = '{.status.conditions[?(@.type=="Ready")].status}'
        items = "{range .items[*]}" + path + " {end}"
        states = self.kubectl("get", "nodes", f"-o=jsonpath={items}").split()
        return states == ["True"] * len(NODES)

    def _wait(self, holds: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + START_S
        while True:
            try:
                if holds():
                    return
            except RuntimeError as error:
                if time.monotonic() > until:
                    raise SystemExit(f"no {what} within {START_S:.0f} s: {error}") from error
            if time.monotonic() > until:
                raise SystemExit(f"no {what} within {START_S:.0f} s; see {self._settings.logs}")
            time.sleep(0.5)


def _own_cgroups() -> list[tuple[str, Path]]:
    """The cgroups (v1) of this process: controllers and folder, one for each hierarchy."""
    found = []
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers:
            folder = CGROUPS / controllers.removeprefix("name=") / path.lstrip("/")
            found.append((controllers, folder))
    return found


def _make_cgroup(folder: Path, controllers: str) -> None:
    for made in (folder.parent, folder):
        made.mkdir(exist_ok=True)
        if "cpuset" in controllers.split(","):
            # A new cpuset has no CPU, and takes no process.
            for name in ("cpuset.cpus", "cpuset.mems"):
                text = (made.parent / name).read_text(encoding="utf-8")
                (made / name).write_text(text, encoding="utf-8")
    if not controllers:
        names = (CGROUPS / "cgroup.controllers").read_text(encoding="utf-8").split()
        text = " ".join(f"+{name}" for name in names)
        for above in (CGROUPS, folder.parent):
            (above / "cgroup.subtree_control").write_text(text, encoding="utf-8")


def _remove_cgroup(folder: Path) -> None:
    """Remove a cgroup without processes, from the leaves on."""
    if folder.exists():
        for inner in sorted(folder.rglob("*/"), reverse=True):
            inner.rmdir()
        folder.rmdir()
