"""What plugins declare about the pods that their rules concern."""

from typing import Any

import pytest

from asched.core.framework.per_node.adapter import UnusablePluginError, adapt
from asched.core.framework.points import Plugin, Scope
from asched.core.plugins import IN_TREE_POINTS, class_of
from asched.core.plugins.node_pools import REJECTING


def test_every_plugin_of_the_tree_that_can_reject_says_what_its_rule_concerns() -> None:
    rejecting = [cls for cls in map(class_of, IN_TREE_POINTS) if issubclass(cls, REJECTING)]
    for cls in rejecting:
        declared = next(base for base in cls.__mro__ if "scope" in vars(base))
        assert declared is not Plugin, f"{cls.name} declares no scope"
        is_wide, has_reach = cls.scope is Scope.CLUSTER, cls.reach is not Plugin.reach
        assert is_wide == has_reach, f"{cls.name}: {cls.scope}"


def test_a_plain_class_names_its_scope() -> None:
    class Plain:
        scope = "namespace"

        def filter(self, pod: Any, node: Any) -> bool:
            return True

    assert adapt(Plain, "Plain").scope is Scope.NAMESPACE
    Plain.scope = "zone"
    with pytest.raises(UnusablePluginError, match="must be one of node, namespace, pool, cluster"):
        adapt(Plain, "Plain")
