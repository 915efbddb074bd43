"""Why no node was left, in kube-scheduler's words and as arrays."""

from typing import Any

import numpy as np
import pytest

from asched.core.framework.attempt import DISTINCT_FEW, Rejection, fit_error
from asched.core.framework.points import FilterPlugin
from asched.core.framework.status import Code, Status, pending, unresolvable, unschedulable
from tests.builders import a_cluster, a_pod
from tests.builders import pending as pending_pod


class Fit(FilterPlugin):
    name = "Fit"

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any: ...

    def explain(self, pod: Any, code: int) -> Status:
        return unschedulable(f"lack {code}")


class Taints(Fit):
    name = "Taints"

    def explain(self, pod: Any, code: int) -> Status:
        return {1: unresolvable("tainted"), 2: pending("soon")}[code]


POD = pending_pod(a_cluster(), a_pod())
PLUGINS = (Fit(), Taints())


def i32(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.int32)


def mask(*flags: int) -> Any:
    return np.array(flags, dtype=np.bool_)


def rejection(judge: Any, codes: Any, live: Any = None, **more: Any) -> Rejection:
    live = np.ones(len(judge), dtype=np.bool_) if live is None else live
    return Rejection(POD, plugins=PLUGINS, judge=judge, codes=codes, live=live, **more)


#: Rows: two lack 7, one lacks 8, one is tainted, one is dead, one waits for something.
MANY = rejection(i32(1, 1, 1, 2, 1, 2), i32(7, 8, 7, 1, 7, 2), mask(1, 1, 1, 1, 0, 1))


def told(found: Rejection) -> dict[str, list[int]]:
    return {f"{status.plugin}: {status.message}": rows.tolist() for status, rows in found.groups}


def test_equal_verdicts_are_told_together_dead_rows_left_out() -> None:
    assert told(MANY) == {
        "Fit: lack 7": [0, 2],
        "Fit: lack 8": [1],
        "Taints: tainted": [3],
        "Taints: soon": [5],
    }
    assert MANY.node_count == 5
    assert MANY.message() == ("0/5 nodes are available: 1 lack 8, 1 soon, 1 tainted, 2 lack 7.")
    assert MANY.message("preemption: no.").endswith("2 lack 7. preemption: no.")
    assert MANY.status_at(1) == Status(Code.UNSCHEDULABLE, ("lack 8",), "Fit")


def test_who_waits_for_something_outside_is_told_apart() -> None:
    assert MANY.unschedulable_plugins == {"Fit", "Taints"}
    assert MANY.pending_plugins == {"Taints"}
    fit = rejection(i32(1), i32(7))
    assert (fit.unschedulable_plugins, fit.pending_plugins) == ({"Fit"}, frozenset())
    waits = rejection(i32(2), i32(2), pre_filter_plugins=frozenset({"Early"}))
    assert (waits.unschedulable_plugins, waits.pending_plugins) == ({"Early"}, {"Taints"})
    held_off = rejection(i32(0), i32(0), overrides={0: unresolvable("held off")})
    assert held_off.unschedulable_plugins == frozenset(), "that is no plugin's word"


def test_only_rows_that_eviction_could_help_are_candidates() -> None:
    assert MANY.candidates.tolist() == [0, 1, 2]
    assert rejection(i32(2), i32(1)).candidates.tolist() == []
    some = rejection(i32(2, 1, 1), i32(1, 7, 8), overrides={0: unschedulable("promised")})
    assert some.candidates.tolist() == [0, 1, 2]
    assert rejection(i32(1), i32(7), overrides={0: unresolvable("no")}).candidates.tolist() == []


def test_an_override_speaks_for_its_row_alone() -> None:
    one = rejection(i32(1, 1), i32(7, 7), overrides={1: unschedulable("promised").by("Fit")})
    assert told(one) == {"Fit: lack 7": [0]}
    assert one.reason_counts() == {"lack 7": 1, "promised": 1}
    assert one.status_at(1) == unschedulable("promised").by("Fit")


def test_rows_that_were_not_looked_at_are_told_by_pre_filter() -> None:
    absent = unresolvable("not satisfying")
    one = rejection(
        i32(1, 0, 0), i32(7, 0, 0), mask(1, 1, 0), looked_at=mask(1, 0, 0), absent=absent
    )
    assert one.absent_count == 1
    assert one.message() == "0/2 nodes are available: 1 lack 7, 1 not satisfying."
    assert one.status_at(1) is None
    assert one.status_at(0) is not None
    looked = rejection(i32(1, 1), i32(7, 7), looked_at=mask(1, 0))
    assert told(looked) == {"Fit: lack 7": [0]}
    assert looked.status_at(1) is None, "whatever a filter said of it"
    assert (looked.reason_counts(), len(looked.summary())) == ({"lack 7": 1}, 1), "no word of it"
    all_of_them = rejection(i32(1), i32(7), looked_at=mask(1), absent=absent)
    assert all_of_them.reason_counts() == {"lack 7": 1}
    assert len(all_of_them.summary()) == 1


def test_a_row_that_fits_has_no_status() -> None:
    assert rejection(i32(0), i32(0)).status_at(0) is None
    assert told(rejection(i32(0, 1), i32(0, 7))) == {"Fit: lack 7": [1]}


def test_a_rejection_of_pre_filter_speaks_for_all_nodes() -> None:
    one = rejection(
        i32(0, 0, 0),
        i32(0, 0, 0),
        mask(1, 0, 1),
        pre_filter=unresolvable("no such claim").by("Volumes"),
        pre_filter_plugins=frozenset({"Volumes"}),
        pre_filter_ran=frozenset({"Fit"}),
    )
    assert told(one) == {"Volumes: no such claim": [0, 2]}
    assert one.message() == "0/2 nodes are available: no such claim."
    assert (one.reason_counts(), one.absent_count) == ({}, 0)
    assert one.status_at(0) == one.pre_filter
    assert one.unschedulable_plugins == {"Volumes"}
    assert (one.pre_filter_ran("Fit"), one.pre_filter_ran("Volumes")) == (True, False)
    assert MANY.pre_filter_ran("Anybody")


def test_all_rejecting_plugins_of_a_row_may_speak() -> None:
    one = rejection(i32(1, 2, 1), i32(7, 1, 7), all_codes=[i32(7, 0, 7), i32(1, 1, 0)])
    assert told(one) == {"Taints: tainted": [1], "Fit: lack 7": [2], "Fit: lack 7, tainted": [0]}
    both = one.status_at(0)
    assert both is not None
    assert (both.code, both.plugin) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "Fit")
    assert one.candidates.tolist() == [2]
    assert one.reason_counts() == {"lack 7": 2, "tainted": 2}


@pytest.mark.parametrize("distinct", [1, DISTINCT_FEW, DISTINCT_FEW + 1, 40])
def test_however_many_verdicts_there_are_each_has_its_rows(distinct: int) -> None:
    codes = i32(*(1 + row % distinct for row in range(3 * distinct)))
    one = rejection(np.ones_like(codes), codes)
    assert told(one) == {
        f"Fit: lack {code}": [code - 1, code - 1 + distinct, code - 1 + 2 * distinct]
        for code in range(1, distinct + 1)
    }


def test_reasons_are_sorted_as_text() -> None:
    counts = {"b": 2, "a": 10, "c": 0}
    assert fit_error(12, "", counts, "") == "0/12 nodes are available: 10 a, 2 b."
    assert fit_error(1, "", {}, "") == "0/1 nodes are available:"
    assert fit_error(1, "early", {"a": 1}, "late") == "0/1 nodes are available: early. late"


def test_a_summary_says_each_verdict_once_and_who_was_left_out() -> None:
    absent = unresolvable("elsewhere")
    one = rejection(i32(1, 1, 0), i32(7, 7, 0), looked_at=mask(1, 1, 0), absent=absent)
    assert one.summary() == (
        ("Fit", "Unschedulable", "lack 7", 2),
        ("", "UnschedulableAndUnresolvable", "elsewhere", 1),
    )
