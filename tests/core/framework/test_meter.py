"""The stopwatch: which points and plugins are told of, with a counter that a test moves."""

from asched.core.framework.meter import SAMPLE_EVERY, Meter
from asched.core.framework.points import PreFilterResult
from asched.core.framework.status import Code, Status
from tests.core.framework.runners import Ears, Watch


def a_meter():
    ears, watch = Ears(), Watch()
    return Meter(ears, "p", watch), ears, watch


def test_the_time_of_pre_filter_is_taken_from_the_stretch_it_lies_in():
    meter, ears, watch = a_meter()

    def plugin():
        watch.now_s += 2
        return PreFilterResult()

    meter.begin()
    watch.now_s += 5
    meter.call_aside("Mine", "PreFilter", plugin)
    watch.now_s += 1
    meter.filtered(("Mine",), ("Mine", "Yours"), 40)

    assert ears.points == [("PreFilter", "Success", 2.0), ("Filter", "Success", 6.0)]
    assert ears.asked == [("PreFilter", ("Mine",), 1), ("Filter", ("Mine", "Yours"), 40)]


def test_scores_follow_filters():
    meter, ears, watch = a_meter()
    meter.begin()
    watch.now_s += 3
    meter.filtered((), (), 0)
    watch.now_s += 4
    meter.ranked(("Mine",), ("Mine", "Yours"), 7)

    assert ears.points[2:] == [("PreScore", "Success", 0.0), ("Score", "Success", 4.0)]
    assert ears.asked[2:] == [("PreScore", ("Mine",), 1), ("Score", ("Mine", "Yours"), 7)]


def test_a_rejection_by_pre_filter_ends_the_attempt():
    meter, ears, watch = a_meter()
    meter.begin()
    watch.now_s += 1
    meter.pre_filtered(("Mine",), Code.UNSCHEDULABLE.text)

    assert ears.points == [("PreFilter", "Unschedulable", 1.0)]
    assert ears.asked == [("PreFilter", ("Mine",), 1)]
    watch.now_s += 50
    meter.begin()
    watch.now_s += 3
    meter.pre_filtered((), Code.ERROR.text)
    assert ears.points[1:] == [("PreFilter", "Error", 3.0)]


def test_single_plugins_are_timed_in_one_attempt_of_ten():
    meter, ears, watch = a_meter()

    def plugin(cost_s):
        watch.now_s += cost_s
        return PreFilterResult(Status(Code.SKIP))

    for _ in range(3 * SAMPLE_EVERY):
        meter.begin()
        assert meter.call("Mine", "PreFilter", plugin, 2).status.code is Code.SKIP

    assert ears.plugins == [("Mine", "PreFilter", "Skip", 2.0)] * 3


def test_the_time_taken_aside_is_told_once() -> None:
    """Neither the next stretch nor the next attempt has any of it."""
    meter, ears, watch = a_meter()

    def plugin():
        watch.now_s += 2
        return PreFilterResult()

    meter.begin()
    meter.call_aside("Mine", "PreFilter", plugin)
    meter.filtered((), (), 0)
    watch.now_s += 3
    meter.call_aside("Mine", "PreScore", plugin)
    watch.now_s += 1
    meter.ranked((), (), 0)
    meter.call_aside("Mine", "PreScore", plugin)
    watch.now_s += 9
    meter.begin()
    watch.now_s += 1
    meter.filtered((), (), 0)

    assert [(point, duration_s) for point, _, duration_s in ears.points] == [
        ("PreFilter", 2.0),
        ("Filter", 0.0),
        ("PreScore", 2.0),
        ("Score", 4.0),
        ("PreFilter", 0.0),
        ("Filter", 1.0),
    ]
    assert not ears.plugins, "nothing was sampled"


def test_while_it_pauses_others_measure_and_no_time_passes() -> None:
    meter, ears, watch = a_meter()

    def plugin():
        watch.now_s += 2
        return PreFilterResult()

    watch.now_s = 7
    meter.begin()
    meter.call_aside("Mine", "PreFilter", plugin)
    watch.now_s += 3
    so_far = meter.pause()
    watch.now_s += 100
    meter.begin()
    meter.call_aside("Others", "PreFilter", plugin)
    meter.filtered((), (), 0)
    watch.now_s += 100
    ears.points.clear()
    meter.resume(so_far)
    watch.now_s += 4
    meter.filtered((), (), 0)

    assert ears.points == [("PreFilter", "Success", 2.0), ("Filter", "Success", 7.0)]
