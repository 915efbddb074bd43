"""Plain classes as plugins: `def filter(self, pod, node)` instead of columns.

A user's class needs no base. It has some of these methods, and each becomes an extension point:

    queue_sort(pod, timestamp_s) -> key       pre_enqueue(pod)          pre_filter(pod)
    filter(pod, node)                         post_filter(pod, rejected)
    pre_score(pod, nodes)   score(pod, node) -> int   normalize_scores(pod, scores)
    reserve(pod, node)    unreserve(pod, node)                          permit(pod, node)
    pre_bind(pod, node)   bind(pod, node)     post_bind(pod, node)

Answers  None or True accept; a text, False or a rejecting Status reject; anything else is an error.
Late     permit, pre_bind, bind and post_bind may be `async def`, or generators that yield effects;
         they then run in the pod's binding task. All other methods are plain.
         A coroutine may take LATE_TIMEOUT_S, or what the class sets, e.g. `bind_timeout_s = 5`.
Called   in every attempt, for nodes that no earlier filter rejected; a class that declares
         `depends_on` is called for every node, and again only where such an aspect changed.
"""

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import numpy as np

from asched.core.cluster.changes import WILDCARD, Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer, Raised, Returned, TimedOut
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework import points
from asched.core.framework.effects import CallPlugin, Effect
from asched.core.framework.per_node.late import checked_effects, nonsense
from asched.core.framework.per_node.reasons import Reasons, raise_error, status_of
from asched.core.framework.per_node.views import LateNode, PluginNode, PluginPod, Rejected
from asched.core.framework.points import (
    I64,
    Codes,
    Late,
    Mask,
    Nomination,
    Plugin,
    PostFilterResult,
    PreFilterResult,
)
from asched.core.framework.preemption_trial import Trial
from asched.core.framework.registrations import Hint, Registration
from asched.core.framework.rejection import Rejection
from asched.core.framework.status import SUCCESS, Code, Status, failure
from asched.core.framework.waiting import PERMIT_TIMEOUT_S_MAX
from asched.core.model.meta import ObjectMeta
from asched.core.model.node import Node
from asched.core.model.pod import Pod


def hint_for_change(pod: Pod, old: Any, new: Any) -> Hint:
    """QUEUE, unless the change is the pod's own unreserved place, or its own status."""
    seen = old if new is None else new
    if not isinstance(seen, Pod) or seen.uid != pod.uid:
        return Hint.QUEUE
    if old is None or new is None:
        return Hint.SKIP
    before, after = old.metadata, new.metadata
    same = before.labels == after.labels and before.annotations == after.annotations
    return Hint.SKIP if same and old.spec == new.spec else Hint.QUEUE


#: Registrations of a plain class that declares none.
ANYTHING: Final = (Registration(Trigger(WILDCARD, Action.ALL), hint_for_change),)


#: Default time limits of coroutines, at most PERMIT_TIMEOUT_S_MAX. preBind: as VolumeBinding waits
#: for volumes (bindTimeoutSeconds). bind, postBind: kube-apiserver's limit of a request
#: (--request-timeout).
LATE_TIMEOUT_S: Final[Mapping[str, float]] = {
    "permit": PERMIT_TIMEOUT_S_MAX,
    "pre_bind": 600.0,
    "bind": 60.0,
    "post_bind": 60.0,
}


class PerNode(Plugin):
    """Base of all adapters: the user's object, and its views of pods and nodes."""

    def __init__(self, user: Any, cluster: Cluster) -> None:
        self.user = user
        self.cluster = cluster

    def registrations(self) -> Sequence[Registration] | None:
        own = getattr(self.user, "registrations", None)
        return ANYTHING if own is None else own()

    def node(self, name: str) -> PluginNode | None:
        """A node by name, None if it was deleted meanwhile."""
        raw = self.cluster.node_of(name)
        return None if raw is None else LateNode(self.cluster, raw)

    def node_or_rest(self, name: str) -> PluginNode:
        """A node by name; for a deleted one an object with its name, for cleaning up."""
        return self.node(name) or LateNode(self.cluster, Node(ObjectMeta(name=name)))

    def patience_s(self, method: str) -> float:
        """The time limit of a coroutine function: `METHOD_timeout_s` of the class, if set."""
        own = getattr(self.user, f"{method}_timeout_s", LATE_TIMEOUT_S[method])
        return min(float(own), PERMIT_TIMEOUT_S_MAX)

    def late(
        self, method: str, pod: PodInfo, node: str, *, cleans_up: bool = False
    ) -> Generator[Effect, Answer, Any]:
        """Call a method that may be plain, a coroutine function or a generator function.

        Returns its result, or a failure. `cleans_up`: the node may have been deleted.
        """
        call = getattr(self.user, method)
        seen = PluginPod(pod.pod, pod)
        where = self.node_or_rest(node) if cleans_up else self.node(node)
        if where is None:
            return failure(f"node {node} is gone")
        if inspect.iscoroutinefunction(call):
            answer = yield CallPlugin(
                plugin=self.name,
                call=lambda: call(seen, where),
                timeout_s=self.patience_s(method),
                binds=method == "bind",
            )
            if isinstance(answer, Raised):
                raise answer.error
            if isinstance(answer, TimedOut):
                if method == "permit":
                    return Status(Code.WAIT)  # Permit has its own message
                return failure(f"{method} took longer than {self.patience_s(method):g} s")
            return answer.value if isinstance(answer, Returned) else answer
        found = call(seen, where)
        if inspect.isgenerator(found):
            found = yield from checked_effects(found, self.name, LATE[method])
        return found


class PerNodeSort(PerNode, points.QueueSortPlugin):
    def sort_key(self, pod: Pod, timestamp_s: float) -> Any:
        return self.user.queue_sort(PluginPod(pod), timestamp_s)


class PerNodePreEnqueue(PerNode, points.PreEnqueuePlugin):
    def pre_enqueue(self, pod: Pod) -> Status:
        return status_of(self.user.pre_enqueue(PluginPod(pod)), self.name, "preEnqueue")


class PerNodePreFilter(PerNode, points.PreFilterPlugin):
    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        answer = self.user.pre_filter(PluginPod(pod.pod, pod))
        if isinstance(answer, (AbstractSet, list, tuple)):
            if not all(isinstance(name, str) for name in answer):
                raise nonsense(self.name, "preFilter", answer, "a set of node names")
            return PreFilterResult(node_names=frozenset(answer))
        return PreFilterResult(status_of(answer, self.name, "preFilter"))


class PerNodeFilter(PerNode, points.FilterPlugin):
    def __init__(self, user: Any, cluster: Cluster) -> None:
        super().__init__(user, cluster)
        self._reasons = Reasons()

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:  # noqa: ARG002
        codes: Codes = np.zeros(nodes.size, dtype=np.int32)
        ask, seen, cluster = self.user.filter, PluginPod(pod.pod, pod), self.cluster
        for at, (row, raw) in enumerate(nodes.nodes()):
            if raw is None:
                continue
            answer = ask(seen, PluginNode(cluster, row, raw))
            if answer is not None and answer is not True:
                codes[at] = self._code_of(answer)
        return codes

    def _code_of(self, answer: object) -> int:
        status = status_of(answer, self.name, "filter")
        if status.is_success:
            return 0
        if not status.is_rejection:
            raise_error(status, self.name)
        return self._reasons.code_of(status)

    def explain(self, pod: PodInfo, code: int) -> Status:  # noqa: ARG002
        return self._reasons.status_of(code, self.name)


class PerNodePostFilter(PerNode, points.PostFilterPlugin):
    def post_filter(
        self,
        pod: PodInfo,
        rejection: Rejection,
        trial: Trial,  # noqa: ARG002
    ) -> Generator[Effect, Answer, PostFilterResult]:
        found = self.user.post_filter(PluginPod(pod.pod, pod), Rejected(rejection, self.cluster))
        if inspect.isgenerator(found):
            found = yield from checked_effects(found, self.name, "postFilter")
        if isinstance(found, Nomination):
            return PostFilterResult(SUCCESS, found)
        if found is None:
            return PostFilterResult(Status(Code.UNSCHEDULABLE))
        return PostFilterResult(status_of(found, self.name, "postFilter"))


class PerNodePreScore(PerNode, points.PreScorePlugin):
    def pre_score(self, pod: PodInfo, nodes: NodeView, feasible: Mask) -> PreFilterResult:
        seen = [
            PluginNode(self.cluster, row, raw)
            for row, raw in nodes.nodes()
            if raw is not None and feasible[row]
        ]
        answer = self.user.pre_score(PluginPod(pod.pod, pod), seen)
        return PreFilterResult(status_of(answer, self.name, "preScore"), data=feasible)


class PerNodeScore(PerNode, points.ScorePlugin):
    """Only feasible rows are scored: `data` is their mask."""

    reads_feasible = True
    is_checked = True
    _scored_for: PodInfo | None = None

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        scores: I64 = np.zeros(nodes.size, dtype=np.int64)
        ask, seen, cluster = self.user.score, PluginPod(pod.pod, pod), self.cluster
        self._scored_for = pod
        for at, (row, raw) in enumerate(nodes.nodes()):
            if raw is None or not (data is None or data[row]):
                continue
            answer = ask(seen, PluginNode(cluster, row, raw))
            if isinstance(answer, bool) or not isinstance(answer, (int, np.integer)):
                raise nonsense(self.name, "score", answer, "an integer")
            if not -(2**63) <= answer < 2**63:
                raise nonsense(self.name, "score", answer, "a 64-bit integer")
            scores[at] = answer
        return scores


class PerNodeNormalizedScore(PerNodeScore):
    normalizes = True

    def normalize(self, raw: I64, data: Any) -> I64:
        pod = self._scored_for
        assert pod is not None, "raw scores come first"
        node_at = self.cluster.nodes.node_at
        rows = np.flatnonzero(data).tolist()
        names = [node.name for row in rows if (node := node_at[row]) is not None]
        scores = dict(zip(names, raw.tolist(), strict=True))
        answer = self.user.normalize_scores(PluginPod(pod.pod, pod), scores)
        final = scores if answer is None else answer
        if not isinstance(final, Mapping):
            raise nonsense(self.name, "score", final, "a mapping of node names to scores")
        values = [final.get(name) for name in names]
        for value in values:
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise nonsense(self.name, "score", value, "an integer for every node")
        return np.array(values, dtype=np.int64)


class PerNodeReserve(PerNode, points.ReservePlugin):
    def reserve(self, pod: PodInfo, node: str, data: Any) -> Status:  # noqa: ARG002
        if not hasattr(self.user, "reserve"):
            return SUCCESS
        where = self.node(node)
        answer = False if where is None else self.user.reserve(PluginPod(pod.pod, pod), where)
        return status_of(answer, self.name, "reserve")

    def unreserve(self, pod: PodInfo, node: str) -> None:
        if hasattr(self.user, "unreserve"):
            self.user.unreserve(PluginPod(pod.pod, pod), self.node_or_rest(node))


class PerNodePermit(PerNode, points.PermitPlugin):
    """An `async` permit lets the pod wait, at most for `permit_timeout_s` of the class."""

    def permit(self, pod: PodInfo, node: str) -> tuple[Status, float]:
        if inspect.iscoroutinefunction(self.user.permit):
            return Status(Code.WAIT), self.patience_s("permit")
        where = self.node(node)
        answer = False if where is None else self.user.permit(PluginPod(pod.pod, pod), where)
        return status_of(answer, self.name, "permit"), 0.0

    def permit_late(self, pod: PodInfo, node: str) -> Late | None:
        if not inspect.iscoroutinefunction(self.user.permit):
            return None
        return self._permit_late(pod, node)

    def _permit_late(self, pod: PodInfo, node: str) -> Late:
        answer = yield from self.late("permit", pod, node)
        return status_of(answer, self.name, "permit")


class PerNodePreBind(PerNode, points.PreBindPlugin):
    def pre_bind_pre_flight(self, pod: PodInfo, node: str) -> Status:  # noqa: ARG002
        return SUCCESS

    def pre_bind(self, pod: PodInfo, node: str) -> Late:
        answer = yield from self.late("pre_bind", pod, node)
        return status_of(answer, self.name, "preBind")


class PerNodeBind(PerNode, points.BindPlugin):
    def bind(self, pod: PodInfo, node: str) -> Late:
        answer = yield from self.late("bind", pod, node)
        return status_of(answer, self.name, "bind")


class PerNodePostBind(PerNode, points.PostBindPlugin):
    def post_bind(self, pod: PodInfo, node: str) -> Late:
        yield from self.late("post_bind", pod, node, cleans_up=True)
        return SUCCESS


#: Method of a plain class -> (the adapter of its point, the number of its arguments).
METHODS: Final[Mapping[str, tuple[type[PerNode] | None, int]]] = {
    "queue_sort": (PerNodeSort, 2),
    "pre_enqueue": (PerNodePreEnqueue, 1),
    "pre_filter": (PerNodePreFilter, 1),
    "filter": (PerNodeFilter, 2),
    "post_filter": (PerNodePostFilter, 2),
    "pre_score": (PerNodePreScore, 2),
    "score": (PerNodeScore, 2),
    "normalize_scores": (None, 2),
    "reserve": (PerNodeReserve, 2),
    "unreserve": (PerNodeReserve, 2),
    "permit": (PerNodePermit, 2),
    "pre_bind": (PerNodePreBind, 2),
    "bind": (PerNodeBind, 2),
    "post_bind": (PerNodePostBind, 2),
}
#: Methods that may be coroutine functions -> the point at which each is called.
LATE: Final[Mapping[str, str]] = {
    "permit": "permit",
    "pre_bind": "preBind",
    "bind": "bind",
    "post_bind": "postBind",
}


class UnusablePluginError(ValueError):
    """A class that cannot be a plugin; one line with the reason."""


def methods_of(cls: type[Any]) -> list[str]:
    """The methods of a plain class that are extension points."""
    return [name for name in METHODS if callable(getattr(cls, name, None))]


def adapt(cls: type[Any], name: str) -> type[PerNode]:
    """The plugin class for a plain class. Raises UnusablePluginError."""
    found = methods_of(cls)
    if not found:
        wanted = ", ".join(METHODS)
        raise UnusablePluginError(f"{cls.__name__} has none of the methods {wanted}")
    for needed, by in (("score", "pre_score"), ("score", "normalize_scores")):
        if by in found and needed not in found:
            raise UnusablePluginError(f"{cls.__name__} has a {by} but no {needed}")
    for method in found:
        _check_method(cls, method, getattr(cls, method))
    bases = list(dict.fromkeys(base for m in found if (base := METHODS[m][0]) is not None))
    if "normalize_scores" in found:
        bases = [PerNodeNormalizedScore if base is PerNodeScore else base for base in bases]
    depends_on = getattr(cls, "depends_on", None)
    if depends_on is not None and "pre_filter" in found:
        raise UnusablePluginError(
            f"{cls.__name__} declares depends_on and has a pre_filter; remove one:"
            " pre_filter prepares every attempt, depends_on caches results across attempts"
        )
    own = {
        "name": name,
        "__doc__": cls.__doc__,
        "depends_on": depends_on,
        "checks_remaining": depends_on is None,
        "scope": scope_of(cls),
    }
    return type(f"PerNode{cls.__name__}", tuple(bases), own)


def scope_of(cls: type[Any]) -> points.Scope:
    """What the class declares, as a Scope or its value. Raises UnusablePluginError."""
    written = getattr(cls, "scope", points.Scope.CLUSTER)
    try:
        return points.Scope(written)
    except ValueError as error:
        wanted = ", ".join(scope.value for scope in points.Scope)
        raise UnusablePluginError(f"{cls.__name__}.scope must be one of {wanted}") from error


def _check_method(cls: type[Any], name: str, method: Callable[..., Any]) -> None:
    is_async = inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
    if is_async and name not in LATE:
        raise UnusablePluginError(
            f"{cls.__name__}.{name} is async, but only {', '.join(sorted(LATE))} may be"
        )
    count = METHODS[name][1]
    try:
        inspect.signature(method).bind(None, *range(count))
    except TypeError as error:
        given = ", ".join(inspect.signature(method).parameters)
        raise UnusablePluginError(
            f"{cls.__name__}.{name}({given}) must take self and {count} argument(s)"
        ) from error
