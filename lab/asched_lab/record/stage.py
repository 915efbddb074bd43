"""The cluster of one case on an API server: objects put there, read back as stored, removed again.

No controller changes what is put: the API server has none beside it, and a status is written as the
input has it.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote

from asched.kube.errors import ApiError
from asched.kube.session import read_json
from asched_lab.apiserver.resources import Resource, find
from asched_lab.bench.api import Api, collection
from asched_lab.bench.world import WorkloadFailedError

Json = dict[str, Any]

#: Kinds in the order in which they are put: referenced ones first, so that uids can be replaced.
ORDER: Final = (
    "namespaces", "priorityclasses", "runtimeclasses", "storageclasses", "csidrivers", "nodes",
    "csinodes", "csistoragecapacities", "persistentvolumeclaims", "persistentvolumes",
    "volumeattachments", "services", "replicationcontrollers", "replicasets", "statefulsets",
    "poddisruptionbudgets", "pods",
)  # fmt: skip
#: Kinds that stay: without a controller a namespace is never gone.
KEPT: Final = ("namespaces", "priorityclasses")
#: What the server sets itself.
OF_SERVER: Final = (
    "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields",
    "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip
#: What of it a recording leaves out.
LEFT_OUT: Final = ("resourceVersion", "creationTimestamp", "generation", "managedFields")
CONFLICT: Final = 409


class RefusedError(Exception):
    """The API server refuses an object of the input."""


class Stage:
    """`put` a case, `clear` it. `stored` is what the server made of it, by plural."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.stored: dict[str, list[Json]] = {}
        #: By plural, in the order of creation, also if the rest of a case was refused.
        self._created: dict[str, list[Json]] = {}
        self._uids: dict[str, str] = {}

    async def put(self, objects: dict[str, list[Json]]) -> None:
        """Raises RefusedError."""
        self.stored, self._uids = {}, {}
        for plural in (*ORDER, *(kind for kind in objects if kind not in ORDER)):
            if objects.get(plural):
                res = find(plural)
                made = await asyncio.gather(
                    *(self._put(res, obj) for obj in objects[plural]), return_exceptions=True
                )
                self.stored[plural] = [obj for obj in made if not isinstance(obj, BaseException)]
                for error in made:
                    if isinstance(error, BaseException):
                        raise error

    async def create(self, pod: Json) -> Json:
        """Create a pod that the scheduler is to place. Raises RefusedError."""
        return await self._put(find("pods"), {**pod, "status": {}})

    async def clear(self) -> None:
        """Remove every object of the case."""
        for plural, made in reversed(self._created.items()):
            res = find(plural)
            await asyncio.gather(*(self.remove(res, obj) for obj in made))
        self._created.clear()

    async def remove(self, res: Resource, obj: Json) -> None:
        """Remove an object at once, its finalizers too."""
        metadata = obj["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        await self.api.delete(res, namespace, name)
        if metadata.get("finalizers"):
            path = f"{collection(res, namespace)}/{name}"
            body = {"metadata": {"finalizers": None}}
            await self.api.request("PATCH", path, body, "application/merge-patch+json")

    async def _put(self, res: Resource, obj: Json) -> Json:
        body = self._with_new_uids(obj)
        metadata = body["metadata"]
        old_uid = metadata.get("uid")
        for field in OF_SERVER:
            metadata.pop(field, None)
        body |= {"apiVersion": res.api_version, "kind": res.kind}
        namespace = metadata.get("namespace", "")
        at = f"{collection(res, namespace)}/{quote(metadata['name'])}"
        try:
            made = await self._send("POST", collection(res, namespace), body)
            if res.plural not in KEPT:
                self._created.setdefault(res.plural, []).append(made)
        except RefusedError as error:
            if res.plural not in KEPT or f"{CONFLICT}" not in str(error):
                raise
            made = await self._send("GET", at)
            if res.plural == "namespaces":
                labels = metadata.get("labels") or {}
                made["metadata"]["labels"] = {
                    **labels,
                    "kubernetes.io/metadata.name": made["metadata"]["name"],
                }
                made = await self._send("PUT", at, made)
        if res.plural == "nodes" and made["spec"].get("taints") != body["spec"].get("taints"):
            made["spec"] = body["spec"]  # admission taints new nodes until a controller sees them
            made = await self._send("PUT", at, made)
        if res.sub("status") and body.get("status") and res.plural not in KEPT:
            made = await self._send("PUT", f"{at}/status", {**made, "status": body["status"]})
        if old_uid:
            self._uids[old_uid] = made["metadata"]["uid"]
        if obj["metadata"].get("deletionTimestamp"):
            made = await self._send("DELETE", at)
        return made

    async def _send(self, method: str, path: str, body: Any = None) -> Json:
        try:
            return read_json(await self.api.request(method, path, body))
        except ApiError as error:
            raise RefusedError(f"{method} {path}: {error.code} {error.message}") from error

    def _with_new_uids(self, obj: Json) -> Json:
        text = json.dumps(obj)
        for old, new in self._uids.items():
            text = text.replace(f'"{old}"', f'"{new}"')
        copied: Json = json.loads(text)
        return copied


async def refuse_a_cluster_in_use(api: Api) -> None:
    """Raises WorkloadFailedError if there are nodes or pods: a recording removes what it made."""
    for plural in ("nodes", "pods"):
        found = await api.listed(find(plural))
        if found:
            name = found[0]["metadata"]["name"]
            raise WorkloadFailedError(
                f"the cluster has {plural} already ({name}): record with an API server of its own"
            )


def shortened(case: Json) -> Json:
    """The case without what the server counts, and with short uids, so that it packs well."""
    uids: dict[str, str] = {}
    for obj in _objects(case):
        metadata = obj["metadata"]
        for field in LEFT_OUT:
            metadata.pop(field, None)
        if "uid" in metadata:
            uids.setdefault(metadata["uid"], f"uid-{len(uids)}")
        for plain in ("apiVersion", "kind"):
            obj.pop(plain, None)
    text = json.dumps(case)
    for uid, short in uids.items():
        text = text.replace(uid, short)
    short_case: Json = json.loads(text)
    return short_case


def _objects(case: Json) -> Iterator[Json]:
    every: Iterable[list[Json]] = case["objects"].values()
    for found in every:
        yield from found
    yield case["pod"]
