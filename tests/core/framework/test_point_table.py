"""The extension points as a table: what stands where by its base, and what every method is."""

from typing import Any

from asched.core.framework.point_table import POINT_OF_METHOD, POINTS, points_of
from asched.core.framework.points import FilterPlugin, PermitPlugin, PreFilterPlugin, ReservePlugin


class Both(PreFilterPlugin, FilterPlugin):
    listed_at = frozenset({"score"})

    def pre_filter(self, pod: Any) -> Any: ...

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any: ...


def test_a_plugin_stands_where_its_bases_do_and_where_it_lists_itself() -> None:
    assert points_of(Both) == {"preFilter", "filter", "score"}
    assert points_of(PermitPlugin) == {"permit"}


def test_every_abstract_method_of_a_base_belongs_to_its_point() -> None:
    """A base that gets a method without a line in the table is seen here."""
    for point, base in POINTS.items():
        for method in base.__abstractmethods__:
            assert POINT_OF_METHOD[method] == point, (base, method)
    assert "unreserve" in vars(ReservePlugin)
    assert set(POINT_OF_METHOD.values()) == set(POINTS)
