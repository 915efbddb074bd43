"""What is replaced, what is kept, and that rules still see what they saw."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from asched.core.model.kinds import BY_RESOURCE, Kind
from asched_lab.replay.pseudonyms import EMPTIED, KEPT_TREES, Pseudonyms
from tests.builders import a_node, a_pod
from tests.ops.recording.filled import filled

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


def test_names_sort_as_before() -> None:
    """Where all else is equal, names decide."""
    originals = [f"n{number}" for number in (1, 2, 10, 21, 3)] + ["a-b", "a.c", "a", "B", "ä"]

    names, _ = under(*(a_node(name).build() for name in originals))

    by_pseudonym = sorted(originals, key=names.of)
    assert by_pseudonym == sorted(originals)
    assert len({names.of(name) for name in originals}) == len(originals)


def test_namespaces_sort_as_in_front_of_names() -> None:
    """`a-b/x` is before `a/x`, although `a` is before `a-b`."""
    pods = [a_pod("x", namespace).build() for namespace in ("a", "a-b", "a.b", "ab")]

    names, _ = under(*pods)

    def pseudonym(key: str) -> str:
        return "/".join(names.of(part) for part in key.split("/"))

    keys = [f"{pod.metadata.namespace}/x" for pod in pods]
    assert sorted(keys, key=pseudonym) == sorted(keys)


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


def test_well_known_keys_and_taints_stay() -> None:
    node = a_node("n1").taints(
        "node.kubernetes.io/not-ready:NoExecute dedicated=payroll:NoSchedule"
    )
    pod = a_pod("web").tolerates("dedicated=payroll:NoSchedule")

    _, (seen, placed) = under(node.build(), pod.build())

    known, own = seen["spec"]["taints"]
    (toleration,) = placed["spec"]["tolerations"]
    assert known["key"] == "node.kubernetes.io/not-ready"
    assert own["effect"] == toleration["effect"] == "NoSchedule"
    assert (own["key"], own["value"]) == (toleration["key"], toleration["value"])
    assert "dedicated" not in own["key"]
    assert "payroll" not in own["value"]


def test_an_image_without_a_tag_is_still_the_latest() -> None:
    """ImageLocality looks for `app:latest` where a pod says `app`."""
    node = a_node("n1").image("app:latest", mib=100)
    plain, tagged, other = (a_pod(name).image(name) for name in ("app", "app:latest", "app:v2"))

    _, (seen, *pods) = under(*(one.build() for one in (node, plain, tagged, other)))

    there = seen["status"]["images"][0]["names"][0]
    first, second, third = (pod["spec"]["containers"][0]["image"] for pod in pods)
    assert first == second == there
    assert third != there
    assert "app" not in there


def test_claims_of_ephemeral_volumes_are_still_called_after_their_pod() -> None:
    pod = a_pod("web").spec(volumes=[{"name": "scratch", "ephemeral": {}}])
    claim = {"metadata": {"name": "web-scratch", "namespace": "default"}}

    _, (seen, found) = under(pod.build(), claim)

    volume = seen["spec"]["volumes"][0]["name"]
    assert found["metadata"]["name"] == f"{seen['metadata']['name']}-{volume}"
    assert "web" not in found["metadata"]["name"]


def test_a_volume_in_two_zones_stays_in_both() -> None:
    key = "topology.kubernetes.io/zone"
    nodes = [a_node(zone).labels({key: zone}).build() for zone in ("z1", "z2")]
    volume = {"metadata": {"name": "v", "labels": {key: "z1__z2"}}}

    _, (first, second, found) = under(*nodes, volume)

    zones = [node["metadata"]["labels"][key] for node in (first, second)]
    assert found["metadata"]["labels"][key] == "__".join(zones)


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


def test_an_extenders_answer_may_name_nodes_in_keys() -> None:
    names, _ = under(a_node("n1").build())
    answer = {"NodeNames": ["n1"], "FailedNodes": {"n1": "no GPU of ours"}, "Error": ""}
    names.note_reply(answer)
    names.settle()

    found = names.replied(answer)

    assert found["NodeNames"] == [names.of("n1")] == list(found["FailedNodes"])
    assert found["Error"] == ""
    assert "GPU" not in json.dumps(found)


def test_a_pseudonym_is_nobodys_name() -> None:
    names, _ = under(*(a_node(name).build() for name in ("x0", "x1", "y2", "n1")))

    pseudonyms = {names.of(name) for name in ("x0", "x1", "y2", "n1")}

    assert len(pseudonyms) == 4
    assert not pseudonyms & {"x0", "x1", "y2", "n1"}


def test_nobodys_name_is_told_as_such() -> None:
    names, _ = under(a_node("n1").build())

    assert names.of("somebody new") == "unknown"
