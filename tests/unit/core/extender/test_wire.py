"""The protocol's JSON: keys in any case in, Go's names out, Go's words for what is wrong."""

from typing import Any

import pytest

from asched.core.extender import wire
from asched.core.extender.wire import WireError
from asched.core.framework.effects import Whole
from asched.core.framework.preemption_trial import Candidate
from asched.core.model.kinds import POD as PODS
from tests.builders import a_cluster, a_node, a_pod, pending

POD = {"metadata": {"name": "web"}}
NODE = {"metadata": {"name": "n1"}, "spec": {"any": "thing"}}


@pytest.mark.parametrize(
    "value",
    [
        {"NodeNames": ["n1"], "FailedNodes": {"n2": "no"}},
        {"nodenames": ["n1"], "failednodes": {"n2": "no"}, "comment": 1},
        {"nodeNames": ["n1"], "FAILEDNODES": {"n2": "no"}, "Nodes": None, "Error": None},
    ],
)
def test_keys_are_read_in_any_case(value: Any) -> None:
    result = wire.filter_result(value)
    assert result == wire.FilterResult(("n1",), None, {"n2": "no"}, {}, "")


@pytest.mark.parametrize("value", [None, {}])
def test_nothing_is_an_empty_result(value: Any) -> None:
    assert wire.filter_result(value) == wire.FilterResult(None, None, {}, {}, "")
    assert wire.priorities(None) == []
    assert wire.preemption_result(value) == {}
    assert wire.binding_error(value) == ""


def test_of_whole_nodes_the_name_counts() -> None:
    value = {"Nodes": {"metadata": {}, "items": [NODE, {"metadata": None}]}}
    assert wire.filter_result(value).nodes == ("n1", "")
    for empty in ({}, {"items": None}):
        assert wire.filter_result({"Nodes": empty}).nodes == ()


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([], "array into Go value of type v1.ExtenderFilterResult"),
        ("x", "string into Go value of type v1.ExtenderFilterResult"),
        ({"Error": 1}, "number into Go struct field ExtenderFilterResult.Error of type string"),
        (
            {"NodeNames": [True]},
            "bool into Go struct field ExtenderFilterResult.NodeNames of type string",
        ),
        (
            {"FailedNodes": []},
            "array into Go struct field ExtenderFilterResult.FailedNodes of type v1.FailedNodesMap",
        ),
        (
            {"Nodes": {"items": {}}},
            "object into Go struct field NodeList.Nodes.items of type []v1.Node",
        ),
    ],
)
def test_what_is_wrong_with_a_filter_result_is_said_as_go_says_it(value: Any, why: str) -> None:
    with pytest.raises(WireError) as raised:
        wire.filter_result(value)
    assert str(raised.value) == f"json: cannot unmarshal {why}"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({}, "object into Go value of type v1.HostPriorityList"),
        ([1], "number into Go value of type v1.HostPriority"),
        ([{"Host": 7, "Score": 1}], "number into Go struct field HostPriority.Host of type string"),
        (
            [{"Host": "n", "Score": 1.5}],
            "number 1.5 into Go struct field HostPriority.Score of type int64",
        ),
        (
            [{"Host": "n", "Score": True}],
            "bool into Go struct field HostPriority.Score of type int64",
        ),
        ([{"Score": 1.5}], "number 1.5 into Go struct field HostPriority.Score of type int64"),
        ([{"Score": "7"}], "string into Go struct field HostPriority.Score of type int64"),
        (
            [{"Score": 2**63}],
            f"number {2**63} into Go struct field HostPriority.Score of type int64",
        ),
    ],
)
def test_what_is_wrong_with_priorities_is_said_as_go_says_it(value: Any, why: str) -> None:
    with pytest.raises(WireError) as raised:
        wire.priorities(value)
    assert str(raised.value) == f"json: cannot unmarshal {why}"


def test_victims_are_read_from_the_meta_form_alone() -> None:
    value = {
        "NodeNameToMetaVictims": {"n1": {"pods": [{"uid": "u1"}, None], "numPDBViolations": 2}},
        "NodeNameToVictims": {"n2": {"Pods": []}},
    }
    assert wire.preemption_result(value) == {"n1": wire.MetaVictims(("u1", ""), 2)}


def test_questions_are_read_in_both_forms_and_answered_in_the_same() -> None:
    names = wire.read_arguments({"pod": POD, "nodenames": ["n1", "n2"], "nodes": None})
    assert (names.pod, names.nodes, names.node_names) == (POD, None, ("n1", "n2"))
    answer = wire.filter_answer(names, ["n2"], {"n1": "no"}, {})
    assert (answer["NodeNames"], answer["Nodes"], answer["FailedNodes"]) == (
        ["n2"],
        None,
        {"n1": "no"},
    )

    whole = wire.read_arguments({"Pod": POD, "Nodes": {"items": [NODE]}, "NodeNames": None})
    assert whole.node_names == ("n1",)
    answer = wire.filter_answer(whole, ["n1"], {}, {})
    assert (answer["NodeNames"], answer["Nodes"]["items"]) == (None, [NODE])


def test_victims_of_a_question_are_read_in_both_forms() -> None:
    meta = {"n1": {"Pods": [{"UID": "u1"}], "NumPDBViolations": 1}}
    found = wire.read_preemption_arguments({"Pod": POD, "NodeNameToMetaVictims": meta})
    whole = {"n1": {"Pods": [{"metadata": {"name": "v", "uid": "u1"}}], "NumPDBViolations": 1}}
    other = wire.read_preemption_arguments({"Pod": POD, "NodeNameToVictims": whole})
    none = wire.read_preemption_arguments({"NodeNameToVictims": {"n1": {"Pods": None}}})
    assert none.victims == {"n1": wire.MetaVictims((), 0)}
    assert found.victims == other.victims == {"n1": wire.MetaVictims(("u1",), 1)}
    assert wire.preemption_answer(found.victims) == {"NodeNameToMetaVictims": meta}


def test_a_binding_is_read_and_answered() -> None:
    question = {"PodName": "web", "PodNamespace": "default", "PodUID": "u", "Node": "n1"}
    assert wire.read_binding_arguments(question) == wire.BindingArguments(
        "web", "default", "u", "n1"
    )
    assert wire.binding_error(wire.binding_answer("no")) == "no"
    with pytest.raises(WireError, match=r"number into Go struct field ExtenderBindingArgs\.PodUID"):
        wire.read_binding_arguments({**question, "PodUID": 1})


@pytest.mark.parametrize("names_only", [True, False])
def test_victims_are_asked_about_in_the_form_that_is_known(names_only: bool) -> None:
    cluster = a_cluster(a_node("n1"))
    pod, victim = (pending(cluster, a_pod(name)) for name in ("web", "low"))
    candidates = {"n1": Candidate("n1", 0, (victim,), 2)}
    asked = wire.preemption_arguments(pod.pod, candidates, names_only=names_only)

    def shown(one: Any) -> Any:
        return (one.kind, one.key, one.uid) if isinstance(one, Whole) else one

    assert shown(asked["Pod"]) == (PODS, "default/web", "uid-web")
    known = "NodeNameToMetaVictims" if names_only else "NodeNameToVictims"
    assert asked.keys() == {"Pod", "NodeNameToMetaVictims", "NodeNameToVictims"}
    of_node = asked[known]["n1"]
    assert of_node["NumPDBViolations"] == 2
    assert [shown(one) for one in of_node["Pods"]] == [
        {"UID": "uid-low"} if names_only else (PODS, "default/low", "uid-low")
    ]
    (other,) = asked.keys() - {"Pod", known}
    assert asked[other] is None


@pytest.mark.parametrize("score", [2**63 - 1, -(2**63)])
def test_points_fill_64_bits(score: int) -> None:
    assert wire.priorities([{"Host": "n", "Score": score}]) == [("n", score)]
    with pytest.raises(WireError):
        wire.priorities([{"Host": "n", "Score": score + (1 if score > 0 else -1)}])


def test_of_keys_in_several_cases_the_last_one_counts() -> None:
    """As Go's decoder has it."""
    given = {"Host": "a", "Score": 1, "host": "b", "x": 2}
    assert wire.priorities([given, {"host": "c", "score": 3}]) == [
        ("b", 1),
        ("c", 3),
    ]


def test_names_count_where_both_are_asked_about_and_nothing_is_no_node() -> None:
    both = wire.read_arguments({"Pod": POD, "NodeNames": ["n2"], "Nodes": {"items": [NODE]}})
    assert (both.nodes, both.node_names) == (None, ("n2",))
    assert wire.read_arguments({"Pod": POD}) == wire.Arguments(POD, None, ())
    for empty in ({}, {"items": None}):
        assert wire.read_arguments({"Pod": POD, "Nodes": empty}) == wire.Arguments(POD, [], ())


def test_an_entry_without_victims_has_none() -> None:
    for given in (None, {}, {"Pods": None}):
        found = wire.preemption_result({"NodeNameToMetaVictims": {"n1": given}})
        assert found == {"n1": wire.MetaVictims((), 0)}
