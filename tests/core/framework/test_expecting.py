"""For whom room is being made on which node, both ways round."""

from asched.core.framework.expecting import Expecting


def test_a_pod_is_expected_on_one_node() -> None:
    expecting = Expecting({"a": "n1", "b": "n1", "c": "n2"})
    assert set(expecting.keys_at("n1")) == {"a", "b"}
    assert len(expecting) == 3
    expecting.put("a", "n2")
    assert (set(expecting.keys_at("n1")), set(expecting.keys_at("n2"))) == ({"b"}, {"a", "c"})
    assert expecting.node_of == {"a": "n2", "b": "n1", "c": "n2"}
