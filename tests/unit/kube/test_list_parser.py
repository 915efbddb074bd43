"""A list read in pieces is the list read whole, however it is cut and spelled."""

import json
import random

import pytest

from asched.core.model.kinds import POD
from asched.kube import lists
from asched.kube.codec import KindCodec
from asched.kube.errors import ProtocolBroken
from asched.kube.lists import ListParser

#: What lies between two objects, where it does not separate any: in strings and inner arrays.
SNARE = '"},{"metadata":{"name":"'


def pod(index, **more):
    return {
        "metadata": {"name": f"p{index}", "namespace": "t", "uid": f"u{index}", **more},
        "spec": {"nodeName": f"n{index}", "containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    }


def text_of(items, version="7", **order):
    head = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": version}}
    whole = {"items": items, **head} if order.get("items_first") else {**head, "items": items}
    return json.dumps(whole, separators=(",", ":")).encode()


def parsed(body, rng, kind=POD, codec=None, pieces=7):
    """All objects in the order in which they came, the version, and how many came before the
    end.
    """
    codec = codec or KindCodec(kind, lambda *_: None)
    parser, early = ListParser(codec), []
    cuts = sorted(rng.randrange(len(body) + 1) for _ in range(pieces))
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        early += parser.feed(body[start:end])
    page = parser.end()
    return [*early, *page.objects], page.version, len(early)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(lists, "PART_BYTES", 300)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("items_first", [False, True])
def test_any_cut_gives_the_same_list(seed, items_first):
    rng = random.Random(seed)
    snares = [{}, {"labels": {"a": SNARE}}, {"annotations": {SNARE: '"items":['}}]
    items = [pod(i, **rng.choice(snares)) for i in range(rng.choice((0, 1, 40)))]
    body = text_of(items, items_first=items_first)
    found, version, early = parsed(body, rng)
    expected = KindCodec(POD, lambda *_: None).page(body)
    assert (found, version) == (expected.objects, "7")
    assert early > 20 or len(items) < 40


def test_objects_that_are_malformed_are_named_and_left_out():
    told = []
    codec = KindCodec(POD, lambda _kind, name, _why: told.append(name))
    items = [pod(i) for i in range(40)]
    items[11]["spec"] = {"containers": "none"}
    found, _, early = parsed(text_of(items), random.Random(2), codec=codec)
    assert [one.metadata.name for one in found] == [f"p{i}" for i in range(40) if i != 11]
    assert told == ["t/p11"]
    assert early


@pytest.mark.parametrize("cut", [100, 2000, -1])
def test_a_list_that_breaks_off_is_none(cut):
    parser = ListParser(KindCodec(POD, lambda *_: None))
    parser.feed(text_of([pod(i) for i in range(40)])[:cut])
    with pytest.raises(ProtocolBroken):
        parser.end()
