"""Rows of nodes by whose name an object was told."""

from typing import Any

from asched.core.model.kinds import NODE, PERSISTENT_VOLUME_CLAIM, RESOURCE_SLICE
from asched.core.state.change_log import LOG_ENTRIES_MAX
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Listed, Seen
from asched.hardware.told import ToldRows
from tests import volume_builders
from tests.builders import a_node
from tests.core.dra.worlds import a_slice


class World:
    def __init__(self) -> None:
        self.cluster = Cluster()
        for name in ("n1", "n2", "n3"):
            self.cluster.apply(Seen(NODE, a_node(name).build()))
        self.told = ToldRows(self.cluster, RESOURCE_SLICE)

    def rows(self, since: int) -> list[int] | None:
        self.told.follow()
        found = self.told.since(since)
        return None if found is None else [row for row, _ in found]

    def slice(self, name: str) -> Any:
        return a_slice(name=name, nodeName="n1")


def test_rows_are_logged_as_objects_are_told() -> None:
    world = World()
    for name in ("n2", "nowhere", "n3"):
        world.cluster.apply(Seen(RESOURCE_SLICE, world.slice(name)))
    world.cluster.apply(Seen(PERSISTENT_VOLUME_CLAIM, volume_builders.a_claim("n1")))

    row_of = world.cluster.nodes.row_of
    assert world.rows(0) == [row_of["n2"], row_of["n3"]]
    end = world.told.end
    assert world.rows(end) == []
    world.cluster.apply(Seen(RESOURCE_SLICE, world.slice("n1")))
    assert world.rows(end) == [row_of["n1"]]


def test_after_more_than_is_kept_all_rows_are_to_be_read_anew() -> None:
    world = World()
    end = world.told.end
    many = tuple(world.slice(f"s{at}") for at in range(LOG_ENTRIES_MAX + 2))
    world.cluster.apply(Listed(RESOURCE_SLICE, many))

    assert world.rows(end) is None
    assert world.rows(world.told.end) == []
