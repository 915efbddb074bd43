"""Whole objects beside the records: what is kept, what is dropped, and what is sent of them."""

import random
from typing import Any

import msgspec
import orjson
import pytest
from msgspec.structs import replace

from asched.core.cluster.facts import Gone, Listed, Seen
from asched.core.framework.effects import Whole, Wholes
from asched.core.model.kinds import NODE, POD
from asched.core.model.meta import ObjectMeta
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.kube.raw_objects import RawObjects
from tests.builders import a_pod


def a_node(name: str, uid: str = "u") -> Node:
    return Node(metadata=ObjectMeta(name=name, uid=uid))


def spliced(raw_objects: RawObjects, stand_in: Any) -> Any:
    return msgspec.json.decode(raw_objects.splice(stand_in))


def raw(obj: Any, **more: Any) -> dict[str, Any]:
    meta = obj.metadata
    return {"metadata": {"name": meta.name, "uid": meta.uid}, **more}


@pytest.mark.parametrize("is_line", [False, True])
def test_an_object_is_sent_as_it_came_but_for_what_nobody_passes_on_again_and_again(
    is_line: bool,
) -> None:
    raw_objects, node = RawObjects((NODE,)), a_node("n")
    whole = raw(node, spec={"kind": "of any", "apiVersion": 1})
    came = {"kind": "Node", "apiVersion": "v1", **whole}
    came["metadata"] = {**whole["metadata"], "managedFields": [{}]}
    line = {"type": "ADDED", "object": came}
    raw_objects.keep(NODE, node, orjson.dumps(line if is_line else came), is_line=is_line)
    for _ in range(2):
        assert spliced(raw_objects, Whole(NODE, "n", "u")) == whole
        assert spliced(raw_objects, Wholes(NODE, ("n", "other", "n"))) == [whole, whole]


@pytest.mark.parametrize("with_placed", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_newest_version_of_each_that_is_there_and_wanted_is_kept(
    seed: int, with_placed: bool
) -> None:
    """Against a plain dict."""
    rng, raw_objects = random.Random(seed), RawObjects((POD,), with_placed_pods=with_placed)
    there: dict[str, tuple[str, int]] = {}

    def a_pod_of(name: str) -> Pod:
        made = a_pod(name).on("n1") if rng.random() < 0.3 else a_pod(name)
        pod = made.build()
        return replace(pod, metadata=replace(pod.metadata, uid=rng.choice("xy")))

    for number in range(300):
        pod = a_pod_of(rng.choice("abcd"))
        key, uid = pod.key, pod.metadata.uid
        match rng.choice(("keep", "keep", "gone", "node", "seen", "list")):
            case "keep":
                raw_objects.keep(POD, pod, orjson.dumps({"number": number}))
                if pod.spec.node_name and not with_placed:
                    there.pop(key, None)
                else:
                    there[key] = uid, number
            case "gone":
                raw_objects.observe(Gone(POD, pod))
                if there.get(key, ("",))[0] == uid:
                    del there[key]
            case "node":
                node = a_node(rng.choice("abcd"))
                raw_objects.keep(NODE, node, b"{}")
                raw_objects.observe(Gone(NODE, node))
                raw_objects.observe(Listed(NODE, (node,)))
            case "seen":
                raw_objects.observe(Seen(POD, pod))
            case "list":
                listed = {name: a_pod_of(name) for name in rng.sample("abcd", 3)}
                raw_objects.observe(Listed(POD, tuple(listed.values())))
                there = {k: v for k, v in there.items() if k.rpartition("/")[2] in listed}
        assert raw_objects.count(POD) == len(there)
        assert raw_objects.count(NODE) == 0
        keys = [f"default/{name}" for name in "abcd"]
        sent = [one["number"] for one in spliced(raw_objects, Wholes(POD, tuple(keys)))]
        assert sent == [there[key][1] for key in keys if key in there]
        for known, (its_uid, its_number) in there.items():
            assert spliced(raw_objects, Whole(POD, known, its_uid)) == {"number": its_number}
