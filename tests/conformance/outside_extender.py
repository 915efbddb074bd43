"""Replays recorded scenarios with scripted extenders: what we ask, and what we make of the answers.

Each line holds the configuration, every request with its answer, and the end: placements,
conditions, events and writes. The scripted extenders answer over HTTP as the recorded ones did.
Compared are the requests (nodes in any order), the conditions, the events, the writes, and the
placements where they were no chance.

    python -m tests.conformance tests/recordings/outside/extender/scenarios.jsonl.gz
"""

import asyncio
import base64
import json
import re
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from asched.host.configuration.file import ConfigError, load_config
from tests.conformance.extender_world import Json, World
from tests.unit.kube.conftest import Certificates

#: What a scripted extender that keeps silent is given, in place of its seconds.
PATIENCE = "0.2s"
LATE = "Client.Timeout"
DEVICE = "example.com/dev"
_ON_ITS_WAY = re.compile(r'^(?:Post|parse) ("[^"]*"): .*')
_NO_JSON = re.compile(r"^(?:the answer of \S+ is no JSON: .*|(?:unexpected )?EOF|invalid char.*)$")


def deliberate(record: Mapping[str, Any]) -> str | None:
    """Why we differ from the recording on purpose, or None. Each is on the parity page."""
    pods = record["pods"].values()
    sent = {name for request in record["requests"] for name in _names_in(request["body"])}
    placed = {pod.get("nodeName") for pod in pods} - {None}
    if sent and any(node not in sent and not node.startswith("n") for node in placed):
        return "a node made up by an extender is an error, nobody is bound to it"
    told = {e["regarding"] for e in record["events"] if e["reason"] == "Scheduled"}
    if any(not record["pods"].get(name, {}).get("nodeName") for name in told):
        return "an extender that says it bound a pod, but did not, has failed"
    deleted = any(write["verb"] == "delete" for write in record["api"])
    if deleted and any(extender.get("filterVerb") for extender in record["extenders"]):
        return "extenders are heard before pods are evicted, and nodes are not emptied in vain"
    if any('/bind": context deadline exceeded' in event["note"] for event in record["events"]):
        return "a binding without an answer may still come, its place is held as long"
    return None


def _without_words(value: Any) -> Any:
    """Why a question failed on its way, or an answer is no JSON, is said in each language's words:
    which of the two it was, and the address, must agree.
    """
    if isinstance(value, dict):
        return {key: _without_words(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_words(item) for item in value]
    if isinstance(value, str):
        value = _ON_ITS_WAY.sub(r"Post \1: $why", value)
        return _NO_JSON.sub("no JSON: $why", value)
    return value


def replay(record: Json) -> list[str]:
    """The differences between a recorded scenario and ours."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_Scenario(record, Path(folder)).differences())


class _Scenario:
    def __init__(self, record: Json, folder: Path) -> None:
        self.record = record
        self._folder = folder
        self._requests: list[Json] = []
        self._left = list(record["requests"])
        self._base = ""
        self._world: World | None = None
        self._uids = {"p": "$uid1", **dict(_uids_in(record))}
        self._originals = dict(_objects_in(record))

    async def differences(self) -> list[str]:
        tls = self._certificates() if self._is_https() else None
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        assert site._server is not None
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        self._base = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        try:
            return await self._compare()
        finally:
            await runner.cleanup()

    async def _compare(self) -> list[str]:
        try:
            configuration = load_config(text=json.dumps(self._document())).configuration
        except ConfigError as error:
            wanted = self.record.get("start_error")
            return [] if wanted else [f"the configuration is refused: {error}"]
        world = self._world = World(configuration)
        try:
            for node in self._nodes():
                world.add_node(node)
            for pod in self._pods():
                world.add_pod(pod)
            await world.run(self._is_enough)
        finally:
            await world.close()
        return [
            *_differ("requests", self._wanted_requests(), self._requests),
            *_differ("pods", self._wanted_pods(), self._found_pods(world)),
            *_differ("events", self._wanted_events(), self._found_events(world)),
            *_differ("writes", self._wanted_writes(), self._named(world.writes)),
        ]

    def _is_enough(self) -> bool:
        assert self._world is not None
        return len(self._requests) >= len(self.record["requests"]) and len(
            self._world.events
        ) >= len(self.record["events"])

    # --- what there is -----------------------------------------------------------------------

    def _is_https(self) -> bool:
        text = json.dumps(self.record["events"]) + self.record.get("note", "")
        flagged = any(extender.get("enableHTTPS") for extender in self.record["extenders"])
        return "https prefix" in text or "x509" in text or (flagged and "http prefix" not in text)

    def _certificates(self) -> ssl.SSLContext:
        self._made = Certificates(self._folder)
        with_client = any(
            (extender.get("tlsConfig") or {}).get("certData")
            for extender in self.record["extenders"]
        )
        return self._made.server_context(client_ca=with_client)

    def _document(self) -> Json:
        text = json.dumps(self.record["extenders"]).replace("$extender", self._base)
        if self._is_https():
            text = self._with_certificates(text)
        extenders = json.loads(text)
        for extender in extenders:
            if self._is_late():
                extender["httpTimeout"] = PATIENCE
        profiles = self.record.get("profiles") or [{"schedulerName": "default-scheduler"}]
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "profiles": profiles,
            "extenders": extenders,
        }

    def _with_certificates(self, text: str) -> str:
        own, key = self._made.issue("client")
        other = self._folder / "other"
        other.mkdir()
        files = {
            '"$ca"': self._made.ca_file,
            '"$otherca"': Certificates(other).ca_file,
            '"$cert"': own,
            '"$key"': key,
        }
        for placeholder, file in files.items():
            text = text.replace(placeholder, f'"{base64.b64encode(file.read_bytes()).decode()}"')
        return text

    def _is_late(self) -> bool:
        return LATE in json.dumps([self.record["events"], self.record["log"]])

    def _nodes(self) -> Iterator[Json]:
        """The kinds of clusters the scenarios have, by the recording's own words for them."""
        kind = self.record["nodes"]
        for number in range(2 if kind == "full" else 3):
            name = f"n{number}"
            amounts = {"cpu": "4", "ephemeral-storage": "20Gi", "memory": "8Gi", "pods": "20"}
            if kind == "full":
                amounts["cpu"] = "3"
            if kind == "dev" and number:
                amounts[DEVICE] = "4"
            node: Json = {
                "metadata": {"name": name, "uid": self._uids.get(name, f"uid-{name}")},
                "spec": {},
                "status": {"capacity": amounts, "allocatable": amounts},
            }
            if kind == "tainted" and number == 1:
                taint = {"key": "dear", "value": "yes", "effect": "PreferNoSchedule"}
                node["spec"]["taints"] = [taint]
            yield self._originals.get(("Node", name), node)

    def _pods(self) -> Iterator[Json]:
        record = self.record
        victims = [f"victim-{n}" for n in range(2)] if record["nodes"] == "full" else []
        names = [*victims, *(name for name in record["pods"] if name not in victims)]
        profiles = [p["schedulerName"] for p in record.get("profiles") or ()]
        for name in names:
            is_victim = name in victims
            metadata = {"name": name, "namespace": "default", "generation": 1}
            container: Json = {"name": "c", "image": "registry.example.com/app:v1"}
            cpu = "2" if victims else "100m"
            container["resources"] = {"requests": {"cpu": cpu}}
            spec: Json = {"containers": [container], "priority": 1000 if victims else 0}
            spec["schedulerName"] = profiles[names.index(name)] if profiles else "default-scheduler"
            if is_victim:
                spec |= {"nodeName": f"n{name[-1]}", "priority": 0}
            elif name == "p" and self._asks_for_device():
                self._ask(spec, container)
            pod = {
                "metadata": {**metadata, "uid": self._uids.get(name, f"uid-{name}")},
                "spec": spec,
                "status": {"phase": "Pending"},
            }
            yield self._originals.get(("Pod", name), pod)

    def _asks_for_device(self) -> bool:
        managed = any(extender.get("managedResources") for extender in self.record["extenders"])
        return managed and "does not ask" not in self.record.get("note", "")

    def _ask(self, spec: Json, container: Json) -> None:
        amounts = {DEVICE: "1"}
        if "init-container" in self.record["name"]:
            first = {"requests": amounts, "limits": amounts}
            spec["initContainers"] = [{"name": "i", "image": "i", "resources": first}]
        else:
            container["resources"]["requests"] |= amounts
            container["resources"]["limits"] = amounts

    # --- the scripted extenders -----------------------------------------------------------------

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        found = self._normal({"path": request.raw_path, "body": body})
        self._requests.append(found)
        recorded = self._recorded(found)
        if recorded is None:
            return web.Response(status=500, text="nobody recorded this question")
        answer = recorded["answer"]
        if self._is_late():
            await asyncio.sleep(2)
        assert answer is not None
        if "json" in answer:
            answered = answer["json"]
            if "Node" in body and not answered.get("Error"):
                self._bound_by_extender(body["PodName"], body["Node"])
            return web.json_response(answered, status=answer["status"])
        return web.Response(status=answer["status"], text=answer.get("text", ""))

    def _recorded(self, found: Json) -> Json | None:
        """The recorded request that is meant: the same, or the next to the same path."""
        same_path = [r for r in self.record["requests"] if r["path"] == found["path"]]
        for request in self._left:
            if self._normal(request) == found:
                self._left.remove(request)
                return request if request["answer"] else _with_answer(same_path)
        for request in self._left:
            if request["path"] == found["path"]:
                self._left.remove(request)
                return request if request["answer"] else _with_answer(same_path)
        return _with_answer(same_path[::-1])

    def _bound_by_extender(self, name: str, node: str) -> None:
        assert self._world is not None
        if self.record["pods"][name].get("nodeName"):
            self._world.place(name, node)

    # --- what is compared ------------------------------------------------------------------------

    def _normal(self, request: Json) -> Json:
        """A request without the order of its nodes, objects cut to what identifies them."""
        body = _cut(request["body"])
        if isinstance(body.get("NodeNames"), list):
            body["NodeNames"] = sorted(body["NodeNames"])
        if isinstance(body.get("Nodes"), dict):
            body["Nodes"]["items"] = sorted(
                body["Nodes"]["items"], key=lambda node: str(node["metadata"]["name"])
            )
        if "Node" in body:  # which of equal nodes it is, is chance
            body["Node"] = "$node"
        return {"path": request["path"], "body": body}

    def _wanted_requests(self) -> list[Json]:
        return [self._normal(request) for request in self.record["requests"]]

    def _wanted_pods(self) -> Json:
        return {name: self._end_of(pod) for name, pod in self.record["pods"].items()}

    def _found_pods(self, world: World) -> Json:
        found: Json = {}
        for name in self.record["pods"]:
            pod = world.pods.get(name)
            if pod is None:
                found[name] = self._end_of({"gone": True})
                continue
            conditions = pod["status"].get("conditions") or []
            scheduled = [c for c in conditions if c["type"] == "PodScheduled"]
            found[name] = self._end_of(
                {
                    "nodeName": pod["spec"].get("nodeName"),
                    "nominatedNodeName": pod["status"].get("nominatedNodeName"),
                    "condition": scheduled[0] if scheduled else {},
                }
            )
        return found

    def _end_of(self, pod: Json) -> Json:
        if self.record.get("tied") and self.record["nodes"] == "full" and "condition" not in pod:
            return {"is": "a victim or not, as it was chosen"}
        if pod.get("gone"):
            return {"is": "gone"}
        condition = pod.get("condition") or {}
        if self.record.get("tied") and self.record["nodes"] == "full" and not condition:
            return {"is": "a victim or not, as it was chosen"}
        node = pod.get("nodeName")
        kept = {
            "node": "$node" if node and self.record.get("tied") else node,
            "nominated": pod.get("nominatedNodeName"),
        }
        if condition.get("status") == "False":
            kept["reason"] = condition.get("reason")
            kept["message"] = self._text(condition.get("message", ""))
        return kept

    def _wanted_events(self) -> list[tuple[str, str, str]]:
        events = [(e["reason"], e["note"], e["regarding"]) for e in self.record["events"]]
        return self._once([(r, self._text(n), o) for r, n, o in events])

    def _found_events(self, world: World) -> list[tuple[str, str, str]]:
        return self._once([(r, self._text(n), o) for r, n, o in world.events])

    def _once(self, events: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
        """Repetitions count into a series."""
        named = self._named(events)
        return [e for at, e in enumerate(named) if at == 0 or e != named[at - 1]]

    def _wanted_writes(self) -> list[tuple[str, str]]:
        ends = ("/".join(write["path"].split("/")[-2:]) for write in self.record["api"])
        pairs = zip((write["verb"] for write in self.record["api"]), ends, strict=True)
        named: list[tuple[str, str]] = self._named(list(pairs))
        return named

    def _named(self, found: Any) -> Any:
        """Nodes and victims by chance have no name; what happens at once has no order."""
        if not self.record.get("tied"):
            return sorted(found)
        text = json.dumps(found)
        for number in range(3):
            text = text.replace(f"victim-{number}", "$victim").replace(f"n{number}", "$node")
        return sorted(tuple(item) for item in json.loads(text))

    def _text(self, text: str) -> str:
        return text.replace(self._base, "$extender") if self._base else text


def _with_answer(requests: list[Json]) -> Json | None:
    return next((request for request in requests if request["answer"]), None)


def _cut(value: Any) -> Any:
    """Objects as far as the recordings keep them in every scenario."""
    if isinstance(value, list):
        return [_cut(item) for item in value]
    if not isinstance(value, dict):
        return value
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and "name" in metadata:
        kept = ("name", "namespace", "uid")
        return {"metadata": {key: metadata[key] for key in kept if key in metadata}}
    return {key: _cut(item) for key, item in value.items() if key != "$more"}


def _walk(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item)


def _uids_in(record: Json) -> Iterator[tuple[str, str]]:
    """Name to uid, as the requests tell it."""
    for request in record["requests"]:
        body = request["body"]
        for found in _walk(body):
            metadata = found.get("metadata")
            if isinstance(metadata, dict) and "uid" in metadata:
                yield metadata["name"], metadata["uid"]
        if "PodUID" in body:
            yield body["PodName"], body["PodUID"]
        for node, victims in (body.get("NodeNameToMetaVictims") or {}).items():
            for victim in victims["Pods"]:
                yield f"victim-{node[-1]}", victim["UID"]


def _objects_in(record: Json) -> Iterator[tuple[tuple[str, str], Json]]:
    """Objects that were recorded whole, the oldest version of each."""
    seen = set()
    for request in record["requests"]:
        for found in _walk(request["body"]):
            metadata = found.get("metadata")
            if not isinstance(metadata, dict) or "$more" in found or "spec" not in found:
                continue
            key = ("Pod" if "containers" in found["spec"] else "Node", metadata["name"])
            if key not in seen:
                seen.add(key)
                yield key, json.loads(json.dumps(found))


def _names_in(body: Json) -> Iterator[str]:
    for found in _walk(body):
        yield from (name for name in found.get("NodeNames") or ())
        metadata = found.get("metadata")
        if isinstance(metadata, dict) and "name" in metadata:
            yield metadata["name"]
    if "Node" in body:
        yield body["Node"]


def _differ(what: str, wanted: Any, found: Any) -> list[str]:
    if _without_words(wanted) == _without_words(found):
        return []
    return [f"{what} are {json.dumps(found)}, must be {json.dumps(wanted)}"]
