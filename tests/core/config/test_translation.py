"""What became of an older form, entry by entry."""

from asched.core.config.problem import Severity
from asched.core.config.translation import Draft, Fate, named
from asched.core.config.v1 import KubeSchedulerProfile


def test_nothing_is_dropped_in_silence() -> None:
    draft = Draft("Policy")
    draft.kept(("predicates", 0))
    draft.changed(("predicates", 1), "means NodePorts")
    draft.unsupported(("extra",), "has no effect")
    draft.refuse(("bad",), "cannot be read", "write it anew")
    done = draft.finish()
    assert [note.fate for note in done.notes] == [Fate.KEPT, Fate.CHANGED, Fate.UNSUPPORTED]
    assert [str(note) for note in done.notes] == [
        "predicates[0]: as it was",
        "predicates[1]: means NodePorts",
        "extra: has no effect",
    ]
    (problem,) = done.problems
    assert (problem.severity, problem.hint) == (Severity.ABORT, "write it anew")
    assert done.notes_for_run == (
        "Policy is read as v1; `asched config migrate` writes it down",
        "unsupported: extra: has no effect",
    )


def test_a_note_about_the_whole_names_no_path() -> None:
    draft = Draft("Policy")
    draft.kept((), "all of it")
    assert str(draft.notes[0]) == "all of it"


def test_flags_that_v1_has_no_field_for_are_marked() -> None:
    profile = KubeSchedulerProfile(scheduler_name="x")
    assert Draft("a").finish(always_check_all_filters=True).mark(profile).always_check_all_filters
    assert not Draft("a").finish().mark(profile).always_check_all_filters


def test_mappings_of_a_list_keep_their_places() -> None:
    assert named([{"a": 1}, "x", {"b": 2}]) == [(0, {"a": 1}), (2, {"b": 2})]
    assert named({"a": 1}) == ()
    assert named(None) == ()
