"""Nodes and volumes without machines: requests, watches, leases, zonal volumes."""

import asyncio
import json
import ssl
from pathlib import Path

import aiohttp

from tests.e2e.upstream.pod_rules import micro, now

PROVISIONER = "fakelet.test/zonal"


class Nodes:
    """Nodes and volumes in the API server; the pods on them are those of `Fakelet`."""

    def __init__(self, args):
        kc = json.loads(Path(args.kubeconfig).read_text())
        cl, us = kc["clusters"][0]["cluster"], kc["users"][0]["user"]
        self.base, self.a = cl["server"], args
        self.ssl = ssl.create_default_context(cafile=cl["certificate-authority"])
        self.headers = {"Authorization": "Bearer " + us["token"]}
        self.beside: set[asyncio.Future] = set()
        self.nodes, self.pods, self.tasks, self.wake = {}, {}, {}, {}
        self.admitted: dict[str, dict] = {}  # uid -> pod, while its containers hold room
        self.ips: dict[str, int] = {}
        self.pending: set[str] = set()  # uids whose resize does not fit yet
        self.kept: set[tuple[str, str]] = (
            set()
        )  # namespace and name of pods that find that file again
        self.marks: dict[str, set] = {}  # uid -> what was done to it by exec
        self.known = {f"node-{i}" for i in range(args.nodes)}

    def spawn(self, work):
        """Run something beside what runs; a reference keeps it from being collected."""
        task = asyncio.ensure_future(work)
        self.beside.add(task)
        task.add_done_callback(self.beside.discard)
        return task

    async def call(self, method, path, body=None, ctype="application/json"):
        for wait in (0.1, 0.3, 1, 2, 4, None):
            try:
                async with self.http.request(
                    method,
                    self.base + path,
                    data=None if body is None else json.dumps(body),
                    headers={"Content-Type": ctype},
                    ssl=self.ssl,
                ) as r:
                    out = await r.json()
                    if r.status < 500 and r.status != 429:
                        return r.status, out
            except (TimeoutError, aiohttp.ClientError, OSError):
                if wait is None:
                    raise
            if wait is None:
                return r.status, out
            await asyncio.sleep(wait)
        return None

    async def watch(self, path, got):
        """List and watch: got(type, object), and got("SYNC", {uid: object}) after each list."""
        while True:
            try:
                _, lst = await self.call("GET", path)
                rv = lst["metadata"]["resourceVersion"]
                got("SYNC", {o["metadata"]["uid"]: o for o in lst["items"]})
                while rv:
                    sep = "&" if "?" in path else "?"
                    query = (
                        f"watch=1&resourceVersion={rv}&allowWatchBookmarks=true&timeoutSeconds=600"
                    )
                    url = f"{self.base}{path}{sep}{query}"
                    async with self.http.get(
                        url, ssl=self.ssl, timeout=aiohttp.ClientTimeout(total=None)
                    ) as r:
                        if r.status != 200:
                            break
                        async for line in r.content:
                            ev = json.loads(line)
                            if ev["type"] == "ERROR":
                                rv = None
                                break
                            rv = ev["object"]["metadata"]["resourceVersion"]
                            if ev["type"] != "BOOKMARK":
                                got(ev["type"], ev["object"])
            except Exception as e:  # noqa: BLE001 - the server may be restarted
                print("watch", path, repr(e), flush=True)
            await asyncio.sleep(0.5)

    def addr(self, name):
        return f"127.0.1.{int(name.rsplit('-', 1)[1]) + 1}"

    async def make_node(self, i):
        name, a = f"node-{i}", self.a
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "topology.kubernetes.io/region": "r",
            "topology.kubernetes.io/zone": f"z{i % a.zones}",
        }
        await self.call(
            "POST",
            "/api/v1/nodes",
            {
                "metadata": {"name": name, "labels": labels},
                "spec": {"podCIDR": f"10.{100 + i}.0.0/16", "podCIDRs": [f"10.{100 + i}.0.0/16"]},
            },
        )
        await self.beat(name)
        room = {
            "cpu": a.cpu,
            "memory": a.memory,
            "ephemeral-storage": a.storage,
            "pods": str(a.pods),
        }
        status = {
            "daemonEndpoints": {"kubeletEndpoint": {"Port": a.port}},
            "capacity": room,
            "allocatable": room,
            "addresses": [
                {"type": "InternalIP", "address": self.addr(name)},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "kubeletVersion": "v1.36.2",
                "kubeProxyVersion": "",
                "machineID": name,
                "systemUUID": name,
                "bootID": name,
                "kernelVersion": "6.1.0",
                "osImage": "fake",
                "containerRuntimeVersion": "fake://1",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        }
        await self.call(
            "PATCH",
            f"/api/v1/nodes/{name}/status",
            {"status": status},
            "application/strategic-merge-patch+json",
        )
        # The specs' WaitForTotalHealthy waits a minute for these three on every node.
        for sysname in ("kube-proxy", "fluentd-elasticsearch", "node-problem-detector"):
            await self.call(
                "POST",
                "/api/v1/namespaces/kube-system/pods",
                {
                    "metadata": {"name": f"{sysname}-{name}", "labels": {"fakelet": "system"}},
                    "spec": {
                        "nodeName": name,
                        "hostNetwork": True,
                        "priorityClassName": "system-node-critical",
                        "automountServiceAccountToken": False,
                        "tolerations": [{"operator": "Exists"}],
                        "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}],
                    },
                },
            )

    async def beat(self, name):
        t = now()

        def cond(k, v, r):
            return {
                "type": k,
                "status": v,
                "reason": r,
                "message": r,
                "lastHeartbeatTime": t,
            }

        old = {
            c["type"]: c
            for c in (self.nodes.get(name, {}).get("status", {}).get("conditions") or [])
        }
        conds = [
            cond("Ready", "True", "KubeletReady"),
            cond("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            cond("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            cond("PIDPressure", "False", "KubeletHasSufficientPID"),
        ]
        for c in conds:
            if old.get(c["type"], {}).get("status") != c["status"]:
                c["lastTransitionTime"] = t
        await self.call(
            "PATCH",
            f"/api/v1/nodes/{name}/status",
            {"status": {"conditions": conds}},
            "application/strategic-merge-patch+json",
        )

    async def leases(self):
        n = 0
        while True:
            for name in self.known:
                path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
                spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": micro()}
                rc, _ = await self.call(
                    "PATCH", f"{path}/{name}", {"spec": spec}, "application/merge-patch+json"
                )
                if rc == 404:
                    await self.call("POST", path, {"metadata": {"name": name}, "spec": spec})
                if n % 6 == 5:
                    await self.beat(name)
            n += 1
            await asyncio.sleep(10)

    def on_node(self, kind, o):
        if kind == "SYNC":
            for n in o.values():
                self.on_node("ADDED", n)
            return
        name = o["metadata"]["name"]
        if kind == "DELETED":
            self.nodes.pop(name, None)
            return
        self.nodes[name] = o
        st = o.get("status", {})
        cap, alloc = st.get("capacity") or {}, st.get("allocatable") or {}
        if name in self.known and cap and cap != alloc and "pods" in alloc:
            patch = {k: cap.get(k) for k in cap.keys() | alloc.keys() if cap.get(k) != alloc.get(k)}
            self.spawn(
                self.call(
                    "PATCH",
                    f"/api/v1/nodes/{name}/status",
                    {"status": {"allocatable": patch}},
                    "application/merge-patch+json",
                )
            )
        if name in self.known and any(
            c["type"] == "Ready" and c["status"] != "True" for c in st.get("conditions") or []
        ):
            self.spawn(self.beat(name))

    def on_claim(self, kind, o):
        if kind == "SYNC":
            for c in o.values():
                self.on_claim("ADDED", c)
            return
        m, an = o["metadata"], o["metadata"].get("annotations") or {}
        node = an.get("volume.kubernetes.io/selected-node")
        if (
            kind == "DELETED"
            or o["spec"].get("volumeName")
            or an.get("volume.kubernetes.io/storage-provisioner") != PROVISIONER
            or node not in self.nodes
        ):
            return
        zone = self.nodes[node]["metadata"]["labels"]["topology.kubernetes.io/zone"]
        self.spawn(
            self.call(
                "POST",
                "/api/v1/persistentvolumes",
                {
                    "metadata": {
                        "name": "pvc-" + m["uid"],
                        "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER},
                    },
                    "spec": {
                        "capacity": {"storage": o["spec"]["resources"]["requests"]["storage"]},
                        "accessModes": o["spec"]["accessModes"],
                        "storageClassName": o["spec"]["storageClassName"],
                        "persistentVolumeReclaimPolicy": "Delete",
                        "hostPath": {"path": "/fake/" + m["uid"]},
                        "volumeMode": o["spec"].get("volumeMode", "Filesystem"),
                        "claimRef": {
                            "kind": "PersistentVolumeClaim",
                            "apiVersion": "v1",
                            "namespace": m["namespace"],
                            "name": m["name"],
                            "uid": m["uid"],
                        },
                        "nodeAffinity": {
                            "required": {
                                "nodeSelectorTerms": [
                                    {
                                        "matchExpressions": [
                                            {
                                                "key": "topology.kubernetes.io/zone",
                                                "operator": "In",
                                                "values": [zone],
                                            }
                                        ]
                                    }
                                ]
                            }
                        },
                    },
                },
            )
        )

    def on_volume(self, kind, o):
        if kind in ("SYNC", "DELETED"):
            return
        if (o["metadata"].get("annotations") or {}).get(
            "pv.kubernetes.io/provisioned-by"
        ) == PROVISIONER and o["status"].get("phase") == "Released":
            self.spawn(self.call("DELETE", "/api/v1/persistentvolumes/" + o["metadata"]["name"]))

    async def event(self, pod, reason, message):
        m, t = pod["metadata"], now()
        await self.call(
            "POST",
            f"/api/v1/namespaces/{m['namespace']}/events",
            {
                "metadata": {"generateName": m["name"][:50] + "."},
                "type": "Normal",
                "reason": reason,
                "message": message,
                "count": 1,
                "firstTimestamp": t,
                "lastTimestamp": t,
                "source": {"component": "kubelet", "host": pod["spec"]["nodeName"]},
                "reportingComponent": "kubelet",
                "involvedObject": {
                    "kind": "Pod",
                    "apiVersion": "v1",
                    "namespace": m["namespace"],
                    "name": m["name"],
                    "uid": m["uid"],
                },
            },
        )
