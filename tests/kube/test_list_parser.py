"""A list read in pieces is the list read whole, however it is cut and spelled."""

import json
import random

import pytest

from asched.core.model.kinds import NODE, POD
from asched.kube import list_parser
from asched.kube.codec import KindCodec
from asched.kube.errors import ProtocolBroken
from asched.kube.list_parser import ListParser
from asched.kube.originals import Originals

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
    monkeypatch.setattr(list_parser, "PART_BYTES", 300)


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


@pytest.mark.parametrize("seed", range(10))
def test_a_seam_within_an_object_is_none(seed):
    """Objects in an inner array look like those of the list; the rest is kept until the end."""
    rng = random.Random(seed)
    items = []
    for i in range(30):
        made = pod(i)
        made["spec"]["volumes"] = [{"metadata": {"name": f"v{k}"}, "name": "x"} for k in range(9)]
        items.append(made)
    body = text_of(items)
    found, version, _ = parsed(body, rng)
    assert (found, version) == (KindCodec(POD, lambda *_: None).page(body).objects, "7")


def test_a_list_in_another_spelling_is_kept_whole():
    rng = random.Random(1)
    items = [pod(i) for i in range(40)]
    body = json.dumps({"metadata": {"resourceVersion": "3"}, "items": items}, indent=1).encode()
    found, version, early = parsed(body, rng)
    assert (len(found), version, early) == (40, "3", 0)


def test_objects_that_are_malformed_are_named_and_left_out():
    told = []
    codec = KindCodec(POD, lambda _kind, name, _why: told.append(name))
    items = [pod(i) for i in range(40)]
    items[11]["spec"] = {"containers": "none"}
    found, _, early = parsed(text_of(items), random.Random(2), codec=codec)
    assert [one.metadata.name for one in found] == [f"p{i}" for i in range(40) if i != 11]
    assert told == ["t/p11"]
    assert early


def test_whole_objects_are_kept_for_those_who_want_them():
    originals = Originals([NODE])
    codec = KindCodec(NODE, lambda *_: None, originals)
    items = [{"metadata": {"name": f"n{i}", "uid": f"u{i}"}, "extra": i} for i in range(40)]
    found, _, early = parsed(text_of(items), random.Random(3), codec=codec)
    assert len(found) == 40
    assert early
    assert all(f"n{i}" in originals._kept[NODE.resource] for i in range(40))


def fed(body, size=20, **parser):
    """Byte by byte, as it were: a parser, and what it gave early."""
    one, early = ListParser(KindCodec(POD, lambda *_: None)), []
    for name, value in parser.items():
        setattr(one, name, value)
    kept = 0
    for start in range(0, len(body), size):
        early += one.feed(body[start : start + size])
        kept = max(kept, len(one._kept))
    return one, early, kept


def test_one_object_that_is_larger_than_a_part_is_kept_until_it_ends():
    items = [pod(0), pod(1, annotations={"a": "x" * 2000}), pod(2), *map(pod, range(3, 20))]
    parser, early, _ = fed(text_of(items))
    assert [one.metadata.name for one in (*early, *parser.end().objects)] == [
        f"p{i}" for i in range(20)
    ]
    assert len(early) > 10


def test_a_head_that_is_larger_than_a_part_is_kept_until_it_ends():
    parser, early, _ = fed(text_of([pod(i) for i in range(20)], version="7" * 1000))
    assert len(early) > 10
    assert len(early) + len(parser.end().objects) == 20


def test_no_more_than_a_part_and_an_object_is_kept():
    body = text_of([pod(i) for i in range(100)])
    _, early, kept = fed(body)
    assert len(early) > 90
    assert kept < 300 + 2 * len(json.dumps(pod(0))) + len(text_of([]))


@pytest.mark.parametrize("spelled", ["as a server does", "otherwise", "with snares"])
def test_how_often_it_is_looked_for_a_place_to_cut_grows_with_the_parts_of_the_list(
    spelled, monkeypatch
):
    """Not with the pieces it comes in: to look costs as much as is kept, to decode as well."""
    looks, decoded = [], []

    class Kept(bytearray):
        def find(self, what):
            looks.append(what)
            return super().find(what)

        def rfind(self, what):
            looks.append(what)
            return super().rfind(what)

    def array(self, text):
        decoded.append(len(text))
        return decode(self, text)

    decode = KindCodec.array
    monkeypatch.setattr(KindCodec, "array", array)
    items = [pod(i) for i in range(60)]
    for one in items if spelled == "with snares" else ():
        one["spec"]["volumes"] = [{"metadata": {"name": f"v{k}"}} for k in range(9)]
    body = text_of(items)
    if spelled == "otherwise":
        body = json.dumps({"metadata": {"resourceVersion": "7"}, "items": items}).encode()
    parser, _, _ = fed(body, _kept=Kept())
    assert len(parser.end().objects) > 0
    assert len(looks) <= 2 * (len(body) / 300 + 1)
    assert sum(decoded) <= 2 * len(body)


@pytest.mark.parametrize("cut", [100, 2000, -1])
def test_a_list_that_breaks_off_is_none(cut):
    parser = ListParser(KindCodec(POD, lambda *_: None))
    parser.feed(text_of([pod(i) for i in range(40)])[:cut])
    with pytest.raises(ProtocolBroken):
        parser.end()
