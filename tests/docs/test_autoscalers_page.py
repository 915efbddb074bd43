"""The page on autoscalers names every rule that kube-scheduler does not have."""

from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.merge import default_multi_point
from asched.core.config.new_nodes import RULES
from asched.core.plugins import IN_TREE_POINTS
from asched.host.user_plugins.catalogue import discover
from tests.support import ROOT

PAGE = (ROOT / "docs/autoscalers.md").read_text(encoding="utf-8")


def test_every_plugin_that_may_reject_a_pod_is_decided_and_on_the_page() -> None:
    points = {**IN_TREE_POINTS, **discover((), ()).known}
    upstream = {entry.name for entry in default_multi_point(DEFAULT_GATES)}
    rejecting = {name for name, at in points.items() if at & {"preFilter", "filter"}} - upstream
    decided = {rule.plugin for rule in RULES}
    assert rejecting <= decided
    assert all(f"`{name}`" in PAGE for name in decided if name)
