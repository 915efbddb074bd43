"""Which class stands for an extended resource."""

from asched.core.model.decode import decode
from asched.core.model.kinds import DEVICE_CLASS
from asched.core.plugins.resources.delegation import Delegation, names_of
from asched.core.state.facts import Gone, Seen
from tests.builders import a_cluster


def test_a_class_stands_for_its_own_name_and_for_the_one_it_gives() -> None:
    plain = decode(DEVICE_CLASS.record, {"metadata": {"name": "a"}})
    named = decode(
        DEVICE_CLASS.record, {"metadata": {"name": "a"}, "spec": {"extendedResourceName": "x/y"}}
    )

    assert names_of(plain) == {"deviceclass.resource.kubernetes.io/a"}
    assert names_of(named) == {"deviceclass.resource.kubernetes.io/a", "x/y"}


def test_the_table_follows_the_classes() -> None:
    cluster = a_cluster()
    delegation = Delegation(cluster)
    assert not delegation.classes
    device_class = decode(
        DEVICE_CLASS.record, {"metadata": {"name": "a"}, "spec": {"extendedResourceName": "x/y"}}
    )

    cluster.apply(Seen(DEVICE_CLASS, device_class))
    assert delegation.classes["x/y"] is device_class

    cluster.apply(Gone(DEVICE_CLASS, device_class))
    assert not delegation.classes
