"""Long work in slices: in its order, as far as the budget goes, and all of it in the end."""

from collections.abc import Iterator

from asched.core.state.sliced import Sliced


def steps(work: Sliced, done: list[str], name: str, count: int) -> Iterator[None]:
    for number in range(count):
        done.append(f"{name}{number}")
        work.budget.note(1)
        yield


def test_outside_of_turns_all_is_done_in_one_go() -> None:
    work, done = Sliced(), list[str]()

    work.do(steps(work, done, "a", 1_000))

    assert len(done) == 1_000
    assert not work


def test_a_turn_does_as_much_as_its_budget_grants_and_the_next_one_goes_on() -> None:
    work, done = Sliced(), list[str]()
    work.budget.open(3)
    work.do(steps(work, done, "a", 5))
    assert done == ["a0", "a1", "a2"]
    assert work

    work.go_on()
    assert len(done) == 3, "nothing before the budget is opened again"

    work.budget.open(3)
    work.go_on()
    assert done == ["a0", "a1", "a2", "a3", "a4"]
    assert not work


def test_what_comes_later_waits_for_what_came_before() -> None:
    work, done = Sliced(), list[str]()
    work.budget.open(2)
    work.do(steps(work, done, "a", 3))
    work.do(steps(work, done, "b", 2))
    assert done == ["a0", "a1"]

    work.budget.close()
    work.go_on()
    assert done == ["a0", "a1", "a2", "b0", "b1"]


def test_work_that_leads_to_work_is_done_before_it() -> None:
    work, done = Sliced(), list[str]()

    def leads_on() -> Iterator[None]:
        done.append("first")
        work.do(steps(work, done, "later", 1))
        yield
        done.append("last")

    work.do(leads_on())

    assert done == ["first", "last", "later0"]
