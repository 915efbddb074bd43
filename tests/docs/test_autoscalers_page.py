"""The page on autoscalers, and whether new nodes help pods rejected by rules of asched's own."""

from asched.core.config.default_plugins import default_multi_point
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.new_nodes import RULES
from asched.core.plugins import IN_TREE_POINTS
from asched.host.user_plugins.catalogue import discover
from tests.support import ROOT

PAGE = (ROOT / "docs/autoscalers.md").read_text(encoding="utf-8")


def test_every_plugin_that_may_reject_a_pod_has_its_line() -> None:
    points = {**IN_TREE_POINTS, **discover((), ()).known}
    upstream = {entry.name for entry in default_multi_point(DEFAULT_GATES)}
    rejecting = {name for name, at in points.items() if at & {"preFilter", "filter"}} - upstream
    undecided = rejecting - {rule.plugin for rule in RULES}
    assert not undecided, f"{undecided} have no line in RULES of asched/core/config/new_nodes.py"


def test_every_rule_that_no_new_node_satisfies_is_on_the_page() -> None:
    assert all(f"`{rule.plugin}`" in PAGE for rule in RULES if rule.plugin and not rule.node_helps)
