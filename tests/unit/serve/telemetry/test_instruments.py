"""What is counted by words of others stays bounded, and nothing of it is lost."""

from asched.serve.telemetry.instruments import CHILDREN_MAX, OTHER, Families


def test_words_without_end_share_one_child_in_the_end() -> None:
    families = Families()
    refusals = families.counter("refusals", "Pods refused.", ("reason",))
    for number in range(CHILDREN_MAX + 500):
        refusals.of(f"OutOfexample.com/made-up-{number}").value += 1
    assert len(refusals.children) == CHILDREN_MAX + 1
    assert refusals.of(OTHER).value == 500
    assert refusals.of("OutOfexample.com/made-up-7").value == 1
