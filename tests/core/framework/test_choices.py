"""What Reserve is told to choose, for whom and where."""

from asched.core.framework.choices import Choices
from tests.builders import a_cluster


def test_it_counts_on_the_node_that_was_meant_and_until_it_is_dropped() -> None:
    choices = a_cluster().singleton(Choices)
    choices.insist("uid", "n1", {"A": 2, "B": 0})
    assert [choices.number("uid", "n1", name) for name in "ABC"] == [2, 0, 0]
    assert choices.number("uid", "n2", "A") == 0
    assert choices.number("other", "n1", "A") == 0
    choices.drop("uid")
    assert choices.number("uid", "n1", "A") == 0
    choices.drop("uid")
