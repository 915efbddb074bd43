"""How much a search has done, and when it should stop for a moment."""

from asched.core.dra.effort import CHUNK_STEPS, Effort


def test_it_is_due_after_a_chunk_and_told_once() -> None:
    effort = Effort()
    effort.steps = CHUNK_STEPS - 1
    assert not effort.is_due
    effort.steps += 1
    assert effort.is_due
    assert effort.tell() == CHUNK_STEPS
    assert (effort.is_due, effort.tell()) == (False, 0)
    effort.steps += CHUNK_STEPS
    assert effort.is_due
    assert effort.tell() == CHUNK_STEPS
