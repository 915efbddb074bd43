"""Metadata: keys, and the managing owner."""

from asched.core.model.meta import ObjectMeta, OwnerReference


def test_a_key_has_a_namespace_where_there_is_one() -> None:
    assert ObjectMeta(name="web", namespace="team").key == "team/web"
    assert ObjectMeta(name="n1").key == "n1"


def test_the_controller_is_the_owner_that_manages() -> None:
    other, manager = OwnerReference(name="a"), OwnerReference(name="b", controller=True)
    denies = OwnerReference(name="c", controller=False)
    assert ObjectMeta(owner_references=(other, denies, manager)).controller is manager
    assert ObjectMeta(owner_references=(other, denies)).controller is None
    assert ObjectMeta().controller is None
