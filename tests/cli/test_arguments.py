import argparse

import pytest

from asched.cli.arguments import port, seed_number, whole


@pytest.mark.parametrize(("text", "found"), [("0", 0), ("65535", 65535), ("00080", 80)])
def test_a_port_is_one_that_can_be_listened_on(text: str, found: int) -> None:
    assert port(text) == found


@pytest.mark.parametrize("text", ["65536", "-1", "", "x", "1.0", "٣", "9" * 5000])
def test_what_is_no_port_is_told(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        port(text)
    shown, _, rest = str(caught.value).partition(" is ")
    assert rest == "no port: 0 to 65535, 0 for a free one"
    assert len(shown) < 100


@pytest.mark.parametrize(("least", "most"), [(1, 3), (0, 1), (10, 12)])
def test_a_whole_number_lies_between_both_ends(least: int, most: int) -> None:
    number = whole(least, most)
    for value in range(most + 3):
        if least <= value <= most:
            assert number(str(value)) == value
        else:
            with pytest.raises(argparse.ArgumentTypeError) as caught:
                number(str(value))
            wanted = f"'{value}' is no whole number from {least} to {most}"
            assert str(caught.value) == wanted


def test_a_seed_may_be_the_largest_there_is() -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        seed_number("x")
    largest = str(caught.value).rpartition(" to ")[2]
    assert seed_number(largest) == int(largest)
    with pytest.raises(argparse.ArgumentTypeError):
        seed_number(str(int(largest) + 1))
