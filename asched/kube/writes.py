"""Convert effects to requests and answers to facts: pure functions, bodies as kube-scheduler's.

A write has three outcomes: a 2xx is Bound or Done; an error that proves that nothing was carried
out is Refused, also an unavailable webhook; every other error is Unknown, because a server that
timed out on its store may still have stored the write.
"""

from typing import Any, Final
from urllib.parse import quote

import msgspec
import orjson

from asched.core.cluster.facts import (
    Answer,
    Bound,
    Done,
    ReadGone,
    ReadPending,
    ReadPlaced,
    Refused,
    Unknown,
)
from asched.core.framework.effects import (
    STRATEGIC_MERGE,
    Bind,
    Create,
    Delete,
    DeletePod,
    Effect,
    Evict,
    Patch,
    PatchPodStatus,
    ReadPod,
)
from asched.core.model.decode import MalformedError
from asched.core.model.kinds import POD
from asched.kube.errors import api_error, says_not_done
from asched.kube.parsing import read
from asched.kube.transport import Reply, WireRequest

#: Timeout of one attempt. kube-apiserver gives a request 60 s; after 30 s a read-back of the object
#: is more useful.
TIMEOUT_S: Final = 30.0


class _Meta(msgspec.Struct, rename="camel"):
    uid: str
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class _ReadBack(msgspec.Struct):
    """The fields of a pod that settle a binding. Without a uid the answer is not a pod."""

    metadata: _Meta
    spec: _Spec


class _PatchedPod(msgspec.Struct):
    """The fields of a pod in the answer to a patch."""

    metadata: _Meta


_written: Final = msgspec.json.Decoder(_PatchedPod)
_read_backs: Final = msgspec.json.Decoder(_ReadBack)


def request_for(effect: Effect, timeout_s: float = TIMEOUT_S) -> WireRequest:
    """The request that performs an effect. Raises TypeError if there is none. `timeout_s`: how long
    its sender waits for the answer; the server does not begin a binding after that.
    """
    match effect:
        case Bind():
            return bind(effect, timeout_s)
        case PatchPodStatus():
            return patch_pod_status(effect)
        case ReadPod():
            return WireRequest("GET", _pod_path(effect.pod.namespace, effect.pod.name))
        case DeletePod():
            path = _pod_path(effect.pod.namespace, effect.pod.name)
            return WireRequest("DELETE", path, _delete_options(effect.pod.uid))
        case Evict():
            return evict(effect)
        case Delete():
            path = effect.kind.object_path(quoted(effect.namespace), quoted(effect.name))
            return WireRequest("DELETE", path, _delete_options(effect.uid))
        case Patch():
            path = effect.kind.object_path(quoted(effect.namespace), quoted(effect.name))
            if effect.subresource:
                path = f"{path}/{effect.subresource}"
            return WireRequest("PATCH", path, orjson.dumps(effect.body), effect.content_type)
        case Create():
            collection = effect.kind.object_path(quoted(effect.namespace), "").rstrip("/")
            return WireRequest("POST", collection, orjson.dumps(effect.body))
        case _:
            raise TypeError(f"{type(effect).__name__} is not performed by a request")


def bind(effect: Bind, timeout_s: float = TIMEOUT_S) -> WireRequest:
    """POST pods/NAME/binding; uid and resourceVersion in the metadata are the preconditions."""
    pod = effect.pod
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    if pod.resource_version:
        metadata["resourceVersion"] = pod.resource_version
    body = orjson.dumps(
        {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": metadata,
            "target": {"kind": "Node", "name": effect.node},
        }
    )
    path = _pod_path(pod.namespace, pod.name)
    return WireRequest("POST", f"{path}/binding?timeout={timeout_s:g}s", body)


def evict(effect: Evict) -> WireRequest:
    """POST pods/NAME/eviction, with the pod's own grace period."""
    pod = effect.pod
    body = {
        "kind": "Eviction",
        "apiVersion": "policy/v1",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": {"preconditions": {"uid": pod.uid}},
    }
    return WireRequest("POST", f"{_pod_path(pod.namespace, pod.name)}/eviction", orjson.dumps(body))


def patch_pod_status(effect: PatchPodStatus) -> WireRequest:
    """PATCH pods/NAME/status, strategic merge, of one condition and the nomination.

    The uid in the metadata makes the server refuse the patch (422) for a new pod of the same name.
    """
    status: dict[str, Any] = {}
    if effect.condition is not None:
        if effect.condition_types:
            status["$setElementOrder/conditions"] = [{"type": t} for t in effect.condition_types]
        status["conditions"] = [dict(effect.condition)]
    if effect.nominated_node_name is not None:
        status["nominatedNodeName"] = effect.nominated_node_name or None
    path = f"{_pod_path(effect.pod.namespace, effect.pod.name)}/status"
    body: dict[str, Any] = {"status": status}
    if effect.pod.uid:
        body["metadata"] = {"uid": effect.pod.uid}
    return WireRequest("PATCH", path, orjson.dumps(body), STRATEGIC_MERGE)


def answer_for(effect: Effect, reply: Reply) -> Answer:
    """The fact for the outcome of an answered request."""
    if isinstance(effect, ReadPod):
        return _read_pod(effect, reply)
    if 200 <= reply.status < 300:
        if isinstance(effect, Bind):
            return Bound(effect.id)
        obj = _object(reply.body) if isinstance(effect, Patch | Create) else None
        return Done(effect.id, obj)
    error = api_error(reply.status, reply.body)
    if not says_not_done(reply.status, reply.body):
        return Unknown(effect.id, f"{error.message} (HTTP status {reply.status})")
    return Refused(effect.id, reply.status, error.message, error.reason)


def version_of(outcome: Reply | Exception) -> str:
    """The resource version in an answer, as API servers send it for a binding since 1.38; "" if
    there is none.
    """
    if not isinstance(outcome, Reply) or b'"resourceVersion"' not in outcome.body:
        return ""
    metadata = (_object(outcome.body) or {}).get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else ""
    return version if isinstance(version, str) and outcome.status < 300 else ""


def written_version(effect: Effect, outcome: Reply | Exception) -> tuple[str, str] | None:
    """Uid and resource version of a pod after a patch of ours; None for other effects and answers.
    Its conditions are patched as a status, its annotations by plugins as any object.
    """
    is_of_pod = isinstance(effect, PatchPodStatus) or (
        isinstance(effect, Patch) and effect.kind is POD
    )
    if not is_of_pod or not isinstance(outcome, Reply) or outcome.status >= 300:
        return None
    try:
        metadata = read(_written.decode, outcome.body).metadata
    except MalformedError:
        return None
    return metadata.uid, metadata.resource_version


def _read_pod(effect: ReadPod, reply: Reply) -> Answer:
    if reply.status == 404:
        return ReadGone(effect.id)
    if not 200 <= reply.status < 300:
        return Unknown(effect.id, api_error(reply.status, reply.body).message)
    try:
        pod = read(_read_backs.decode, reply.body)
    except MalformedError as error:
        return Unknown(effect.id, f"the answer is not a pod: {error}")
    if effect.pod.uid and pod.metadata.uid != effect.pod.uid:
        return ReadGone(effect.id)
    node = pod.spec.node_name
    if node:
        return ReadPlaced(effect.id, node)
    return ReadPending(effect.id, pod.metadata.resource_version)


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        parsed = read(orjson.loads, body)
    except MalformedError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _delete_options(uid: str) -> bytes:
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if uid:
        options["preconditions"] = {"uid": uid}
    return orjson.dumps(options)


def _pod_path(namespace: str, name: str) -> str:
    return POD.object_path(quoted(namespace), quoted(name))


def quoted(segment: str) -> str:
    """A name as one path segment; valid Kubernetes names need no escapes."""
    is_plain = segment.replace("-", "a").isalnum() and segment.isascii()
    return segment if is_plain else quote(segment, safe="")
