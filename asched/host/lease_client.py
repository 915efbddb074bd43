"""Requests about one Lease."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import orjson

from asched.core.leader.election import CreateLease, WriteLease
from asched.core.model.timestamp import micro_time
from asched.kube.errors import NotFound
from asched.kube.session import Session, read_as, read_json
from asched.kube.writes import quoted

#: GET and PUT may overlap when one of them is cancelled.
CONNECTIONS: Final = 2
#: The suffix of kube-scheduler's user agent for requests about its lease.
PURPOSE: Final = "leader-election"


class _LeaseMetadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _ElectionSpec(msgspec.Struct, rename="camel"):
    """The fields that the election reads."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct):
    """An answer of another shape is not a Lease."""

    metadata: _LeaseMetadata
    spec: _ElectionSpec | None = None


class LeaseClient:
    """GET, POST and PUT of one Lease. Every method raises ApiError or TransportError."""

    def __init__(self, session: Session, namespace: str, name: str, *, timeout_s: float) -> None:
        self.namespace = namespace
        self.name = name
        self._timeout_s = timeout_s
        self._transport = session.pool(CONNECTIONS, purpose=PURPOSE)
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{quoted(namespace)}/leases"
        self._object = f"{self._collection}/{quoted(name)}"
        # The server gets our timeout, as from client-go.
        self._query = f"?timeout={max(1, round(timeout_s))}s"

    async def get(self) -> dict[str, Any] | None:
        """The lease as stored, or None."""
        try:
            return await self._send("GET", self._object)
        except NotFound:
            return None

    async def create(self, made: CreateLease) -> dict[str, Any]:
        """POST. Raises AlreadyExists if another replica was faster."""
        body = self._body({"name": self.name, "namespace": self.namespace}, made)
        return await self._send("POST", self._collection, body)

    async def update(self, write: WriteLease) -> dict[str, Any]:
        """PUT a new record, guarded by the lease's resourceVersion. Raises Conflict."""
        return await self._send("PUT", self._object, self._body(write.lease["metadata"], write))

    async def announce(
        self, lease: Mapping[str, Any], message: str, *, component: str, now_ns: int
    ) -> None:
        """Write the core/v1 event `LeaderElection` about the lease: `<identity> became leader`.

        kube-scheduler writes only this event in the old form. Callers may ignore errors.
        """
        meta = lease["metadata"]
        second = f"{micro_time(now_ns)[:19]}Z"
        event = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": f"{self.name}.{now_ns:016x}", "namespace": self.namespace},
            "involvedObject": {
                "kind": "Lease",
                "namespace": self.namespace,
                "name": self.name,
                "uid": meta.get("uid", ""),
                "apiVersion": "coordination.k8s.io/v1",
                "resourceVersion": meta.get("resourceVersion", ""),
            },
            "reason": "LeaderElection",
            "message": message,
            "source": {"component": component},
            "firstTimestamp": second,
            "lastTimestamp": second,
            "count": 1,
            "type": "Normal",
            "eventTime": None,
            "reportingComponent": component,
            "reportingInstance": "",
        }
        path = f"/api/v1/namespaces/{quoted(self.namespace)}/events"
        await self._send("POST", path, orjson.dumps(event), dict)

    def _body(self, metadata: Mapping[str, Any], write: CreateLease | WriteLease) -> bytes:
        annotations = {**(metadata.get("annotations") or {}), **write.annotations}
        return orjson.dumps(
            {
                "kind": "Lease",
                "apiVersion": "coordination.k8s.io/v1",
                "metadata": {**metadata, "annotations": annotations},
                "spec": write.record.spec(),
            }
        )

    async def _send(
        self, method: str, path: str, body: bytes | None = None, shape: type[Any] = _Lease
    ) -> dict[str, Any]:
        reply = await self._transport.request(
            method, path + self._query, body, timeout_s=self._timeout_s
        )
        read_as(reply, shape)
        return read_json(reply)
