"""However many selectors a tenant writes, what devices remember of them has a bound in bytes."""

import pytest

from asched.core.dra import selector_answers
from asched.core.dra.cel import program
from asched.core.dra.cel.program import Programs
from asched.core.dra.devices import ReadyDevice
from asched.core.dra.inventory import Inventory
from asched.core.dra.selector_answers import ANSWER_BYTES, SelectorAnswers
from tests.core.dra.worlds import a_device, a_slice

#: As long as the API server takes them.
LONG = 10 * 1024
SELECTOR = 'device.driver == "{}"'


def a_fleet(count: int) -> tuple[Inventory, list[ReadyDevice]]:
    """Slices of one device each."""
    inventory = Inventory()
    for number in range(count):
        inventory.put(a_slice(a_device(f"d{number}"), name=f"s{number}", pool=f"p{number}"))
    ready = (one for slice_ in inventory._slices.values() for one in slice_.devices)
    return inventory, list(ready)


def long_selector(number: int) -> str:
    return SELECTOR.format(str(number).rjust(LONG - len(SELECTOR), "x"))


def test_equal_selectors_are_held_once_and_answered_once() -> None:
    inventory, devices = a_fleet(50)
    for device in devices:
        assert device.ask(long_selector(1))[1] > 0
        assert device.ask(long_selector(1)) == (False, 0)

    assert inventory._remembered.bytes == len(long_selector(1)) + 50 * ANSWER_BYTES
    assert len({id(text) for device in devices for text in device.answers}) == 1


def test_many_long_selectors_are_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selector_answers, "BYTES_MAX", 40 * LONG)
    inventory, devices = a_fleet(20)
    number = 0
    for device in devices * 3:
        for _ in range(5):
            number += 1
            device.ask(long_selector(number))
            assert inventory._remembered.bytes <= 40 * LONG

    held = sum(len(text) for device in devices for text in device.answers)
    assert LONG < held <= 40 * LONG
    assert not devices[0].answers
    assert devices[0].ask(long_selector(1))[1] > 0


def test_as_much_as_the_bound_is_kept_and_not_a_byte_more(monkeypatch: pytest.MonkeyPatch) -> None:
    _, devices = a_fleet(3)
    each = len(long_selector(1)) + ANSWER_BYTES
    monkeypatch.setattr(selector_answers, "BYTES_MAX", 2 * each)
    for number, device in enumerate(devices[:2]):
        device.ask(long_selector(number))
    assert [len(device.answers) for device in devices] == [1, 1, 0]
    devices[2].ask(long_selector(2))
    assert [len(device.answers) for device in devices] == [0, 1, 1]
    monkeypatch.setattr(selector_answers, "BYTES_MAX", each - 1)
    devices[0].ask(long_selector(3))
    assert [len(device.answers) for device in devices] == [0, 0, 0], "one is too much by itself"


def test_one_device_remembers_so_many_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selector_answers, "ANSWERS_MAX", 4)
    inventory, (device,) = a_fleet(1)
    for number in range(10):
        device.ask(SELECTOR.format(number))

    assert len(device.answers) == 2
    assert inventory._remembered.bytes == sum(len(t) + ANSWER_BYTES for t in device.answers)


def test_a_device_that_goes_takes_its_answers_along() -> None:
    inventory, devices = a_fleet(2)
    for device in devices:
        device.ask(SELECTOR.format("gpu.example.com"))
        device.ask("nonsense(")
    inventory.remove("s0")
    inventory.put(a_slice(a_device("d1"), name="s1", pool="p1"))

    remembered = inventory._remembered
    assert (remembered.bytes, len(remembered._asked), len(remembered._texts)) == (0, 0, 0)
    remembered.forget(devices[0])
    assert remembered.bytes == 0


def test_programs_are_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 5 * program._bytes_of(long_selector(0))
    monkeypatch.setattr(program, "PROGRAMS_BYTES_MAX", most)
    programs = Programs()
    first = programs.of(long_selector(0))
    for number in range(1, 40):
        programs.of(long_selector(number))
        programs.of("nonsense(")
        assert programs.of(long_selector(0)) is first
        assert programs.bytes <= most

    assert len(programs._known) == 5


def test_an_account_begins_empty() -> None:
    assert SelectorAnswers().bytes == 0
