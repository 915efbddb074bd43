"""Taints as kubectl writes them."""

from asched.core.model.taint import Taint
from asched.insight.explain.words import spelt


def test_a_value_is_written_where_there_is_one() -> None:
    assert spelt(Taint("team", "a", "NoSchedule")) == "team=a:NoSchedule"
    assert spelt(Taint("spot", "", "NoExecute")) == "spot:NoExecute"
