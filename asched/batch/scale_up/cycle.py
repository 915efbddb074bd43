"""Requests for the new nodes that gangs lack: made, followed, withdrawn.

    gang fits nowhere ─> missing nodes are found ─> templates and request created ─> open
      ├─> it has started, was deleted, or is incomplete ──────────> withdrawn
      └─> time is up; the request failed, was refused or deleted ─> withdrawn, and not made again
                                                                    before a backoff

While a request is open, after it failed or expired until the next one, or if no shape helps the
gang, its pods have the reason `NewNodesDoNotHelp`: autoscalers would add nodes for single pods
otherwise. After a request the gang is tried again, which writes the reason anew. A request that no
autoscaler answers leaves the gang as without the plugin.

A new process finds open requests by their label, and follows those whose gang still waits; all
others of its profiles are deleted. Requests of other clients have no such label.

An object that exists already is asched's if the gang owns it and its content is that of the create;
otherwise no request is made, and the object is left alone. A request whose template another client
changes is withdrawn.

Bounds  a namespace's open requests, and their nodes, are limited (maxRequestsPerNamespace,
        maxNodesPerNamespace); one computation for a gang that no shape takes every SEARCH_S; all
        open requests are checked every CHECK_S; WRITES_MAX writes at a time; one complaint about a
        namespace every COMPLAINT_S, NAMESPACES_MAX are remembered.
"""

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Final

from asched.batch.groups.attempt import GroupPauses
from asched.batch.groups.incomplete import Incomplete
from asched.batch.scale_up import objects
from asched.batch.scale_up.missing_nodes import find_missing_nodes
from asched.batch.scale_up.objects import ScaleUp
from asched.core.cluster.change_logs import Reader
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer, Done, Refused
from asched.core.cluster.gang import count_missing, gang_of, object_of
from asched.core.config.args import GroupScaleUpArgs
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.extension import Extension, Work
from asched.core.cycle.extension_points import NOTHING_TO_ADD, Addition
from asched.core.framework.effects import Create, Delete, Effect
from asched.core.framework.status import MISTAKES
from asched.core.model.decode import decode
from asched.core.model.kinds import POD_TEMPLATE, PROVISIONING_REQUEST, Kind
from asched.core.model.lru import Lru
from asched.core.model.provisioning import PodTemplate, ProvisioningRequest, RequestStage
from asched.core.model.timestamp import seconds

CHECK_S: Final = 1.0
SEARCH_S: Final = 60.0
RETRY_S: Final = 5.0
WRITES_MAX: Final = 8
#: Budget steps for a request that changed.
CONSIDER_STEPS: Final = 0.5
#: Budget steps to compare the specs of as many pods as `PodSets.collect` does at once.
SPECS_STEPS: Final = 100
COMPLAINT_S: Final = 3_600.0
NAMESPACES_MAX: Final = 1_024
#: Characters of an annotation that are shown.
TEXT_MAX: Final = 100
FORBIDDEN, NOT_FOUND, CONFLICT = 403, 404, 409
#: Codes with which a create is not refused for good.
REPEATED: Final = (CONFLICT, 429, *range(500, 600))

Steps = Generator[Effect, Answer, None]


class NewNodes(Extension):
    """GroupScaleUp: nodes are requested for gangs that do not fit."""

    name = "scale-ups"

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self._by_group: dict[str, ScaleUp] = {}
        self._by_object: dict[str, ScaleUp] = {}
        #: to be deleted, by object, once no write of its objects is under way
        self._unwanted: dict[str, ScaleUp] = {}
        #: gangs for which no request is made, with the text why new nodes do not help it now
        self._pauses = GroupPauses()
        self._next_check_s = -math.inf
        self._complained_s = Lru[str, float](NAMESPACES_MAX)  # by namespace
        self._changes = Reader(context.cluster.object_log)

    def is_used(self) -> bool:
        return bool(self._args)

    @property
    def _args(self) -> Mapping[str, GroupScaleUpArgs]:
        """The plugin's args by profile."""
        return self.context.args_by_profile(GroupScaleUpArgs)

    def next_deadline_s(self) -> float | None:
        return self._next_check_s if self._by_group or self._unwanted else None

    def rejected(self, attempts: Sequence[Attempt]) -> Generator[Effect, Answer, Addition]:
        """Request the nodes that a gang without places lacks."""
        text = yield from self._request_nodes(attempts)
        return Addition(text, new_nodes_do_not_help=True) if text else NOTHING_TO_ADD

    def _request_nodes(self, attempts: Sequence[Attempt]) -> Generator[Effect, Answer, str]:
        """The text for the gang's condition; empty if autoscalers may add nodes for single pods."""
        context, cluster, key = self.context, self.context.cluster, attempts[0].queued.gang
        profile, known = attempts[0].profile, self._by_group.get(key)
        if known is not None and known.profile != profile:  # the gang came to another pool
            known.is_over = True
        args = self._args.get(profile) if key else None
        group = object_of(cluster, key) if args is not None else None
        if args is None or group is None:
            return ""
        uid = group.metadata.uid
        if known is not None:
            return known.text
        text = self._pauses.text(key, uid, context.now_s)
        if text is not None:
            return text
        if len(self._open_in(group.metadata.namespace)) >= args.max_requests_per_namespace:
            return ""
        made = yield from _new(context, attempts, args)
        if isinstance(made, ScaleUp):
            made = self._within_share(made, args) or made
        if isinstance(made, str):
            self._pauses.note(key, uid, context.now_s + SEARCH_S, made)
            return made
        now, old = object_of(cluster, key), self._unwanted.get(made.object_key)
        if now is None or now.metadata.uid != uid or (old is not None and old.is_writing):
            return ""
        self._unwanted.pop(made.object_key, None)
        self._add(made)
        return made.text

    def _open_in(self, namespace: str) -> list[ScaleUp]:
        return [known for known in self._by_group.values() if known.namespace == namespace]

    def _within_share(self, made: ScaleUp, args: GroupScaleUpArgs) -> str:
        """Why its namespace may not request the nodes as well; empty if it may."""
        nodes = sum(known.nodes for known in self._open_in(made.namespace))
        if nodes + made.nodes <= args.max_nodes_per_namespace:
            return ""
        return (
            f"; {made.nodes} new nodes would be requested beside {nodes}, and its namespace may"
            f" have {args.max_nodes_per_namespace} (maxNodesPerNamespace)"
        )

    def _add(self, scale_up: ScaleUp) -> None:
        self._by_group[scale_up.key] = self._by_object[scale_up.object_key] = scale_up
        self._next_check_s = -math.inf

    def begin_turn(self) -> Iterator[Work]:
        """Yield the writes to begin now. Called by the leader once all objects are known."""
        context = self.context
        if not (self._args or self._by_group or self._unwanted):
            return
        if changed := self._changed():
            context.queue.sliced_work.do(self._considering(changed))
        if context.sliced_work or context.now_s < self._next_check_s:
            return
        self._next_check_s = context.now_s + CHECK_S
        for scale_up in tuple(self._by_group.values()):
            self._end_if_due(scale_up)
        writes = [(self._create, s) for s in self._by_group.values() if s.bodies]
        writes += [(self._delete, scale_up) for scale_up in self._unwanted.values()]
        begun = sum(scale_up.is_writing for _, scale_up in writes)
        for write, scale_up in writes:
            if begun < WRITES_MAX and not scale_up.is_writing and context.now_s >= scale_up.write_s:
                begun += 1
                scale_up.is_writing, scale_up.write_s = True, context.now_s + RETRY_S
                yield Work(write(scale_up), decides=False)

    def _changed(self) -> list[str]:
        """Keys of requests that changed since the last call; all of them in the first."""
        entries = self._changes.unread()
        if entries is None:
            return [*self.context.cluster.all(PROVISIONING_REQUEST), *self._by_object]
        resource = PROVISIONING_REQUEST.resource
        return list(dict.fromkeys(key for changed, key in entries if changed == resource))

    def _considering(self, keys: Sequence[str]) -> Iterator[None]:
        for key in keys:
            self.context.queue.sliced_work.budget.note(CONSIDER_STEPS)
            yield
            try:
                self._consider(key)
            except MISTAKES as raised:  # it is skipped until it changes again
                self.context.contain(raised, "scale-ups", key)

    def _consider(self, key: str) -> None:
        """Handle a request that was added, changed or deleted."""
        request: ProvisioningRequest | None = self.context.cluster.stored(PROVISIONING_REQUEST, key)
        known = self._by_object.get(key)
        if known is not None:
            known.is_seen |= request is not None
            is_deleted = request is None and known.is_seen
            known.is_unfulfilled |= request is not None and request.stage is RequestStage.ENDED
            known.is_over |= is_deleted or known.is_unfulfilled
            return
        profile = "" if request is None else objects.profile_of(request)
        if request is None or profile not in self._args:
            return
        adopted = self._adopted(request, profile)
        is_wanted = not (
            _is_withdrawn(self.context.cluster, adopted)
            or key in self._unwanted
            or adopted.key in self._by_group
            or self._pauses.text(adopted.key, adopted.uid, self.context.now_s) is not None
        )
        if is_wanted:
            self._add(adopted)
        else:
            self._unwanted.setdefault(key, adopted)
            self._next_check_s = -math.inf

    def _adopted(self, request: ProvisioningRequest, profile: str) -> ScaleUp:
        """A request of an earlier process."""
        key, uid = objects.group_of(request)
        metadata, is_ended = request.metadata, request.stage is RequestStage.ENDED
        wall_s, limit_s = self.context.cluster.wall_clock_s, self._args[profile].time_limit_s
        age_s = max(wall_s - seconds(metadata.creation_timestamp, wall_s), 0.0)
        return ScaleUp(
            key=key,
            uid=uid,
            namespace=metadata.namespace,
            name=metadata.name,
            profile=profile,
            new_nodes=(metadata.annotations or {}).get(objects.NEW_NODES, "")[:TEXT_MAX],
            until_s=self.context.now_s + limit_s - age_s,
            templates=len(request.spec.pod_sets),
            is_seen=True,
            is_over=is_ended,
            is_unfulfilled=is_ended,
        )

    def _end_if_due(self, scale_up: ScaleUp) -> None:
        cluster, key = self.context.cluster, scale_up.key
        args = self._args.get(scale_up.profile)
        is_withdrawn = args is None or _is_withdrawn(cluster, scale_up)
        scale_up.is_over |= self._is_changed(scale_up)
        if not (is_withdrawn or scale_up.is_over or self.context.now_s >= scale_up.until_s):
            return
        if not is_withdrawn and args is not None:
            until_s = self.context.now_s + args.backoff_s
            self._pauses.note(key, scale_up.uid, until_s, scale_up.end_text)
        del self._by_group[key], self._by_object[scale_up.object_key]
        self._unwanted.setdefault(scale_up.object_key, scale_up)
        self._next_check_s = -math.inf
        waiting = next(
            filter(self.context.owns, cluster.pod_groups.get(key).unplaced.values()), None
        )
        if waiting is not None:
            self.context.queue.activate((waiting,), self.context.now_s)  # it brings the others

    def _is_changed(self, scale_up: ScaleUp) -> bool:
        """Whether another client has changed one of its templates."""
        pairs = ((self._stored(scale_up, number), made) for number, made in scale_up.made.items())
        return any(
            isinstance(now, PodTemplate)
            and isinstance(made, PodTemplate)
            and not objects.has_template(now, made)
            for now, made in pairs
        )

    def _create(self, scale_up: ScaleUp) -> Steps:
        """Create the templates, then the request; again after RETRY_S without a clear answer. What
        exists already is compared once the watch has shown it.
        """
        try:
            for number, body in enumerate(scale_up.bodies):
                if self._stored(scale_up, number) is not None:
                    ours = self._ours(scale_up, number)
                    if ours is None:
                        name = scale_up.name_of(number)
                        self._give_up(scale_up, f'"{name}" exists with another owner or content')
                        return
                    scale_up.made[number] = ours
                    continue
                kind = self._kind(scale_up, number)
                answer = yield Create(kind=kind, namespace=scale_up.namespace, body=body)
                if isinstance(answer, Refused) and answer.code not in REPEATED:
                    self._give_up(scale_up, answer.message)
                if not isinstance(answer, Done):
                    return
                if answer.obj is not None and kind is POD_TEMPLATE:
                    scale_up.made[number] = decode(PodTemplate, answer.obj)
                elif answer.obj is not None:
                    scale_up.made[number] = decode(ProvisioningRequest, answer.obj)
            scale_up.bodies, scale_up.write_s = (), -math.inf
        finally:
            scale_up.is_writing = False

    def _give_up(self, scale_up: ScaleUp, why: str) -> None:
        scale_up.is_over = True
        self._complain(scale_up, why)

    def _delete(self, scale_up: ScaleUp) -> Steps:
        """Delete the request, then its templates; again after RETRY_S without a clear answer."""
        try:
            for number in reversed(range(scale_up.templates + 1)):
                ours = self._ours(scale_up, number)
                if ours is None:
                    continue
                answer = yield Delete(
                    kind=self._kind(scale_up, number),
                    namespace=scale_up.namespace,
                    name=scale_up.name_of(number),
                    uid=ours.metadata.uid,
                )
                code = answer.code if isinstance(answer, Refused) else 0
                if isinstance(answer, Refused) and code == FORBIDDEN:
                    self._complain(scale_up, answer.message)
                elif not (isinstance(answer, Done) or code == NOT_FOUND):
                    return
            self._unwanted.pop(scale_up.object_key, None)
        finally:
            scale_up.is_writing = False

    def _kind(self, scale_up: ScaleUp, number: int) -> Kind:
        """The kind of one of its objects, of which the last one is the request."""
        is_request = number == scale_up.templates
        return (
            self.context.cluster.served_kind(PROVISIONING_REQUEST) if is_request else POD_TEMPLATE
        )

    def _stored(self, scale_up: ScaleUp, number: int) -> PodTemplate | ProvisioningRequest | None:
        """The object of this name, as the watch has shown it."""
        kind = PROVISIONING_REQUEST if number == scale_up.templates else POD_TEMPLATE
        key = f"{scale_up.namespace}/{scale_up.name_of(number)}"
        found: PodTemplate | ProvisioningRequest | None = self.context.cluster.stored(kind, key)
        return found

    def _ours(self, scale_up: ScaleUp, number: int) -> PodTemplate | ProvisioningRequest | None:
        """One of its objects: as it was created, or what exists with its owner and content."""
        stored, made = self._stored(scale_up, number), scale_up.made.get(number)
        if stored is None:
            return made
        is_ours = objects.is_owned(stored, scale_up.uid)
        if made is not None:
            is_ours &= made.metadata.uid == stored.metadata.uid
        elif scale_up.bodies:
            is_ours &= objects.has_content(stored, scale_up.bodies[number])
        return stored if is_ours else None

    def _complain(self, scale_up: ScaleUp, why: str) -> None:
        """Report what keeps requests of a namespace from being made, such as its quota."""
        namespace, now_s = scale_up.namespace, self.context.now_s
        known_s = self._complained_s.get(namespace)
        if known_s is not None and now_s < known_s + COMPLAINT_S:
            return
        self._complained_s.put(namespace, now_s)
        self.context.observer.complaint(
            f"cannot request nodes for gangs in namespace {namespace}: {why}; if asched lacks the"
            " rights or the CRD of cluster-autoscaler, add deploy/components/group-scale-up, or"
            " remove GroupScaleUp from the profile"
        )


def _new(
    context: SchedulerContext, attempts: Sequence[Attempt], args: GroupScaleUpArgs
) -> Generator[Effect, Answer, ScaleUp | str]:
    cluster, key = context.cluster, attempts[0].queued.gang
    missing = yield from find_missing_nodes(context, attempts, args.node_shapes)
    if isinstance(missing, str):
        return missing
    sets = objects.PodSets()
    for _ in sets.collect(missing.pods):
        yield from context.pause_if_due(SPECS_STEPS)
    group = object_of(cluster, key)
    if group is None or len(sets.by_spec) > objects.SETS_MAX:
        return ""
    profile, new_nodes = attempts[0].profile, f"{len(missing.nodes)} of shape {missing.shape.name}"
    bodies = objects.bodies(
        cluster, key, sets, profile=profile, new_nodes=new_nodes, valid_s=args.time_limit_s
    )
    metadata = group.metadata
    return ScaleUp(
        key=key,
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=bodies[-1]["metadata"]["name"],
        profile=profile,
        new_nodes=new_nodes,
        until_s=context.now_s + args.time_limit_s,
        templates=len(bodies) - 1,
        bodies=bodies,
    )


def _is_withdrawn(cluster: Cluster, scale_up: ScaleUp) -> bool:
    """Whether the gang has started, was deleted, or is reported as incomplete."""
    key, group = scale_up.key, object_of(cluster, scale_up.key)
    gang, pods = gang_of(cluster, key), cluster.pod_groups.get(key)
    if group is None or gang is None or group.metadata.uid != scale_up.uid:
        return True
    if count_missing(cluster, key) <= 0:  # nodes that seem free until then would be removed
        return not any(map(cluster.is_assumed, pods.placed))
    return not pods.count or key in cluster.singleton(Incomplete).reports
