"""A pod on its way to a node: binding flows with scripted plugins and answers."""

from typing import Any, ClassVar

from asched.core.cycle.history import DecisionStep
from asched.core.framework.effects import (
    CallPlugin,
    EmitEvent,
    WaitFor,
)
from asched.core.framework.points import BindPlugin, PermitPlugin, PreBindPlugin, ReservePlugin
from asched.core.framework.status import SKIP, SUCCESS, Status, failure
from tests.builders import a_node, a_pod
from tests.playbook import Play
from tests.unit.core.cycle.recording import Recorder


class Flow(PreBindPlugin, PermitPlugin, ReservePlugin, BindPlugin):
    """Says at each point what `says` has for it; notes where it was asked."""

    says: ClassVar[dict[str, Any]] = {}
    asked: ClassVar[list[str]] = []

    def _said(self, point: str, default: Any) -> Any:
        self.asked.append(f"{self.name}.{point}")
        found = self.says.get(point, default)
        return found() if callable(found) else found

    def reserve(self, pod: Any, node: Any, data: Any) -> Status:
        return self._said("reserve", SUCCESS)

    def unreserve(self, pod: Any, node: Any) -> Any:
        return self._said("unreserve", None)

    def permit(self, pod: Any, node: Any) -> Any:
        return self._said("permit", (SUCCESS, 0.0))

    def permit_late(self, pod: Any, node: Any) -> Any:
        return self._said("permit_late", None)

    def pre_bind_pre_flight(self, pod: Any, node: Any) -> Status:
        return self._said("pre_flight", SKIP)

    def pre_bind(self, pod: Any, node: Any) -> Any:
        said = self._said("pre_bind", SUCCESS)
        if isinstance(said, WaitFor):
            yield said
        return said if isinstance(said, Status) else SUCCESS

    def bind(self, pod: Any, node: Any) -> Any:
        said = self._said("bind", SKIP)
        if isinstance(said, CallPlugin):
            yield said
            return failure("it did not end in time")
        return said


def flow(name: str = "Flow", **says: Any) -> type[Flow]:
    """A plugin of this name; what all of one scene were asked stands in the scene."""
    return type(name, (Flow,), {"name": name, "says": says})


class Scene:
    def __init__(self, *flows: type[Flow], binders: list[str] | None = None, **says: Any) -> None:
        flows = flows or (flow(**says),)
        self.asked: list[str] = []
        for one in flows:
            one.asked = self.asked
        more = {}
        if binders is not None:
            enabled = [{"name": name} for name in binders]
            plugins = {
                "multiPoint": {"enabled": [{"name": one.name} for one in flows]},
                "bind": {"disabled": [{"name": "*"}], "enabled": enabled},
            }
            more["profiles"] = [{"schedulerName": "default-scheduler", "plugins": plugins}]
        self.play = Play(a_node("n1"), plugins=flows, **more)
        self.context = self.play.machine.context
        self.ear = Recorder()
        self.context.observer = self.ear
        self.play.now_s += 1.0
        self.pod = a_pod("web")
        self.play.see(self.pod)

    def steps(self) -> list[DecisionStep]:
        lines = self.context.histories.of("default/web")
        return [line.step for line in lines if line.step is not DecisionStep.NODE]

    def said(self) -> str:
        """What the event of the failure says."""
        (event,) = self.play.of(EmitEvent)
        return event.note

    @property
    def place(self) -> str:
        return self.play.node_of("uid-web")
