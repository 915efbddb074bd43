"""The parity page: its tables, and that the part that needs no corpus is fresh."""

from pathlib import Path

import pytest

from tests.conformance import parity
from tests.conformance.cases import Result

RESULTS = [
    Result("a", "taints", plugins=frozenset({"TaintToleration"})),
    Result("b", "taints", ["differs"], plugins=frozenset({"TaintToleration"})),
    Result("d", "taints", declared=["differs"], plugins=frozenset({"TaintToleration"})),
    Result("c", "hints", plugins=frozenset({"NodeAffinity"}), wakes_more=True),
]


def test_families_and_plugins_are_counted() -> None:
    text = parity.tables(RESULTS)
    assert "| taints | 3 | 1 | 1 | 1 |" in text
    assert "| TaintToleration | 2 | 1 | 0 | 0 | 0 |" in text
    assert "| NodeAffinity | 0 | 0 | 1 | 1 | 1 |" in text


def test_only_what_stands_between_the_markers_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"above\n{parity.BEGIN}\nold\n{parity.END}\nbelow\n")
    parity.write(RESULTS, page)
    text = page.read_text()
    assert text.startswith("above\n")
    assert text.endswith(f"{parity.END}\nbelow\n")
    assert "old" not in text
    assert "| taints |" in text


def test_a_page_without_markers_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing here")
    with pytest.raises(parity.MarkersMissingError, match="must stand on it"):
        parity.write(RESULTS, page)
    assert page.read_text() == "nothing here"


def test_the_plugins_of_a_decision_are_those_that_spoke() -> None:
    told = {"plugin": "NodePorts", "code": "Unschedulable", "reasons": []}
    expect = {
        "prefilter": None,
        "filter": {"n1": told},
        "scores": {"ImageLocality": {"n2": 0}},
        "unschedulable_plugins": ["NodePorts"],
        "preemption": {"candidates": [{"node": "n1"}]},
    }
    wanted = {"NodePorts", "ImageLocality", "DefaultPreemption"}
    assert parity.plugins_of({"expect": expect}) == wanted
    assert parity.plugins_of({"plugin": "NodeName", "expect": {}}) == {"NodeName"}


def test_the_page_tells_what_wakes_pods_in_addition() -> None:
    page = parity.PAGE.read_text(encoding="utf-8")
    fresh = parity.tables([]).split("### What wakes a pod in addition")[1]
    assert fresh.strip() in page
