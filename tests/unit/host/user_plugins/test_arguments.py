"""Arguments of plugins: decoded strictly where they are declared, passed on where they are not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from typing import Any, Literal

import pytest

from asched.core.cluster.cluster import Cluster
from asched.host.user_plugins.arguments import ArgsError, instance_of, takes_cluster


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


@dataclass(frozen=True)
class Label:
    node_key: str = ""


class Declared:
    def __init__(self, args: Args) -> None:
        self.args = args


class Picky:
    def __init__(self, args: Strict) -> None: ...


class Undecided:
    def __init__(self, args: Torn) -> None: ...


class Bare:
    pass


def make(cls: type[Any], args: Any) -> Any:
    return instance_of(cls, args, Cluster())


@pytest.mark.parametrize(
    ("cls", "given", "words"),
    [
        (Declared, {"price": "2"}, "args.price: expected `float`, got `str`"),
        (Declared, None, "args: object missing required field `price`"),
        (
            Declared,
            {"prise": 1},
            'args.prise: unknown field (did you mean "price"?); known fields: price, nodeLabel,',
        ),
        (
            Declared,
            {"price": 1, "windows": [{}, {"from": 1}]},
            'windows[1].from: unknown field (did you mean "fromHour"?); known fields: fromHour,',
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
            "only args, cluster and api are allowed",
        ),
        (type("Any", (), {"__init__": lambda _self, *args: None}), {"a": 1}, "takes no args, but"),
        (type("Bad", (), {"__init__": lambda _self: 1 / 0}), None, "ZeroDivisionError: division"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(cls: Any, given: Any, words: str) -> None:
    with pytest.raises(ArgsError) as refused:
        make(cls, given)
    assert words in str(refused.value)


W, L = {"fromHour": 3}, {"nodeKey": "k"}
DAY, KEY = Window(3, 24), Label("k")


@pytest.mark.parametrize(
    ("annotation", "given", "words"),
    [
        (list[Window] | None, [{"from": 1}], "args.aField[0].from: unknown field"),
        (Sequence[Window], [{}, {"from": 1}], "args.aField[1].from: unknown field"),
        (tuple[int, Window], [1, {"from": 1}], "args.aField[1].from: unknown field"),
        (tuple[int, Window], [1], "args.a_field: expected `array` of length 2, got 1"),
        (tuple[int, int], [1, 2, 3], "args.a_field: expected `array` of length 2, got 3"),
        (Mapping[str, Window], {"x": {"from": 1}}, "args.aField.x.from: unknown field"),
        (tuple[int, Window], {"x": {"from": 1}}, "args.a_field: expected `array`, got `object`"),
        (Mapping[str, Window], [{"from": 1}], "args.a_field: expected `object`, got `array`"),
        (Window, [1], "args.a_field: expected `object`, got `array`"),
        (Literal["x"], [1], "args.a_field: expected `str`, got `array`"),
    ],
)
def test_mistakes_within_are_told_with_their_place(annotation: Any, given: Any, words: str) -> None:
    args = make_dataclass("Nested", [("a_field", annotation)])
    cls = type("Made", (), {"__init__": lambda _self, _args: None})
    cls.__init__.__annotations__["_args"] = args

    with pytest.raises(ArgsError) as refused:
        make(cls, {"aField": given})
    assert words in str(refused.value)


def test_a_plugin_whose_annotations_cannot_be_read_says_so() -> None:
    class Unread:
        def __init__(self, cluster: "NoSuchName") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ArgsError, match=r"annotations of __init__ cannot be read: .*NoSuchName"):
        make(Unread, None)
    assert not takes_cluster(Unread)
