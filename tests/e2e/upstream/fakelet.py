"""A stand-in for kubelets: what they report to the API server, without machines.

    python -m tests.e2e.upstream.fakelet --kubeconfig F [--nodes 4] [--zones 2] [--violations FILE]

Creates Ready nodes, renews their leases, copies capacity to allocatable, and plays every pod that
is bound to them: admission (room, ports, node selector and affinity, as a kubelet's), Running and
Ready, commands that end, restarts, active deadlines, resizes in place, deletion with its grace. It
provisions zonal volumes of the default class `fake` (WaitForFirstConsumer) once a node was
selected, and answers `kubectl exec` for the few commands by which specs break and mend readiness
(the API server needs TranslateStreamCloseWebsocketRequests off). A pod that a kubelet would refuse
fails (OutOfcpu, NodeAffinity, ...) and is written to --violations: a scheduler that never
overcommits a node leaves no such file.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import ssl
import time
import traceback
from pathlib import Path

import aiohttp
from aiohttp import web

from tests.e2e.upstream.node_api import PROVISIONER, Nodes
from tests.e2e.upstream.pod_rules import (
    add,
    behaviour,
    clash,
    now,
    ports,
    quantity,
    requests,
    stop_time,
    wants,
)

NO_IMAGE = re.compile(r"non-?existent|invalid|:404$|nosuch|does-not-exist", re.IGNORECASE)


class Fakelet(Nodes):
    def on_pod(self, kind, o):
        if kind == "SYNC":
            for uid in self.pods.keys() - o.keys():
                self.on_pod("DELETED", self.pods[uid])
            for p in o.values():
                self.on_pod("ADDED", p)
            return
        uid = o["metadata"]["uid"]
        if kind == "DELETED":
            self.pods.pop(uid, None)
            self.leave(uid)
            t = self.tasks.pop(uid, None)
            if t:
                t.cancel()
            self.wake.pop(uid, None)
            self.marks.pop(uid, None)
            return
        if o["spec"].get("nodeName") not in self.known:
            return
        self.pods[uid] = o
        if uid not in self.tasks:
            if (o["metadata"]["namespace"], o["metadata"]["name"]) in self.kept:
                self.marks.setdefault(uid, set()).add("continue")
            self.wake[uid] = asyncio.Event()
            self.tasks[uid] = asyncio.ensure_future(self.guarded(uid))
        self.wake[uid].set()

    async def guarded(self, uid):
        try:
            await self.play(uid)
        except asyncio.CancelledError:
            raise
        except Exception as e:  # noqa: BLE001 - one pod must not end the others
            traceback.print_exc()
            print("pod", uid, repr(e), flush=True)

    def write_violation(self, line):
        with Path(self.a.violations).open("a") as file:
            file.write(json.dumps(line) + "\n")

    def leave(self, uid):
        self.pending.discard(uid)
        if self.admitted.pop(uid, None):
            for u in self.pending:
                self.wake[u].set()

    def resize(self, uid, pod) -> str | None:
        """Takes over changed resources if they fit; says Deferred or Infeasible if they do not."""
        old = self.admitted.get(uid)
        if not old or requests(old["spec"]) == requests(pod["spec"]):
            if old:
                self.admitted[uid] = pod
                self.pending.discard(uid)
            return None
        del self.admitted[uid]
        no = self.refuse(pod)
        self.admitted[uid] = old if no else pod
        if not no:
            self.pending.discard(uid)
            return None
        self.pending.add(uid)
        alloc = self.nodes[pod["spec"]["nodeName"]]["status"]["allocatable"]
        return (
            "Infeasible"
            if any(v > quantity(alloc.get(k, "0")) for k, v in requests(pod["spec"]).items())
            else "Deferred"
        )

    def refuse(self, pod) -> tuple[str, str] | None:
        node = self.nodes.get(pod["spec"]["nodeName"])
        if not node:
            return None
        spec, here = (
            pod["spec"],
            [p for p in self.admitted.values() if p["spec"]["nodeName"] == pod["spec"]["nodeName"]],
        )
        need, used = requests(spec), {}
        for p in here:
            used = add(used, requests(p["spec"]))
        dra = {
            r["resourceName"]
            for r in (pod["status"].get("extendedResourceClaimStatus") or {}).get("requestMappings")
            or []
        }
        for k, v in need.items():
            if k in dra:
                continue  # given by devices of a claim, not by the node
            have = quantity((node["status"].get("allocatable") or {}).get(k, "0"))
            if v and used.get(k, 0) + v > have:
                return (
                    f"OutOf{k}",
                    (
                        f"Node didn't have enough resource: {k}, requested: {v},"
                        f" used: {used.get(k, 0)}, capacity: {have}"
                    ),
                )
        if clash(ports(spec), set().union(*(ports(p["spec"]) for p in here))):
            return (
                "NodePorts",
                (
                    "Predicate NodePorts failed: node(s) didn't have free ports for the"
                    " requested pod ports"
                ),
            )
        if not wants(spec, node):
            return (
                "NodeAffinity",
                "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
            )
        return None

    async def status(self, pod, status):
        m = pod["metadata"]
        status["observedGeneration"] = m.get("generation", 1)
        rc, out = await self.call(
            "PATCH",
            f"/api/v1/namespaces/{m['namespace']}/pods/{m['name']}/status",
            {"metadata": {"uid": m["uid"]}, "status": status},
            "application/strategic-merge-patch+json",
        )
        if rc not in (200, 404, 409):
            print("status", m["namespace"], m["name"], rc, json.dumps(out)[:300], flush=True)
        return rc

    def report(self, pod, run) -> dict:
        """The status of a pod; `run` has state, restarts, last state and exit code by container."""
        spec, m, t = pod["spec"], pod["metadata"], now()
        held = self.admitted.get(m["uid"], pod)["spec"]  # the resources that were granted
        given = {
            c["name"]: c.get("resources") or {}
            for c in [*(held.get("initContainers") or []), *held["containers"]]
        }

        def one(c, init=False):
            r = run.get(c["name"]) or {
                "state": {"waiting": {"reason": "PodInitializing"}},
                "restarts": 0,
            }
            up = "running" in r["state"]
            s = {
                "name": c["name"],
                "image": c["image"],
                "imageID": c["image"] + "@fake",
                "restartCount": r["restarts"],
                "state": r["state"],
                "lastState": r.get("last") or {},
                "started": up,
                "resources": given.get(c["name"], {}),
                "ready": (r["state"].get("terminated", {}).get("exitCode") == 0)
                if init and c.get("restartPolicy") != "Always"
                else up and self.probed(m["uid"], c, r.get("since", 0)),
            }
            if up or "terminated" in r["state"]:
                s["containerID"] = "fake://" + m["uid"] + c["name"]
            if given.get(c["name"], {}).get("requests"):
                s["allocatedResources"] = given[c["name"]]["requests"]
            return s

        inits = [one(c, True) for c in spec.get("initContainers") or []]
        mains = [one(c) for c in spec["containers"]]
        over = [s["state"]["terminated"]["exitCode"] for s in mains if "terminated" in s["state"]]
        started = all(s["ready"] for s in inits)
        bad_init = spec.get("restartPolicy", "Always") == "Never" and any(
            (s["state"].get("terminated") or {}).get("exitCode") for s in inits
        )
        if bad_init:
            phase = "Failed"
        elif len(over) == len(mains) and run.get("_final"):
            phase = "Failed" if any(over) else "Succeeded"
        elif not started or (
            all("waiting" in s["state"] for s in mains)
            and not any(s["restartCount"] for s in mains)
        ):
            phase = "Pending"
        else:
            phase = "Running"
        gates = [g["conditionType"] for g in spec.get("readinessGates") or []]
        have = {c["type"]: c for c in pod["status"].get("conditions") or []}
        ready = all(s["ready"] for s in mains) and phase == "Running"
        open_ = all(have.get(g, {}).get("status") == "True" for g in gates)
        vals = {
            "PodReadyToStartContainers": not over,
            "Initialized": started,
            "ContainersReady": ready,
            "Ready": ready and open_,
            "PodScheduled": True,
        }
        conds = []
        for k, v in vals.items():
            c = {
                "type": k,
                "status": "True" if v else "False",
                "observedGeneration": m.get("generation", 1),
            }
            if phase in ("Succeeded", "Failed") and not v:
                c["reason"] = "PodCompleted" if phase == "Succeeded" else "PodFailed"
            elif not v:
                c["reason"] = (
                    "ReadinessGatesNotReady" if k == "Ready" and ready else "ContainersNotReady"
                )
            else:
                c["reason"] = None
            if have.get(k, {}).get("status") != c["status"]:
                c["lastTransitionTime"] = t
            conds.append(c)
        if run.get("_resize"):
            conds.append(
                {
                    "type": "PodResizePending",
                    "status": "True",
                    "reason": run["_resize"],
                    "message": "Node didn't have enough resource",
                    "observedGeneration": m.get("generation", 1),
                }
            )
            if have.get("PodResizePending", {}).get("status") != "True":
                conds[-1]["lastTransitionTime"] = t
        elif "PodResizePending" in have:
            conds.append({"$patch": "delete", "type": "PodResizePending"})
        node = spec["nodeName"]
        host = self.addr(node)
        if pod["status"].get("podIP"):
            ip = pod["status"]["podIP"]  # also after a restart of this program
        elif spec.get("hostNetwork"):
            ip = host
        else:
            n = run.get("_ip")
            if not n:
                n = run["_ip"] = self.ips[node] = self.ips.get(node, 1) + 1
            ip = f"10.{100 + int(node.rsplit('-', 1)[1])}.{n // 250}.{n % 250 + 1}"
        out = {
            "phase": phase,
            "conditions": conds,
            "hostIP": host,
            "hostIPs": [{"ip": host}],
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "startTime": run.setdefault("_start", t),
            "containerStatuses": mains,
            "resize": None,
        }
        if inits:
            out["initContainerStatuses"] = inits
        if spec.get("resources"):
            out["resources"] = spec["resources"]
            out["allocatedResources"] = spec["resources"].get("requests") or {}
        return out

    def probed(self, uid, c, since) -> bool:
        probe, marks = c.get("readinessProbe") or {}, self.marks.get(uid, ())
        if probe and time.monotonic() < since + min(probe.get("initialDelaySeconds", 0), 10**6):
            return False
        cmd = " ".join((probe.get("exec") or {}).get("command") or [])
        return not (
            cmd.endswith("false")
            or ("statefulset-continue" in cmd and "continue" not in marks)
            or ("httpGet" in probe and "broken" in marks)
        )

    async def exec(self, request):
        """`kubectl exec` by a websocket: a byte for the channel (1 stdout, 3 status), then data."""
        ns, name = request.match_info["ns"], request.match_info["pod"]
        cmd = " ".join(request.query.getall("command", []))
        pod = next(
            (
                p
                for p in self.pods.values()
                if (p["metadata"]["namespace"], p["metadata"]["name"]) == (ns, name)
            ),
            None,
        )
        print("exec", ns, name, cmd, flush=True)
        if request.headers.get("Upgrade", "").lower() != "websocket" or not pod:
            return web.Response(status=400)
        marks = self.marks.setdefault(pod["metadata"]["uid"], set())

        async def probe():
            # Not at once: the spec goes through its pods meanwhile.
            await asyncio.sleep(0.3 if "/tmp/ " in cmd else 3)
            if re.search(r"mv -v /tmp", cmd):
                marks.discard("broken")
            elif re.search(r"mv -v \S+ /tmp", cmd):
                marks.add("broken")
            elif "statefulset-continue" in cmd:
                marks.add("continue")
                if any("persistentVolumeClaim" in v for v in pod["spec"].get("volumes") or []):
                    self.kept.add((ns, name))  # a file on a volume
            if w := self.wake.get(pod["metadata"]["uid"]):
                w.set()

        self.spawn(probe())
        ws = web.WebSocketResponse(protocols=("v5.channel.k8s.io", "v4.channel.k8s.io"))
        await ws.prepare(request)
        if "hostname" in cmd:
            await ws.send_bytes(b"\x01" + name.encode())
        await ws.send_bytes(b"\x03" + b'{"metadata":{},"status":"Success"}')
        await ws.close()
        return ws

    async def serve(self):
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(self.a.tls_cert, self.a.tls_key)
        app = web.Application()
        app.router.add_route("*", "/exec/{ns}/{pod}/{container}", self.exec)
        app.router.add_get("/containerLogs/{ns}/{pod}/{container}", lambda r: web.Response(text=""))
        runner = web.AppRunner(app)
        await runner.setup()
        for name in self.known:
            await web.TCPSite(runner, self.addr(name), self.a.port, ssl_context=ctx).start()

    async def play(self, uid):
        pod, wake = self.pods[uid], self.wake[uid]
        m = pod["metadata"]
        if pod["status"].get("phase") in ("Succeeded", "Failed"):
            return await self.end(uid)
        no = self.refuse(pod)
        if no:
            who = next(
                (c for c in pod["status"].get("conditions") or [] if c["type"] == "PodScheduled"),
                None,
            )
            line = {
                "time": now(),
                "pod": f"{m['namespace']}/{m['name']}",
                "node": pod["spec"]["nodeName"],
                "reason": no[0],
                "message": no[1],
                "scheduled": bool(who and who["status"] == "True"),
            }
            print("REFUSED", json.dumps(line), flush=True)
            if self.a.violations:
                self.write_violation(line)
            await self.status(
                pod,
                {
                    "phase": "Failed",
                    "reason": no[0],
                    "message": "Pod was rejected: " + no[1],
                    "startTime": now(),
                },
            )
            return await self.end(uid)
        self.admitted[uid] = pod
        run: dict = {"_start": pod["status"].get("startTime") or now()}
        for s in [
            *(pod["status"].get("initContainerStatuses") or []),
            *(pod["status"].get("containerStatuses") or []),
        ]:
            run[s["name"]] = {
                "restarts": s["restartCount"],
                "last": s.get("lastState"),
                "state": s["state"],
            }  # from before a restart
        policy = pod["spec"].get("restartPolicy", "Always")
        # steps: init containers one after the other, then all containers at once
        clock = time.monotonic
        t0 = clock()
        due: dict[str, float] = {}  # container -> when it ends
        restart: dict[str, float] = {}  # container -> when it is started again
        images = {}
        todo = list(pod["spec"].get("initContainers") or [])
        current = None
        begun = False

        def start(c):
            r = run.setdefault(c["name"], {"restarts": 0, "last": None})
            images[c["name"]] = c["image"]
            if NO_IMAGE.search(c["image"]):
                r["state"] = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
                return
            r["state"] = {"running": {"startedAt": now()}}
            r["since"] = clock()
            b = behaviour(c, pod)
            if b:
                due[c["name"]] = clock() + b[0]
                r["rc"] = b[1]

        await asyncio.sleep(0.2)
        sent = None
        while True:
            pod = self.pods.get(uid, pod)
            wake.clear()
            run["_resize"] = self.resize(uid, pod)
            if pod["metadata"].get("deletionTimestamp"):
                break
            spec = pod["spec"]
            by = {c["name"]: c for c in [*(spec.get("initContainers") or []), *spec["containers"]]}
            t = clock()
            for name, when in list(due.items()):  # a command ended
                if t < when:
                    continue
                del due[name]
                r = run[name]
                r["state"] = {
                    "terminated": {
                        "exitCode": r["rc"],
                        "reason": "Completed" if r["rc"] == 0 else "Error",
                        "startedAt": r["state"]["running"]["startedAt"],
                        "finishedAt": now(),
                        "containerID": "fake://" + uid + name,
                    }
                }
                init = name == current
                if (init and r["rc"] and policy != "Never") or (
                    not init and (policy == "Always" or (policy == "OnFailure" and r["rc"]))
                ):
                    restart[name] = t + min(2 * 2 ** min(r["restarts"], 6), 100)
            for name, when in list(restart.items()):
                if t < when:
                    continue
                del restart[name]
                run[name]["last"] = run[name]["state"]
                run[name]["restarts"] += 1
                start(by[name])
            if (
                current
                and current in run
                and run[current]["state"].get("terminated", {}).get("exitCode") == 0
            ):
                current = None
            while todo and current is None:
                c = todo.pop(0)
                start(c)
                if c.get("restartPolicy") != "Always":
                    current = c["name"]
            if not todo and current is None and not begun:
                begun = True
                for c in spec["containers"]:
                    start(c)
                self.spawn(self.event(pod, "Started", "Container started"))
            for name, image in list(
                images.items()
            ):  # kubelets start a container again when its image is changed
                if name in by and by[name]["image"] != image:
                    if "running" in run[name]["state"]:
                        run[name]["restarts"] += 1
                    due.pop(name, None)
                    start(by[name])
            mains = [c["name"] for c in spec["containers"]]
            run["_final"] = (
                begun
                and not restart
                and not due
                and all("terminated" in run[n]["state"] for n in mains)
            )
            dl = spec.get("activeDeadlineSeconds")
            late = dl and t - t0 >= dl
            body = self.report(pod, run)
            if late:
                body.update(
                    phase="Failed",
                    reason="DeadlineExceeded",
                    message="Pod was active on the node longer than the specified deadline",
                )
            key = json.dumps(dict(body.items()), sort_keys=True, default=str) + str(
                pod["metadata"].get("generation")
            )
            key = re.sub(r'"lastTransitionTime": "[^"]*"(, )?', "", key)
            if key != sent:
                sent = key
                await self.status(pod, body)
                if wake.is_set():
                    continue
            if body["phase"] in ("Succeeded", "Failed"):
                break

            def delay(c):
                return (c.get("readinessProbe") or {}).get("initialDelaySeconds", 0)

            waits = [
                run[c["name"]]["since"] + delay(c) + 0.05
                for c in spec["containers"]
                if delay(c) and clock() < run.get(c["name"], {}).get("since", 0) + delay(c)
            ] + [*due.values(), *restart.values(), *([t0 + dl] if dl else [])]
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(
                    wake.wait(), max(0.02, min(waits) - clock()) if waits else None
                )
        if self.pods.get(uid, pod)["metadata"].get("deletionTimestamp") and run:
            await self.grace(uid)
            pod = self.pods.get(uid, pod)
            for c in pod["spec"]["containers"]:
                r = run.setdefault(c["name"], {"restarts": 0})
                if "terminated" not in r.get("state", {}):
                    rc = 0 if "/pause" in c["image"] else 137
                    r["state"] = {
                        "terminated": {
                            "exitCode": rc,
                            "reason": "Completed" if rc == 0 else "Error",
                            "finishedAt": now(),
                            "startedAt": run["_start"],
                            "containerID": "fake://" + uid + c["name"],
                        }
                    }
            run["_final"] = True
            for c in pod["spec"].get("initContainers") or []:
                run.setdefault(
                    c["name"],
                    {
                        "restarts": 0,
                        "state": {
                            "terminated": {
                                "exitCode": 0,
                                "reason": "Completed",
                                "finishedAt": now(),
                                "startedAt": now(),
                            }
                        },
                    },
                )
            await self.status(pod, self.report(pod, run))
        self.leave(uid)
        await self.end(uid)
        return None

    async def grace(self, uid):
        """Wait until the containers have ended: by themselves, or killed when the grace is over."""
        t0 = time.monotonic()
        while uid in self.pods:
            pod = self.pods[uid]
            self.wake[uid].clear()
            g = pod["metadata"].get("deletionGracePeriodSeconds") or 0
            left = min(stop_time(pod), g) - (time.monotonic() - t0)
            if left <= 0:
                return
            try:
                await asyncio.wait_for(self.wake[uid].wait(), left)
            except TimeoutError:
                return

    async def end(self, uid):
        """The pod has no containers any more: when it is to be deleted, let it go."""
        while uid in self.pods:
            pod, wake = self.pods[uid], self.wake[uid]
            wake.clear()
            m = pod["metadata"]
            self.leave(uid)
            if m.get("deletionTimestamp"):
                await self.call(
                    "DELETE",
                    f"/api/v1/namespaces/{m['namespace']}/pods/{m['name']}",
                    {
                        "kind": "DeleteOptions",
                        "apiVersion": "v1",
                        "gracePeriodSeconds": 0,
                        "preconditions": {"uid": uid},
                    },
                )
                if not m.get("finalizers"):
                    return
            elif pod["status"].get("observedGeneration") != m.get("generation") and m.get(
                "generation"
            ):
                await self.status(pod, {})
            await wake.wait()

    async def main(self):
        async with aiohttp.ClientSession(
            headers=self.headers, connector=aiohttp.TCPConnector(limit=0)
        ) as self.http:
            if self.a.tls_cert:
                await self.serve()
            for i in range(self.a.nodes):
                await self.make_node(i)
            await self.call(
                "POST",
                "/apis/storage.k8s.io/v1/storageclasses",
                {
                    "metadata": {
                        "name": "fake",
                        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
                    },
                    "provisioner": PROVISIONER,
                    "volumeBindingMode": "WaitForFirstConsumer",
                    "reclaimPolicy": "Delete",
                },
            )
            ready = asyncio.ensure_future(self.watch("/api/v1/nodes", self.on_node))
            await asyncio.sleep(0.5)
            self.spawn(self.leases())
            self.spawn(self.watch("/api/v1/pods?fieldSelector=spec.nodeName!%3D", self.on_pod))
            self.spawn(self.watch("/api/v1/persistentvolumeclaims", self.on_claim))
            self.spawn(self.watch("/api/v1/persistentvolumes", self.on_volume))
            print("ready", flush=True)
            await ready


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--kubeconfig", required=True)
    p.add_argument("--nodes", type=int, default=4)
    p.add_argument("--zones", type=int, default=2)
    p.add_argument("--cpu", default="8")
    p.add_argument("--memory", default="32Gi")
    p.add_argument("--storage", default="100Gi")
    p.add_argument("--pods", type=int, default=110)
    p.add_argument("--violations")
    p.add_argument("--port", type=int, default=10250)
    p.add_argument("--tls-cert")
    p.add_argument("--tls-key")
    asyncio.run(Fakelet(p.parse_args()).main())
