"""Only what differs of a condition is written."""

from asched.core.model.pod import PodCondition, difference

OLD = PodCondition(
    type="Ready", status="False", reason="Busy", message="one", observed_generation=1
)


def test_a_new_condition_has_both_times() -> None:
    assert difference(None, OLD, 0.0) == {
        "type": "Ready",
        "status": "False",
        "reason": "Busy",
        "message": "one",
        "observedGeneration": 1,
        "lastTransitionTime": "1970-01-01T00:00:00Z",
        "lastProbeTime": None,
    }


def test_an_equal_condition_is_nothing() -> None:
    assert difference(OLD, OLD, 5.0) is None


def test_a_changed_message_is_all_that_is_written() -> None:
    new = PodCondition(
        type="Ready", status="False", reason="Busy", message="two", observed_generation=1
    )
    assert difference(OLD, new, 5.0) == {"type": "Ready", "message": "two"}


def test_a_flipped_status_carries_its_time() -> None:
    new = PodCondition(
        type="Ready", status="True", reason="Busy", message="one", observed_generation=1
    )
    assert difference(OLD, new, 5.0) == {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": "1970-01-01T00:00:05Z",
    }
