"""What a new version of an object asks of the queue, case by case."""

from dataclasses import dataclass
from operator import attrgetter

import msgspec
import pytest

from asched.core.model.kinds import NODE, PERSISTENT_VOLUME, POD, Kind
from asched.core.model.meta import ObjectMeta, Record
from asched.core.model.node import NodeSpec
from asched.core.model.pod import Pod
from asched.core.model.taint import Taint
from asched.core.model.volume import PersistentVolume
from asched.core.queue.event_handlers import (
    Announce,
    Enqueue,
    ForeignNomination,
    Refresh,
    Release,
    Step,
    Withdraw,
    steps,
)
from tests import builders
from tests.core.queue.waiting import PROFILE, a_node, a_pod


def told(todo: list[Step], old: Record | None, new: Record | None) -> list[str]:
    """Steps as words: an announcement by its label and the versions it passes on."""
    return [_word(step, old, new) for step in todo]


def _word(step: Step, old: Record | None, new: Record | None) -> str:
    match step:
        case Announce(change):
            passes = "o" * (change.old is not None) + "n" * (change.new is not None)
            assert passes != "on" or (change.old, change.new) == (old, new)
            limit = change.priority_at_most
            return f"{change.trigger.label}/{passes}" + ("" if limit is None else f"<={limit}")
        case Enqueue(pod):
            return f"enqueue {pod.uid}"
        case Refresh(was, now):
            assert (was, now) == (old, new)
            return f"refresh {now.uid}"
        case Withdraw(pod):
            return f"withdraw {pod.uid}"
        case Release(pod):
            return f"release {pod.uid}"
        case ForeignNomination(was, now):
            assert (was, now) == (old, new)
            return f"promise {now.uid} {now.status.nominated_node_name or 'nothing'}"


@dataclass(frozen=True)
class Case:
    name: str
    old: Pod | None
    new: Pod | None
    told: list[str]
    assumed: bool = False


def web(**fields: object) -> Pod:
    return a_pod("web", uid="u", **fields)


THEIRS = {"scheduler": "someone-else"}
CASES = [
    Case("a waiting pod appears", None, web(), ["enqueue u"]),
    Case("a pod of another scheduler waits", None, web(**THEIRS), []),
    Case("a running pod appears", None, web(node="n"), ["AssignedPodAdd/n"]),
    Case(
        "running pods count whoever placed them",
        None,
        web(node="n", **THEIRS),
        ["AssignedPodAdd/n"],
    ),
    Case("a waiting pod changes", web(), web(version=2), ["refresh u"]),
    Case("the same version once more", web(), web(), []),
    Case("another's waiting pod changes", web(**THEIRS), web(version=2, **THEIRS), []),
    Case("an assumed pod changes", web(), web(version=2), [], assumed=True),
    Case(
        "an assumed pod starts to end",
        web(),
        web(version=2, deleted="now"),
        ["release u", "AssignedPodDelete/o"],
        assumed=True,
    ),
    Case(
        "an assumed pod goes on ending",
        web(deleted="now"),
        web(version=2, deleted="now"),
        [],
        assumed=True,
    ),
    Case("a nomination is made", web(), web(version=2, nominated="n"), ["refresh u"]),
    Case(
        "a nomination is taken back",
        web(nominated="n", priority=7),
        web(version=2, priority=7),
        ["refresh u", "AssignedPodDelete/o<=7"],
    ),
    Case(
        "a nomination moves",
        web(nominated="n"),
        web(version=2, nominated="m"),
        ["refresh u", "AssignedPodDelete/o<=0"],
    ),
    Case("a nomination stays", web(nominated="n"), web(version=2, nominated="n"), ["refresh u"]),
    Case("a pod gets its node", web(), web(node="n"), ["AssignedPodAdd/n", "withdraw u"]),
    Case(
        "another's pod gets its node", web(**THEIRS), web(node="n", **THEIRS), ["AssignedPodAdd/n"]
    ),
    Case(
        "a running pod is relabelled",
        web(node="n"),
        web(node="n", labels={"a": "b"}),
        ["AssignedPodUpdatePodLabel/on"],
    ),
    Case("a running pod changes otherwise", web(node="n"), web(node="n"), ["AssignedPodUpdate/on"]),
    Case("a running pod goes", web(node="n"), None, ["AssignedPodDelete/o"]),
    Case(
        "another's pod comes with a nomination",
        None,
        web(nominated="n", **THEIRS),
        ["promise u n"],
    ),
    Case(
        "another's pod is nominated",
        web(**THEIRS),
        web(version=2, nominated="n", **THEIRS),
        ["promise u n"],
    ),
    Case(
        "another's nomination is taken back",
        web(nominated="n", **THEIRS),
        web(version=2, **THEIRS),
        ["promise u nothing"],
    ),
    Case(
        "another's nominated pod gets its node",
        web(nominated="n", **THEIRS),
        web(node="n", **THEIRS),
        ["AssignedPodAdd/n", "withdraw u"],
    ),
    Case("another's nominated pod goes", web(nominated="n", **THEIRS), None, ["withdraw u"]),
    Case("a waiting pod goes", web(), None, ["withdraw u"]),
    Case("another's waiting pod goes", web(**THEIRS), None, []),
    Case(
        "a nominated pod goes",
        web(nominated="n", priority=3),
        None,
        ["withdraw u", "AssignedPodDelete/o<=3"],
    ),
    Case(
        "an assumed pod goes",
        web(nominated="n"),
        None,
        ["withdraw u", "release u", "AssignedPodDelete/o"],
        assumed=True,
    ),
    Case(
        "an assumed pod whose profile is gone gets its node",
        web(**THEIRS),
        web(node="n", **THEIRS),
        ["AssignedPodAdd/n", "withdraw u"],
        assumed=True,
    ),
    Case(
        "an assumed pod whose profile is gone starts to end",
        web(**THEIRS),
        web(version=2, deleted="now", **THEIRS),
        ["release u", "AssignedPodDelete/o"],
        assumed=True,
    ),
    Case(
        "an assumed pod whose profile is gone goes",
        web(**THEIRS),
        None,
        ["withdraw u", "release u", "AssignedPodDelete/o"],
        assumed=True,
    ),
    Case(
        "a pod was replaced by one of its name",
        web(node="n"),
        a_pod("web", uid="v"),
        ["AssignedPodDelete/o", "enqueue v"],
    ),
]


def steps_of(
    kind: Kind, old: Record | None, new: Record | None, assumed: bool = False
) -> list[str]:
    found = steps(
        kind,
        old,
        new,
        owns=lambda pod: pod.spec.scheduler_name == PROFILE,
        is_assumed=lambda _: assumed,
    )
    return told(found, old, new)


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_pods(case: Case) -> None:
    assert steps_of(POD, case.old, case.new, case.assumed) == case.told


def test_arrivals_are_announced_where_somebody_waits_for_them() -> None:
    """A pod of the same name that replaces another one arrives, too; a new version does not."""
    another = a_pod("web", uid="before")
    for old, last in (
        (None, [Enqueue(web(), is_announced=True)]),
        (another, [Enqueue(web(), is_announced=True)]),
        (web(), []),
    ):
        found = steps(
            POD,
            old,
            web(),
            owns=lambda pod: pod.spec.scheduler_name == PROFILE,
            is_assumed=lambda _: False,
            announces_arrivals=True,
        )

        assert found[-1:] == last


BIG, SMALL = (builders.a_pod().requests(cpu=cpu).build() for cpu in ("2", "1"))


def test_nodes() -> None:
    plain, labelled = a_node("n"), a_node("n", zone="a")
    cordoned = msgspec.structs.replace(plain, spec=NodeSpec(unschedulable=True))
    tainted = msgspec.structs.replace(
        labelled, spec=NodeSpec(taints=(Taint("k", "v", "NoSchedule"),))
    )

    assert steps_of(NODE, None, plain) == ["NodeAdd/n"]
    assert steps_of(NODE, plain, None) == ["NodeDelete/o"]
    assert steps_of(NODE, plain, plain) == []
    assert steps_of(NODE, plain, cordoned) == []
    assert steps_of(NODE, cordoned, tainted) == [
        "NodeUpdateNodeTaint/on",  # uncordoned
        "NodeUpdateNodeLabel/on",
        "NodeUpdateNodeTaint/on",
    ]


def test_other_kinds() -> None:
    volume = PersistentVolume(metadata=ObjectMeta(name="v"))

    assert steps_of(PERSISTENT_VOLUME, None, volume) == ["PersistentVolumeAdd/n"]
    assert steps_of(PERSISTENT_VOLUME, volume, volume) == ["PersistentVolumeUpdate/on"]
    assert steps_of(PERSISTENT_VOLUME, volume, None) == ["PersistentVolumeDelete/o"]
