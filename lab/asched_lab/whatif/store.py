"""The API server of a simulated cluster: the embedded one with its admission, without a socket.

Objects of the snapshot are stored unchanged. New objects are created as by a client, so defaults,
priority classes, runtime classes, limit ranges and quotas apply, and what a server would refuse is
refused. Effects of the machine become requests, as in production; what kubelets and controllers of
volumes and claims would do follows at once (`stand_ins.py`).
Facts arrive as from watches, each write once, in order.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from asched.core.cluster.facts import Answer, Bound, Fact, Gone, Listed, Refused, Seen
from asched.core.framework.effects import Bind, Effect
from asched.core.model.decode import decode
from asched.core.model.kinds import POD, Kind
from asched.core.model.meta import Record
from asched.core.model.timestamp import microseconds
from asched.kube.writes import answer_for, request_for
from asched_lab.apiserver import binding, bodies, bootstrap, crud
from asched_lab.apiserver.admission import pod_usage
from asched_lab.apiserver.context import DELETED, NAME_LETTERS, SUFFIX_LENGTH, Change, Options
from asched_lab.apiserver.quantities import canonical, value
from asched_lab.apiserver.refusals import ApiError
from asched_lab.apiserver.resources import BY_KIND, NAMESPACES, POD_GROUPS, PODS, Resource, find
from asched_lab.apiserver.schema import DecodeError
from asched_lab.apiserver.server import ApiServer
from asched_lab.sim.wire import send
from asched_lab.whatif.objects import WATCHED, Json, ObjectError, title
from asched_lab.whatif.snapshot import ENDED, Snapshot

QUOTAS: Final = find("resourcequotas")
#: Generated names end in these, counted up.
LETTERS: Final = "".join(sorted(NAME_LETTERS))


def _moment(snapshot: Snapshot) -> float:
    """When the snapshot was taken, in seconds since 1970, or now: objects with a deadline had not
    expired then.
    """
    try:
        return microseconds(snapshot.taken) / 1e6
    except ValueError:
        return time.time()


def _stored(res: Resource, obj: Json) -> Json:
    """An object of the snapshot with the fields that an API server fills in: a list that was made
    by hand may lack them. Raises ObjectError.
    """
    try:
        stored, _ = bodies.to_stored(res, obj)
    except DecodeError as error:
        raise ObjectError(f"{title(obj)}: {error.path}: {error.why}") from None
    metadata = stored["metadata"]
    metadata.setdefault("uid", f"{res.plural}/{metadata.get('namespace', '')}/{metadata['name']}")
    return stored


class RefusedError(Exception):
    """The API server's message for a refused object."""


class Store:
    """The objects of a simulated cluster, in the embedded server. Raises ObjectError."""

    def __init__(self, snapshot: Snapshot, *, seed: int = 0) -> None:
        began_s = _moment(snapshot)
        self._server = ApiServer(
            options=Options(alpha=POD_GROUPS), clock=lambda: began_s, seed=seed
        )
        self.ctx = self._server.ctx
        self.ctx.new_suffix = self._suffix  # type: ignore[method-assign]
        self.facts: list[Fact] = []
        self._made = 0
        #: Kinds that the embedded server does not serve: facts only, never written.
        self._unserved: dict[Kind, tuple[Record, ...]] = {}
        bootstrap.fill(self.ctx, port=1, authority="")
        for (api_version, name), objects in snapshot.objects.items():
            res, kind = BY_KIND.get((api_version, name)), WATCHED.get((api_version, name))
            if res is not None:
                for obj in objects:
                    self.put(res, _stored(res, obj))
            elif kind is not None:
                self._unserved[kind] = tuple(decode(kind.record, obj) for obj in objects)
        self.note_namespaces()

    def note_namespaces(self) -> None:
        """Create missing namespaces: a list of pods without their namespaces is accepted."""
        for namespace in {obj["metadata"].get("namespace", "") for obj in self.listed(PODS)}:
            if namespace and self.ctx.get(NAMESPACES, "", namespace) is None:
                self._server.create("namespaces", {"metadata": {"name": namespace}})

    def watch(self) -> list[Fact]:
        """Complete lists, pods last; from now on every write becomes a fact."""
        lists: list[Fact] = []
        for key, kind in WATCHED.items():
            res = BY_KIND.get(key)
            if res is None:
                lists.append(Listed(kind, self._unserved.get(kind, ())))
                continue
            lists.append(Listed(kind, tuple(decode(kind.record, o) for o in self.listed(res))))
            self.ctx.store.table(res.storage).listeners.append(partial(self._notify, kind))
        return sorted(lists, key=lambda fact: isinstance(fact, Listed) and fact.kind is POD)

    def _notify(self, kind: Kind, change: Change) -> None:
        obj = change.new.obj
        has_ended = kind is POD and obj["status"].get("phase") in ENDED
        fact = Gone if change.type == DELETED or has_ended else Seen
        self.facts.append(fact(kind, decode(kind.record, obj)))

    # --- objects ---------------------------------------------------------------------------------

    def listed(self, res: Resource) -> list[Json]:
        """Stored objects ordered by name; callers must not change them."""
        table = self.ctx.store.table(res.storage)
        return [table.records[key].obj for key in table.order]

    def get(self, res: Resource, namespace: str, name: str) -> Json | None:
        record = self.ctx.get(res, namespace, name)
        return None if record is None else record.obj

    def listen(self, res: Resource, listener: Callable[[Change], None]) -> None:
        self.ctx.store.table(res.storage).listeners.append(listener)

    def put(self, res: Resource, obj: Mapping[str, Any]) -> Json:
        """Store an object as it is, without admission."""
        bare = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}
        return self.ctx.put(res, bare).obj

    def remove(self, res: Resource, obj: Json) -> None:
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        if self.ctx.store.get(res.storage, key) is not None:
            self.ctx.store.remove(res.storage, key, obj)

    def create(self, res: Resource, obj: Json, namespace: str = "") -> Json:
        """Create it as a client would. Raises RefusedError."""
        try:
            made, _ = bodies.to_stored(res, obj)
            stored = crud.create(self.ctx, res, namespace if res.namespaced else "", made).obj
        except DecodeError as error:
            raise RefusedError(bodies.cannot_handle(res, str(error)).message) from None
        except ApiError as error:
            raise RefusedError(error.message) from None
        if res is PODS:
            self._charge(stored)
        return stored

    def _charge(self, pod: Json) -> None:
        """Count a new pod in the quotas of its namespace, whatever their scopes."""
        usage = pod_usage(pod)
        for quota in self.listed(QUOTAS):
            if quota["metadata"]["namespace"] == pod["metadata"]["namespace"]:
                used = {
                    name: canonical(str(value(amount) + usage.get(name, 0)))
                    for name, amount in (quota["status"].get("used") or {}).items()
                }
                self.put(QUOTAS, {**quota, "status": {**quota["status"], "used": used}})

    def new_identity(self, base: str) -> Json:
        """Name, uid and creation time of an object that a controller recreates."""
        name = self.ctx.generated_name(base)
        uid, now = self.ctx.new_uid(), self.ctx.now()
        return {"name": name, "uid": uid, "creationTimestamp": now}

    def _suffix(self) -> str:
        """Later names sort after earlier ones, as pods of one age are tried in that order."""
        number, letters = self._made, []
        self._made += 1
        for _ in range(SUFFIX_LENGTH):
            number, letter = divmod(number, len(LETTERS))
            letters.append(LETTERS[letter])
        return "".join(reversed(letters))

    # --- requests of the scheduler ---------------------------------------------------------------

    def perform(self, effect: Effect) -> Answer:
        """The server's answer to an effect that is a request."""
        try:
            if isinstance(effect, Bind):
                return self._bind(effect)
            return answer_for(effect, send(self.ctx, request_for(effect)))
        except ApiError as error:
            return Refused(effect.id, error.code, error.message, error.reason)

    def _bind(self, effect: Bind) -> Bound:
        """Bind as the server's handler does, without parsing a request: there are many."""
        record = crud.existing(self.ctx, PODS, effect.pod.namespace, effect.pod.name)
        identity = {"uid": effect.pod.uid}
        binding.check_identity(record, identity)
        binding.check_bindable(record)
        bound = binding.bound(self.ctx, record.obj, effect.node, identity, topology=True)
        self.ctx.put(PODS, bound)
        return Bound(effect.id)
