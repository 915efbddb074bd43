"""Drives a machine by hand: facts in, effects out, time as a number."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from asched.batch.extensions import EXTENSIONS
from asched.core.cluster.facts import Answer, Bound, Fact, Gone, Seen
from asched.core.config.defaults import configuration
from asched.core.config.gates import DEFAULT_GATES
from asched.core.cycle.extension import Extension
from asched.core.cycle.machine import Machine
from asched.core.cycle.observer import Observer
from asched.core.framework.effects import Bind, Effect, EmitEvent, PatchPodStatus
from asched.core.framework.points import Plugin
from asched.core.framework.profile import points_of
from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from asched.core.plugins import IN_TREE_POINTS, in_tree
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.user_plugins.catalogue import Catalogue
from tests.builders import NodeBuilder, PodBuilder

E = TypeVar("E", bound=Effect)


def known_points(plugins: Mapping[str, type[Plugin]]) -> dict[str, frozenset[str]]:
    """The extension points of the in-tree plugins and of these, as the configuration needs them."""
    return {**IN_TREE_POINTS, **{name: points_of(cls) for name, cls in plugins.items()}}


class Strict(Observer):
    """Keeps what was contained: no test shall miss an exception of the scheduler's own."""

    def __init__(self) -> None:
        self.raised: list[BaseException] = []

    def contained(self, part: str, about: str, error: BaseException) -> None:
        self.raised.append(error)


class Play:
    """One scheduler named default-scheduler. `effects` are those of the last turn."""

    def __init__(
        self,
        *nodes: NodeBuilder,
        plugins: Iterable[type[Plugin]] = (),
        gates: Mapping[str, bool] | None = None,
        extensions: Iterable[type[Extension]] = EXTENSIONS,
        contained: int = 0,
        installed: Catalogue | None = None,
        **config: Any,
    ) -> None:
        """`contained`: so many exceptions may be contained before a turn raises one.

        `installed`: plugins that `profiles` may name beside the in-tree ones.
        """
        installed = installed or Catalogue()
        classes = {cls.name: cls for cls in plugins}
        enabled = [{"name": name} for name in classes]
        profile: dict[str, Any] = {"schedulerName": "default-scheduler"}
        if enabled:
            profile["plugins"] = {"multiPoint": {"enabled": enabled}}
        switched = {**DEFAULT_GATES, **(gates or {})}
        effective = configuration({"profiles": [profile], **config}, switched)
        self.parts = Parts.fresh()
        factories = {
            **installed.factories,
            **in_tree(switched),
            **{name: (lambda _a, _c, cls=cls: cls()) for name, cls in classes.items()},
        }
        runners = build_runners(
            effective,
            self.parts,
            factories=factories,
            known={**installed.known, **known_points(classes)},
        )
        self._strict, self._contained = Strict(), contained
        self.machine: Machine = build_machine(
            effective,
            self.parts,
            runners,
            counter_s=lambda: 0.0,
            observer=self._strict,
            extensions=extensions,
        )
        self.now_s = 1000.0
        self.effects: list[Effect] = []
        self.turn(*(Seen(NODE, node.build()) for node in nodes))

    def turn(self, *facts: Fact, after_s: float = 0.0) -> list[Effect]:
        """Hand in facts; what comes out is kept in `effects`."""
        self.now_s += after_s
        self.effects = self.machine.handle([ours(fact) for fact in facts], self.now_s)
        for error in self._strict.raised[self._contained :]:
            raise error
        return self.effects

    def see(self, pod: PodBuilder | Pod) -> list[Effect]:
        built = pod.build() if isinstance(pod, PodBuilder) else pod
        return self.turn(Seen(POD, built))

    def lose(self, pod: PodBuilder | Pod) -> list[Effect]:
        built = pod.build() if isinstance(pod, PodBuilder) else pod
        return self.turn(Gone(POD, built))

    def of(self, kind: type[E]) -> list[E]:
        """The effects of one kind that the last turn gave."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def the(self, kind: type[E]) -> E:
        found = self.of(kind)
        assert len(found) == 1, f"expected one {kind.__name__}, got {self.effects}"
        return found[0]

    def answer(self, answer: Answer, after_s: float = 0.0) -> list[Effect]:
        return self.turn(answer, after_s=after_s)

    def bound(self, bind: Bind) -> list[Effect]:
        return self.answer(Bound(bind.id))

    def notes(self) -> list[str]:
        return [f"{e.reason}: {e.note}" for e in self.of(EmitEvent)]

    def condition(self) -> Any:
        return self.the(PatchPodStatus).condition

    def node_of(self, uid: str) -> str:
        info = self.parts.cluster.placed.get(uid)
        return info.node_name if info is not None else ""


def ours(fact: Fact) -> Fact:
    """A pod that names no scheduler is meant for ours, as the API server would have it."""
    pod = fact.obj if isinstance(fact, (Seen, Gone)) else None
    if not isinstance(pod, Pod) or pod.spec.scheduler_name:
        return fact
    assert isinstance(fact, (Seen, Gone))
    spec = msgspec.structs.replace(pod.spec, scheduler_name="default-scheduler")
    return type(fact)(fact.kind, msgspec.structs.replace(pod, spec=spec))
