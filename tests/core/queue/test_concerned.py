"""Of thousands of different waiting pods, a change meets those it can concern."""

from collections.abc import Collection, Hashable

import pytest

from asched.core.framework.points import Concerns, Hint, Registration
from asched.core.model.pod import Pod
from asched.core.queue.concerned import KEYS_MAX
from asched.core.state.changes import Change
from tests.core.queue.waiting import NODE_ADDED, POD_RELABELLED, Scene, a_pod

MANY = 40


class Wishes:
    """Pods wait for others of an app; notes which of them were asked for a hint."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def hint(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        self.asked.append(pod.metadata.name)
        assert new is not None
        return Hint.QUEUE if _wish(pod) in ("any", new.labels.get("app")) else Hint.SKIP

    @staticmethod
    def sought(pod: Pod) -> Collection[Hashable] | None:
        match _wish(pod):
            case "any":
                return None
            case "broken":
                raise ValueError("a wish that makes no sense")
            case "senseless":
                return ([],)  # type: ignore[return-value]
            case "modest":
                return [f"key-{n}" for n in range(KEYS_MAX)]
            case "greedy":
                return range(KEYS_MAX + 1)
            case wish:
                return (wish,)

    @staticmethod
    def offered(old: Pod | None, new: Pod | None) -> Collection[Hashable] | None:
        assert new is not None
        app = new.labels.get("app")
        if app == "unclear":
            return None
        return () if app == "nothing" else ([],) if app == "senseless" else (app,)  # type: ignore[return-value]


def _wish(pod: Pod) -> str:
    return pod.labels["wish"]


def scene(wishes: Wishes, *more: Registration) -> Scene:
    told = Registration(POD_RELABELLED, wishes.hint, Concerns(wishes.sought, wishes.offered))
    return Scene({"Near": [told, *more]})


def wait(one: Scene, *wishes: str) -> None:
    for number, wish in enumerate(wishes):
        one.add(a_pod(f"p{number:03d}", labels={"wish": wish}), now_s=0.0)
        one.reject("Near", now_s=1.0)


def relabelled(one: Scene, app: str) -> int:
    return one.queue.move(Change(POD_RELABELLED, None, a_pod("o", labels={"app": app})), 1.5)


def test_only_those_are_asked_whom_it_can_concern() -> None:
    wishes = Wishes()
    one = scene(wishes)
    wait(one, *(f"app-{n}" for n in range(MANY)))

    assert relabelled(one, "app-7") == 1
    assert wishes.asked == ["p007"]
    assert relabelled(one, "app-none") == 0
    assert wishes.asked == ["p007"]


def test_whoever_does_not_say_what_it_seeks_is_asked_in_its_turn() -> None:
    wishes = Wishes()
    one = scene(wishes)
    wait(one, "any", "broken", "greedy", "senseless", "app-1", *["app-0"] * MANY)

    relabelled(one, "app-1")

    assert wishes.asked == ["p000", "p001", "p002", "p003", "p004"]


@pytest.mark.parametrize("app", ["unclear", "senseless"])
def test_a_change_that_does_not_say_what_it_offers_concerns_all(app: str) -> None:
    wishes = Wishes()
    one = scene(wishes)
    wait(one, *(f"app-{n}" for n in range(MANY)))
    relabelled(one, "app-none")

    relabelled(one, app)

    assert len(wishes.asked) == MANY


def test_a_second_registration_for_the_same_change_has_a_say() -> None:
    """One that tells nothing of whom it concerns concerns everybody."""
    wishes = Wishes()
    one = scene(wishes, Registration(POD_RELABELLED))
    wait(one, *(f"app-{n}" for n in range(MANY)))

    assert relabelled(one, "app-none") == MANY


def test_other_changes_concern_all() -> None:
    wishes = Wishes()
    one = scene(wishes, Registration(NODE_ADDED))
    wait(one, *(f"app-{n}" for n in range(MANY)))
    relabelled(one, "app-none")

    assert one.move(NODE_ADDED, now_s=1.5) == MANY


def test_who_came_later_is_found_and_who_left_is_not() -> None:
    wishes = Wishes()
    one = scene(wishes)
    wait(one, *(f"app-{n}" for n in range(MANY)))
    assert relabelled(one, "app-3") == 1
    assert relabelled(one, "late") == 0
    one.add(a_pod("late", labels={"wish": "late"}), now_s=2.0)
    one.reject("Near", now_s=2.0)
    one.queue.delete(one.api["default/p004"])

    assert relabelled(one, "app-4") == 0
    assert relabelled(one, "late") == 1
    assert wishes.asked == ["p003", "late"]


def test_a_pod_with_other_wishes_is_found_by_those() -> None:
    wishes = Wishes()
    one = scene(wishes)
    wait(one, *(f"app-{n}" for n in range(MANY)))
    relabelled(one, "app-none")
    one.update(a_pod("p004", labels={"wish": "new"}, version=2), now_s=1.2)
    wishes.asked.clear()

    assert relabelled(one, "app-4") == 0
    assert relabelled(one, "new") == 1
    assert wishes.asked == ["p004"]


def test_of_two_classes_with_one_wish_the_other_is_found_when_one_leaves() -> None:
    wishes = Wishes()
    one = scene(wishes)
    wait(one, "shared", "shared", *(f"app-{n}" for n in range(MANY)))
    relabelled(one, "app-none")
    one.queue.delete(one.api["default/p000"])

    assert relabelled(one, "shared") == 1
    assert wishes.asked == ["p001"]


def test_as_many_keys_as_are_allowed_are_looked_up() -> None:
    wishes = Wishes()
    one = scene(wishes)
    wait(one, "modest", *["app-0"] * MANY)
    relabelled(one, str(KEYS_MAX))

    assert wishes.asked == []
    relabelled(one, "key-0")
    assert wishes.asked == ["p000"]


def test_of_a_change_that_offers_nothing_not_even_a_handful_is_asked() -> None:
    wishes = Wishes()
    one = scene(wishes)
    wait(one, "any", "app-1", "app-2")

    assert relabelled(one, "nothing") == 1
    assert wishes.asked == ["p000"], "who does not say what it seeks"
