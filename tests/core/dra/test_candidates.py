"""Devices to choose from: found as far as somebody looks, and asked once each."""

from types import SimpleNamespace
from typing import Any

from asched.core.dra.candidates import Candidates


def devices(*names: str, consumes: bool = False) -> list[Any]:
    return [SimpleNamespace(name=name, consumes=consumes) for name in names]


class Selecting:
    def __init__(self, listed: list[Any], *chosen: str) -> None:
        self.asked: list[str] = []
        self.taken: list[str] = []
        self._chosen = chosen
        self.candidates = Candidates(self._iterate(listed), self._selects)

    def _iterate(self, listed: list[Any]) -> Any:
        for device in listed:
            self.taken.append(device.name)
            yield device

    def _selects(self, device: Any) -> bool:
        self.asked.append(device.name)
        return device.name in self._chosen

    def from_index(self, index: int) -> list[tuple[int, str]]:
        return [(at, device.name) for at, device in self.candidates.from_index(index)]


def test_nothing_is_found_before_somebody_looks() -> None:
    one = Selecting(devices("a", "b", "c"), "b")
    assert one.taken == []
    found = one.candidates.from_index(0)
    assert next(found)[1].name == "a"
    assert one.taken == ["a"]
    assert one.from_index(0) == [(0, "a"), (1, "b"), (2, "c")]
    assert one.from_index(2) == [(2, "c")]
    assert one.from_index(9) == []
    assert one.taken == ["a", "b", "c"]


def test_a_device_is_asked_about_once_and_left_out_once_it_is_out() -> None:
    one = Selecting(devices("a", "b"), "b")
    one.from_index(0)
    assert [one.candidates.is_selectable(at) for at in (0, 1, 0, 1)] == [False, True] * 2
    assert one.asked == ["a", "b"]
    assert one.from_index(0) == [(1, "b")]


def test_too_few_are_known_once_all_were_found_and_asked() -> None:
    one = Selecting(devices("a", "b"), "a", "b")
    assert not one.candidates.are_too_few(0, 3), "there may be more"
    one.from_index(0)
    assert not one.candidates.are_too_few(0, 3), "nobody was asked"
    for at in (0, 1):
        one.candidates.is_selectable(at)
    assert one.candidates.are_too_few(0, 3)
    assert not one.candidates.are_too_few(0, 2)
    assert one.candidates.are_too_few(1, 2)


def test_devices_that_leave_a_trace_are_never_known_to_be_too_few() -> None:
    one = Selecting([*devices("a", consumes=True), *devices("b")], "a", "b")
    one.from_index(0)
    for at in (0, 1):
        one.candidates.is_selectable(at)
    assert not one.candidates.are_too_few(0, 5)
