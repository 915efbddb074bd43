"""The tables of the plugins that asched brings, compared with their classes."""

from asched.ops.doctor.shipped_plugins import SHIPPED_POINTS, SHIPPED_RIGHTS
from tests.support import plugins_along


def test_the_tables_say_what_the_classes_declare() -> None:
    catalogue = plugins_along()
    assert dict(catalogue.known) == SHIPPED_POINTS
    rights = {name: catalogue.rights_of(name) for name in catalogue.known}
    assert {name: declared for name, declared in rights.items() if declared} == SHIPPED_RIGHTS
