"""A queue needs no listener."""

from asched.core.queue.observer import QueueObserver, SilentQueue
from tests.core.queue.waiting import PROFILE, Witness


def test_the_silent_observer_takes_every_report_and_keeps_nothing() -> None:
    for observer in (SilentQueue(), Witness()):
        reports: QueueObserver = observer
        reports.incoming("active", "NodeAdd")
        reports.unschedulable("Fit", PROFILE, 1)
        reports.hint_answered("Fit", "NodeAdd", "Queue", 0.001)
        reports.plugin_raised("Mine", "preEnqueue", ValueError())
        reports.complaint("odd")

    assert vars(SilentQueue()) == {}
