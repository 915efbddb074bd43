"""What is replaced, what is kept, and that rules still see what they saw."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from asched.core.model.kinds import BY_RESOURCE, Kind
from asched_lab.replay.pseudonyms import EMPTIED, KEPT_TREES, Pseudonyms
from tests.builders import a_node, a_pod
from tests.unit.ops.recording.filled import filled

#: Reads as a quantity where one is expected, and is found wherever it is left.
SECRET = "7777777"


def under(*objects: Any) -> tuple[Pseudonyms, list[Any]]:
    """The objects as JSON has them, under pseudonyms."""
    names = Pseudonyms()
    plain = [json.loads(msgspec.json.encode(obj)) for obj in objects]
    for obj in plain:
        names.note(obj)
    names.settle()
    return names, [names.walked(obj) for obj in plain]


def paths_of(value: Any, text: str, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for field, one in value.items():
            if text in field:
                yield (*path, "keys")
            yield from paths_of(one, text, (*path, field))
    elif isinstance(value, list):
        for one in value:
            yield from paths_of(one, text, path)
    elif isinstance(value, str) and text in value:
        yield path


@pytest.mark.parametrize("kind", BY_RESOURCE.values(), ids=lambda kind: kind.resource)
def test_only_what_is_listed_is_kept(kind: Kind) -> None:
    """Something in every field there is: a field that a later version adds is replaced, too."""
    names = Pseudonyms()
    obj = json.loads(msgspec.json.encode(filled(kind.record, text=SECRET)))
    names.note(obj)
    names.settle()

    left = set(paths_of(names.walked(obj), SECRET))

    amounts = {place.rpartition(".")[2] for place in KEPT_TREES}
    allowed = amounts | {"resourceVersion", "expression"}
    assert {path for path in left if not allowed & set(path)} == set()


def test_what_others_read_is_emptied() -> None:
    names = Pseudonyms()
    names.settle()

    assert names.walked({field: {"deep": "secret"} for field in EMPTIED}) == dict.fromkeys(EMPTIED)


def test_equal_names_stay_equal_and_others_stay_apart() -> None:
    node = a_node("n1").labels({"topology.kubernetes.io/zone": "z1", "team": "a"})
    pod = a_pod("web").labels(team="a").selects(team="a").on("n1")

    _, (seen, placed) = under(node.build(), pod.build())

    (team,) = placed["metadata"]["labels"]
    assert placed["spec"]["nodeName"] == seen["metadata"]["name"] != "n1"
    assert placed["spec"]["nodeSelector"] == {team: seen["metadata"]["labels"][team]}
    assert placed["metadata"]["labels"][team] == seen["metadata"]["labels"][team] != "a"
    assert seen["metadata"]["labels"]["topology.kubernetes.io/zone"] not in ("z1", "a")
    assert team != "team"


def test_numbers_that_are_compared_stay_numbers() -> None:
    node = a_node("n1").labels(cores="64", build="77")
    pod = a_pod("web").requires_nodes(
        {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["32"]}]}
    )

    _, (seen, placed) = under(node.build(), pod.build())

    terms = placed["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    (expression,) = terms[0]["matchExpressions"]
    assert expression["values"] == ["32"]
    assert seen["metadata"]["labels"][expression["key"]] == "64"
    assert expression["key"] != "cores"
    assert "77" not in seen["metadata"]["labels"].values()


def test_words_of_the_machine_are_learnt() -> None:
    """A condition that it wrote comes back with the pod, and is compared with the next one."""
    names, _ = under(a_pod("web").build())
    names.note_text("node web is not ready")
    names.settle()
    before = names.of("node web is not ready")

    names.learn(
        {"condition": {"message": "node web is not ready"}},
        {"condition": {"message": f"node {names.of('web')} is not ready"}},
    )

    assert "web" not in before
    assert names.of("node web is not ready") == f"node {names.of('web')} is not ready"


def test_of_a_refusal_one_thing_is_read() -> None:
    names, _ = under(a_node("n1").build())

    text = 'pod web is already assigned to node "n1"'

    assert names.message(text) == f'already assigned to node "{names.of("n1")}"'
    assert "web" not in names.message(text)
