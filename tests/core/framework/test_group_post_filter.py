"""Which plugin of a profile makes room for groups."""

from typing import Any

from asched.core.framework.group_post_filter import GroupPostFilterPlugin, group_post_filter
from asched.core.framework.points import Plugin


class Maker(GroupPostFilterPlugin):
    name = "Maker"

    def group_post_filter(self, trial: Any) -> Any: ...


class Other(Plugin):
    name = "Other"


def test_the_one_of_that_kind_is_found_wherever_it_stands() -> None:
    maker, second = Maker(), Maker()
    assert group_post_filter({"a": Other(), "b": maker, "c": second}) is maker
    assert group_post_filter({"a": Other()}) is None
    assert group_post_filter({}) is None
