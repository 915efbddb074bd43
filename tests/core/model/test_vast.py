"""A pod is vast by the entries of all its lists and maps, wherever they are."""

from collections.abc import Iterator, Sequence
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from asched.core.model.pod import Pod, PodSpec
from asched.core.model.vast import ENTRIES_MAX, is_vast
from tests.builders import a_pod


def collections(record: type, seen: tuple[type, ...] = ()) -> Iterator[tuple[Sequence[str], Any]]:
    """Path and type of every tuple and map below a record."""
    names = {field.name: field.encode_name for field in msgspec.structs.fields(record)}
    for name, declared in get_type_hints(record).items():
        hint = declared
        if get_origin(declared) in (Union, UnionType):
            hint = next(one for one in get_args(declared) if one is not NoneType)
        origin, path, below = get_origin(hint), [names[name]], hint
        if origin in (tuple, dict):
            yield path, hint
            below = get_args(hint)[0] if origin is tuple else str
            path = [*path, "0"]
        if isinstance(below, type) and issubclass(below, msgspec.Struct) and below not in seen:
            yield from (((*path, *rest), h) for rest, h in collections(below, (*seen, below)))


def filled(path: Sequence[str], hint: Any, count: int) -> dict[str, Any]:
    """A document with so many entries at the path."""
    if get_origin(hint) is dict:
        value: Any = {f"k{i}": "1" for i in range(count)}
    else:
        of = get_args(hint)[0]
        is_record = isinstance(of, type) and issubclass(of, msgspec.Struct)
        value = [{} if is_record else 1 if of is int else "v"] * count
    for step in reversed(path):
        value = [value] if step == "0" else {step: value}
    return value


ALL = {".".join(path): (list(path), hint) for path, hint in collections(PodSpec)}


@pytest.mark.parametrize("where", ALL)
def test_every_list_and_map_of_the_spec_counts(where: str) -> None:
    def shown(count: int) -> Pod:
        written = msgspec.json.encode({"metadata": {}, "spec": filled(*ALL[where], count)})
        return msgspec.json.decode(written, type=Pod)

    assert not is_vast(shown(ENTRIES_MAX // 2))
    assert is_vast(shown(ENTRIES_MAX + 1))


@pytest.mark.parametrize(("more", "expected"), [(0, False), (1, True)])
def test_as_many_entries_as_allowed_are_not_vast(more: int, *, expected: bool) -> None:
    tolerations = [{"key": f"t{i}"} for i in range(ENTRIES_MAX + more)]
    written = msgspec.json.encode({"metadata": {}, "spec": {"tolerations": tolerations}})
    assert is_vast(msgspec.json.decode(written, type=Pod)) is expected


def test_labels_count_and_entries_add_up() -> None:
    labels = {f"l{i}": "v" for i in range(ENTRIES_MAX // 2 + 1)}
    tolerations = [{"key": f"t{i}"} for i in range(ENTRIES_MAX // 2)]
    assert not is_vast(a_pod("labelled").labels(**labels).build())
    assert is_vast(a_pod("both").labels(**labels).spec(tolerations=tolerations).build())
