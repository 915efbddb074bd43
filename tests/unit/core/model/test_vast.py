"""A pod is vast by all that its spec and labels hold, wherever it is."""

from collections.abc import Iterator, Sequence
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from asched.core.model.pod import Pod, PodSpec
from asched.core.model.vast import VAST_BYTES, is_vast
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

    assert not is_vast(shown(VAST_BYTES // 100))
    assert is_vast(shown(VAST_BYTES))


def tolerating(bytes_more: int) -> Pod:
    """A pod that takes so many bytes more than one with such a key of no letters at all."""
    return a_pod("tolerant").spec(tolerations=[{"key": "", "value": "v" * bytes_more}]).build()


def size(pod: Pod) -> int:
    return len(msgspec.msgpack.encode((pod.metadata.labels, pod.spec)))


def test_so_many_bytes_are_not_vast_and_one_more_is() -> None:
    some = VAST_BYTES // 2  # such a text has a head of the same length
    most = some + VAST_BYTES - size(tolerating(some))
    assert size(tolerating(most)) == VAST_BYTES
    assert not is_vast(tolerating(most))
    assert is_vast(tolerating(most + 1))
    assert not is_vast(tolerating(most)), "each time anew"
