"""Virtual time jumps, and keeps the order of what is due."""

from asched_lab.sim.clock import START_S, VirtualClock


def test_calls_are_made_in_the_order_of_their_times_and_then_of_their_noting() -> None:
    clock, made = VirtualClock(), []
    clock.after(2.0, lambda: made.append("later"))
    clock.after(1.0, lambda: made.append("first"))
    clock.after(1.0, lambda: made.append("second"))

    clock.jump(START_S + 1.0)
    clock.run_due()
    assert made == ["first", "second"]
    assert clock.next_s() == START_S + 2.0


def test_a_call_may_make_another_one_due_at_once() -> None:
    clock, made = VirtualClock(), []
    clock.after(0.0, lambda: clock.after(-5.0, lambda: made.append("now")))

    clock.run_due()
    assert made == ["now"]
    assert clock.now_s() == START_S


def test_time_never_runs_backwards() -> None:
    clock = VirtualClock()
    clock.jump(START_S + 10.0)
    clock.jump(START_S)

    assert clock.now_s() == START_S + 10.0
    assert clock.next_s() is None
