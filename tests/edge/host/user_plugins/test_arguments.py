"""Arguments of plugins: decoded strictly where they are declared, passed on where they are not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from asched.core.state.cluster import Cluster
from asched.edge.host.user_plugins.arguments import ArgsError, instance_of


@dataclass
class Window:
    from_hour: int = 0
    to_hour: int = 24


@dataclass
class Args:
    price: float
    node_label: str = "cost"
    windows: list[Window] = field(default_factory=list)
    night: Window | None = None
    milli_cpu: int = field(default=0, metadata={"name": "milliCPU"})


@dataclass
class Strict:
    table: dict[str, int]

    def __post_init__(self) -> None:
        self.table["needed"]


@dataclass
class Torn:
    either: Window | Strict | None = None


class Declared:
    def __init__(self, args: Args) -> None:
        self.args = args


class Picky:
    def __init__(self, args: Strict) -> None: ...


class Undecided:
    def __init__(self, args: Torn) -> None: ...


class Loose:
    def __init__(self, args: Mapping[str, Any]) -> None:
        self.args = args


class Bare:
    pass


class Both:
    def __init__(self, args: Args, cluster: Cluster) -> None:
        self.args, self.cluster = args, cluster


def make(cls: type[Any], args: Any) -> Any:
    return instance_of(cls, args, Cluster())


def test_declared_args_are_decoded_in_both_spellings() -> None:
    given = {"price": 2, "nodeLabel": "c", "windows": [{"fromHour": 3}], "night": {"to_hour": 6}}
    assert make(Declared, given).args == Args(2.0, "c", [Window(3, 24)], Window(0, 6))
    assert isinstance(make(Both, {"price": 1}).cluster, Cluster)


def test_a_field_may_say_how_it_is_spelt() -> None:
    assert make(Declared, {"price": 2, "milliCPU": 5}).args.milli_cpu == 5
    with pytest.raises(ArgsError, match=r"milliCpu: unknown field .* nodeLabel, .*, milliCPU$"):
        make(Declared, {"price": 2, "milliCpu": 5})


def test_loose_args_are_passed_as_written() -> None:
    assert make(Loose, {"a": [1]}).args == {"a": [1]}
    assert make(Loose, None).args == {}
    assert isinstance(make(Bare, None), Bare)


@pytest.mark.parametrize(
    ("cls", "given", "words"),
    [
        (Declared, {"price": "2"}, "args.price: expected `float`, got `str`"),
        (Declared, None, "args: object missing required field `price`"),
        (
            Declared,
            {"prise": 1},
            'args.prise: unknown field (did you mean "price"?); there are price, nodeLabel,',
        ),
        (
            Declared,
            {"price": 1, "windows": [{}, {"from": 1}]},
            'windows[1].from: unknown field (did you mean "fromHour"?); there are fromHour, toHour',
        ),
        (
            Declared,
            {"price": 1, "windows": [{"from_hour": "x"}]},
            "args.windows[0].from_hour: expected `int`, got `str`",
        ),
        (Picky, {"table": {}}, "no Strict can be made: KeyError: 'needed'"),
        (Undecided, {}, "no Torn can be made: TypeError: Type unions may not contain more"),
        (Declared, [1], "args must be a mapping, not list"),
        (Bare, {"a": 1}, "takes no args, but is given a"),
        (
            type("Odd", (), {"__init__": lambda _self, _one, _two: None}),
            {},
            "may take args, cluster and",
        ),
        (type("Bad", (), {"__init__": lambda _self: 1 / 0}), None, "ZeroDivisionError: division"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(cls: Any, given: Any, words: str) -> None:
    with pytest.raises(ArgsError) as refused:
        make(cls, given)
    assert words in str(refused.value)
