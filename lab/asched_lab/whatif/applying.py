"""Apply a plan: all of it, or delete everything that was created.

    every pod created ──> its owners ──> all adopted ──> gates away ──> all on their nodes: applied
      held by a gate          │              │               │
            └─────────────────┴── refused, or too late ──────┴──> everything created is deleted

Up to the last step no pod can be placed, so quotas, webhooks and names are settled before anything
runs. After it each pod can only get its own node; if another pod took the room on that node first,
the whole plan is taken back.

Bounds  AT_ONCE requests in flight; REQUEST_S each; `patience_s` for adoption, and again for places.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from kubernetes_asyncio.client import AppsV1Api, BatchV1Api, CoreV1Api

from asched.kube.errors import ApiError, ClientError, NotFound, TransportError
from asched.kube.session import Session, read_json
from asched.kube.typed import client_over, noun_of
from asched_lab.apiserver.crud import UNATTENDED
from asched_lab.whatif.makers import DEPLOYMENT, GATE, STATEFUL_SET, NoPlanError, selected
from asched_lab.whatif.objects import Json
from asched_lab.whatif.plan import Plan, gated, marked, pinned

AT_ONCE: Final = 16
REQUEST_S: Final = 30.0
POLL_S: Final = 0.5
#: A controller that sees its owner object before it sees the pods would create pods of its own and
#: then delete the surplus, possibly planned pods: the plan would fail without a reason.
HEARD_S: Final = 2.0
#: From this status code on, an answer does not say whether the object was stored.
SERVER_ERROR: Final = 500
#: Of a StatefulSet: the field of its status, and the label of its pods.
REVISION: Final = "updateRevision"
REVISION_LABEL: Final = "controller-revision-hash"
APIS: Final = {"v1": CoreV1Api, "apps/v1": AppsV1Api, "batch/v1": BatchV1Api}


class Ref(NamedTuple):
    """The kind, namespace and name of an object."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def to(cls, obj: Json) -> "Ref":
        metadata = obj["metadata"]
        return cls(obj["apiVersion"], obj["kind"], metadata["namespace"], metadata["name"])

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Applying:
    """One plan that is being applied. `report` is called with a line for each step."""

    def __init__(
        self, session: Session, plan: Plan, patience_s: float, report: Callable[[str], None]
    ) -> None:
        self._session = session
        self._plan = plan
        self._patience_s = patience_s
        self._report = report
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._client: Any = None
        #: everything created with its uid, in that order; no uid: may have been created
        self._created: list[tuple[Ref, str]] = []

    async def run(self) -> None:
        """Raises NoPlanError once everything is deleted again, ClientError if that is unknown."""
        self._client = await client_over(self._session.general, REQUEST_S)
        try:
            await self._steps()
        except asyncio.CancelledError:  # Ctrl-C: take the plan back too
            await self._take_back()
            raise
        except (NoPlanError, ClientError) as error:
            remaining = await self._take_back()
            more = f"\nand these could not be deleted: {', '.join(remaining)}" if remaining else ""
            raise NoPlanError(f"{error}{more}") from error

    async def _steps(self) -> None:
        plan = self._plan
        for claim in plan.before:
            await self._create(claim)
        pods = [gated(pinned(pod, node)) for pod, node in plan.pods]
        await self._each(self._create(pod) for pod in pods)
        self._report(f"created {len(pods)} pods, held back")
        if plan.owners:
            await asyncio.sleep(HEARD_S)
        for owner in plan.owners:
            await self._create(_first(owner))
            self._report(f"created {Ref.to(owner)}")
        if plan.owners:
            await self._until(_adopted, "have no controller", self._of_owners())
            for owner in plan.owners:
                if owner["kind"] == STATEFUL_SET[1]:
                    await self._revise(owner)
        await self._each(self._open(Ref.to(pod)) for pod, _ in plan.pods)
        nodes = {Ref.to(pod): node for pod, node in plan.pods}
        await self._until(_placed, "have no node", nodes)
        self._report(f"all {len(pods)} pods have the nodes of the plan")

    def _of_owners(self) -> dict[Ref, str]:
        """Pods that an owner has to adopt, with its name."""
        makers = [o for o in self._plan.owners if o["kind"] != DEPLOYMENT[1]]
        makers.sort(key=lambda owner: len(owner["metadata"]["name"]))
        found = {}
        for pod, _ in self._plan.pods:
            metadata = pod["metadata"]
            labels = metadata.get("labels") or {}
            for maker in makers:
                name, where = maker["metadata"]["name"], maker["metadata"]["namespace"]
                is_of_it = metadata["name"].startswith(f"{name}-")
                is_of_it = is_of_it and where == metadata["namespace"]
                if is_of_it and selected(maker).items() <= labels.items():
                    found[Ref.to(pod)] = name
        return found

    async def _revise(self, owner: Json) -> None:
        """Label a StatefulSet's pods with the revision that its status reports; from then on it may
        replace pods.
        """
        ref = Ref.to(owner)
        clock = asyncio.get_running_loop().time
        until_s = clock() + self._patience_s
        while not (revision := ((await self._ask("read", ref)).get("status") or {}).get(REVISION)):
            if clock() > until_s:
                raise NoPlanError(f"{ref} has no {REVISION}")
            await asyncio.sleep(POLL_S)
        label = {"metadata": {"labels": {REVISION_LABEL: revision}}}
        of_it = [pod for pod, maker in self._of_owners().items() if maker == ref.name]
        await self._each(self._ask("patch", pod, label) for pod in of_it)
        strategy = owner["spec"].get("updateStrategy") or {"type": "RollingUpdate"}
        steps = [{"op": "replace", "path": "/spec/updateStrategy", "value": strategy}]
        await self._ask("patch", ref, steps)

    # --- requests --------------------------------------------------------------------------------

    async def _each(self, steps: Iterable[Any]) -> None:
        """Run all steps with bounded concurrency; raise the first failure after all have ended."""

        async def bounded(step: Any) -> None:
            async with self._gate:
                await step

        ended = await asyncio.gather(*(bounded(step) for step in steps), return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException):
                raise error

    async def _create(self, obj: Json) -> None:
        ref = Ref.to(obj)
        try:
            reply = await self._send("create", ref, marked(obj, self._plan.id))
            made = read_json(reply)
        except ApiError as error:
            if error.code >= SERVER_ERROR:
                self._created.append((ref, ""))
            raise NoPlanError(f"{ref}: {error.message}") from error
        except (TransportError, asyncio.CancelledError):
            self._created.append((ref, ""))
            raise
        self._created.append((ref, str(made["metadata"]["uid"])))
        if UNATTENDED % ref.kind in (reply.header("Warning") or ""):
            raise NoPlanError(
                f"{ref}: {UNATTENDED % ref.kind}, and no controller adopts the plan's"
            )

    async def _open(self, ref: Ref) -> None:
        """Remove the plan's scheduling gate, and no other gate."""
        pod = await self._ask("read", ref)
        gates = [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]
        at = f"/spec/schedulingGates/{gates.index(GATE)}"
        steps = [
            {"op": "test", "path": f"{at}/name", "value": GATE},
            {"op": "remove", "path": at},
        ]
        await self._ask("patch", ref, steps)

    async def _until(
        self, is_so: Callable[[Json, str], bool], what: str, wanted: Mapping[Ref, str]
    ) -> None:
        """Poll pods until `is_so` is true for all of them. Raises NoPlanError."""
        clock = asyncio.get_running_loop().time
        until_s, remaining = clock() + self._patience_s, dict(wanted)
        while True:
            pods = await asyncio.gather(*(self._read(ref) for ref in remaining))
            late = [pod for pod in pods if not is_so(pod, remaining[Ref.to(pod)])]
            if not late:
                return
            if clock() > until_s:
                which = f"{_named(late[0])}{_waits_for(late[0])}"
                raise NoPlanError(f"{len(late)} of {len(wanted)} pods {what}: {which}")
            remaining = {ref: remaining[ref] for ref in map(Ref.to, late)}
            await asyncio.sleep(POLL_S)

    async def _read(self, ref: Ref) -> Json:
        async with self._gate:
            try:
                return {"apiVersion": "v1", "kind": "Pod", **await self._ask("read", ref)}
            except NotFound:
                raise NoPlanError(f"pod {ref.name} was deleted by another client") from None

    async def _ask(self, verb: str, ref: Ref, body: Any = None) -> Json:
        """Read, patch or delete an object and return it. Raises ApiError, TransportError."""
        return read_json(await self._send(verb, ref, body))

    async def _send(self, verb: str, ref: Ref, body: Any = None) -> Any:
        """Send a request. A list of steps is a JSON patch, another patch a strategic merge. Raises
        ApiError, TransportError.
        """
        api = APIS[ref.api_version](self._client)
        given: dict[str, Any] = {"namespace": ref.namespace, "_preload_content": False}
        if verb != "create":
            given["name"] = ref.name
        if body is not None:
            given["body"] = body
        return await getattr(api, f"{verb}_namespaced_{noun_of(ref.kind)}")(**given)

    async def _take_back(self) -> list[str]:
        """Delete what was created, owners first; return what could not be deleted."""
        remaining = []
        for ref, uid in reversed(self._created):
            try:
                found = uid or await self._uid_of_ours(ref)
                options = {"preconditions": {"uid": found}, "propagationPolicy": "Background"}
                if found:
                    await self._ask("delete", ref, options)
            except NotFound:
                continue
            except ClientError as error:
                remaining.append(f"{ref} ({error})")
        return remaining

    async def _uid_of_ours(self, ref: Ref) -> str:
        """The uid of the stored object; empty if this plan did not create it."""
        metadata = (await self._ask("read", ref))["metadata"]
        is_ours = (metadata.get("annotations") or {}).get(GATE) == self._plan.id
        return str(metadata["uid"]) if is_ours else ""


def _first(owner: Json) -> Json:
    """An owner as it is created: a StatefulSet does not replace pods before they have its label."""
    if owner["kind"] != STATEFUL_SET[1]:
        return owner
    return {**owner, "spec": {**owner["spec"], "updateStrategy": {"type": "OnDelete"}}}


def _adopted(pod: Json, owner: str) -> bool:
    """Raises NoPlanError if another controller owns the pod."""
    for owner_ref in pod["metadata"].get("ownerReferences") or ():
        if owner_ref.get("controller"):
            if owner_ref.get("name") != owner:
                raise NoPlanError(f"{_named(pod)} was adopted by {owner_ref.get('name')}")
            return True
    return False


def _placed(pod: Json, node: str) -> bool:
    """Raises NoPlanError if the pod is on another node; no scheduler should place it there."""
    found = pod["spec"].get("nodeName", "")
    if found not in ("", node):
        raise NoPlanError(f"{_named(pod)} is on {found} instead of {node}")
    return bool(found)


def _waits_for(pod: Json) -> str:
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f": {condition.get('message', '')}"
    return ""


def _named(obj: Json) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
