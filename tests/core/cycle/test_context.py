"""What the cycles share: whether a pod is worth it, whose fault an exception is, references."""

from typing import Any

import pytest

from asched.core.cycle.history import DecisionStep, Histories, NodeChoice
from asched.core.framework.points import FilterPlugin
from asched.core.framework.status import PluginError, PointError
from asched.core.model.kinds import POD
from asched.core.state.facts import Gone, Seen
from tests.builders import PodBuilder, a_node, a_pod
from tests.core.cycle.contexts import a_context
from tests.core.cycle.playbook import Play

NEWER = a_pod("web").metadata(resourceVersion="6")
ENDING = a_pod("web").metadata(resourceVersion="6", deletionTimestamp="2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("seen", "node", "why"),
    [
        (NEWER, "", ""),
        (a_pod("web").metadata(uid="anew"), "", 'pods "web" not found'),
        (None, "", 'pods "web" not found'),
        (ENDING, "n1", "skip schedule deleting pod: default/web"),
        (a_pod("web").on("n2"), "", 'pod web is already assigned to node "n2"'),
        (a_pod("web").on("n2"), "n1", 'pod web is already assigned to node "n2"'),
        (a_pod("web").on("n1"), "n1", ""),  # ours, or as good as ours
    ],
)
def test_what_was_seen_last_tells_whether_a_pod_is_to_be_placed(
    seen: PodBuilder | None, node: str, why: str
) -> None:
    context, attempt = a_context()
    pod = attempt.pod
    context.cluster.apply(Gone(POD, pod) if seen is None else Seen(POD, seen.build()))
    assert context.why_pointless(attempt, node) == why


class Clumsy(FilterPlugin):
    name = "Clumsy"

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        raise ZeroDivisionError("oops")


def raised_by(call: Any, *args: Any) -> Exception:
    with pytest.raises(Exception) as caught:
        call(*args)
    return caught.value


class Ear:
    """Hears which plugins raised."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, str]] = []

    def plugin_raised(self, plugin: str, point: str, error: Exception) -> None:
        self.heard.append((plugin, point, str(error)))


def test_what_a_plugin_raised_is_reported_and_told_in_one_line() -> None:
    context, _ = a_context()
    ear: Any = Ear()
    context.observer = ear
    said = context.contain(raised_by(Clumsy().filter, None, None, None), "schedule")
    assert said == 'plugin "Clumsy" raised ZeroDivisionError: oops'
    assert context.contain(PluginError("what it answered", "Odd", "score"), "schedule") == (
        "what it answered"
    )
    assert context.contain(PointError("a point failed"), "schedule") == "a point failed"
    assert ear.heard == [("Clumsy", "filter", "oops"), ("Odd", "score", "what it answered")]


def test_a_story_is_told_under_the_attempt_s_number() -> None:
    context, attempt = a_context()
    context.now_s = 12.0
    context.tell(attempt, DecisionStep.ERROR, "no")
    assert context.histories.of("default/web") == ((12.0, 3, DecisionStep.ERROR, "no"),)


def test_a_binding_is_told_of_though_the_line_of_its_node_made_way_meanwhile() -> None:
    context, attempt = a_context()
    context.histories = histories = Histories(lines_max=1)
    attempt.line = chosen = NodeChoice("default/web", 1.0, 3, 0, "n1", None)
    histories.add(chosen)
    context.now_s = 12.0
    context.tell_bound(attempt, "n1")
    assert [line.step for line in histories.of("default/web")] == [
        DecisionStep.NODE,
        DecisionStep.BOUND,
    ]
    histories.tell("default/other", 13.0, 4, DecisionStep.ERROR)
    assert histories.of("default/web") == ()
    context.tell_bound(attempt, "n1")
    assert histories.of("default/web") == ((12.0, 3, DecisionStep.BOUND, "n1"),)


def test_whose_a_pod_is_follows_the_profiles() -> None:
    context, _ = a_context()
    assert context.owns(a_pod("web").spec(schedulerName="default-scheduler").build())
    context.runners = {}
    assert not context.owns(a_pod("web").spec(schedulerName="default-scheduler").build())
    assert not context.awaits_pods


def test_arrivals_matter_once_a_plugin_waits_for_them() -> None:
    assert not a_context()[0].awaits_pods
    gates = {"GenericWorkload": True, "GangScheduling": True}
    assert Play(a_node("n1"), gates=gates).machine.context.awaits_pods
