"""Pods with claims on their way through the machine: what is written, what is waited for."""

from typing import Any

from asched.core.cluster.facts import Done, Refused, Seen
from asched.core.framework.effects import Bind, Patch, PatchPodStatus
from asched.core.model.meta import Record
from tests.builders import a_node
from tests.playbook import Play
from tests.volume_builders import HOST, KIND_OF, a_claim, a_class, a_pod, a_volume

ON_N1 = {HOST: ["n1"]}


def a_play(*objects: Record, timeout_s: int = 600) -> Play:
    args = {"bindTimeoutSeconds": timeout_s}
    profile = {
        "schedulerName": "default-scheduler",
        "pluginConfig": [{"name": "VolumeBinding", "args": args}],
    }
    nodes = [a_node(name).labels({HOST: name}) for name in ("n0", "n1")]
    play = Play(*nodes, profiles=[profile])
    see(play, a_class("local"), a_class("dyn", "csi"), *objects)
    return play


def see(play: Play, *objects: Record, after_s: float = 0.0) -> None:
    play.turn(*(Seen(KIND_OF[type(obj)], obj) for obj in objects), after_s=after_s)


def written(patch: Patch, version: str) -> Done:
    metadata: dict[str, Any] = {"name": patch.name, "resourceVersion": version}
    return Done(patch.id, {"metadata": metadata})


def test_a_volume_is_bound_before_the_pod() -> None:
    """1. The claim is unknown. 2. It appears. 3. The volume is written. 4. Both say so. 5. Bind."""
    play = a_play(a_volume("pv", cls="local", reach=ON_N1, version="5"))
    see(play, a_pod("a", "c"))
    told = '0/2 nodes are available: persistentvolumeclaim "c" not found. not found'
    assert play.condition()["message"] == told

    see(play, a_claim("c", cls="local", version="6"), after_s=5)
    assert play.the(PatchPodStatus).nominated_node_name == "n1"
    patch = play.the(Patch)
    assert (patch.name, patch.body["spec"]["claimRef"]["name"]) == ("pv", "c")
    play.answer(written(patch, "7"))
    assert not play.of(Bind)
    see(play, a_volume("pv", cls="local", reach=ON_N1, version="8", claim=("c", "uid-c")))
    assert not play.of(Bind)
    see(play, a_claim("c", cls="local", volume="pv", version="9"))
    assert play.the(Bind).node == "n1"


def test_a_volume_that_never_comes_ends_in_an_error_and_another_attempt() -> None:
    play = a_play(timeout_s=4)
    claim = a_claim("c", cls="dyn", version="6")
    see(play, claim, a_pod("d", "c"))
    patch = play.the(Patch)
    node = patch.body["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
    play.answer(written(patch, "7"))
    see(play, a_pod("d", "c", nominated=node))
    see(play, a_claim("c", cls="dyn", version="7", selected=node))
    assert not play.effects

    play.turn(after_s=4)

    text = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    status = play.the(PatchPodStatus)
    assert status.condition is not None
    assert (status.condition["reason"], status.condition["message"]) == ("SchedulerError", text)
    assert status.nominated_node_name == ""
    assert play.notes() == [f"FailedScheduling: {text}"]
    play.turn(after_s=3)
    assert play.the(Patch).body["metadata"]["resourceVersion"] == "7"  # the annotation stayed


def test_a_refused_write_frees_the_volume_and_the_place() -> None:
    play = a_play(a_volume("pv", cls="local", reach=ON_N1), a_claim("c", cls="local"))
    see(play, a_pod("a", "c"))

    play.answer(Refused(play.the(Patch).id, 409, "the object has been modified", "Conflict"))

    text = 'running PreBind plugin "VolumeBinding": the object has been modified'
    assert play.condition()["message"] == text
    assert play.node_of("a") == ""
    play.turn(after_s=3)
    assert play.the(Patch).name == "pv"


def test_two_pods_do_not_take_one_volume() -> None:
    play = a_play(a_volume("pv", cls="local"), a_claim("c", cls="local"), a_claim("d", cls="local"))
    see(play, a_pod("a", "c"), a_pod("b", "d"))

    assert play.the(Patch).name == "pv"
    assert "2 node(s) didn't find available persistent volumes to bind" in "".join(play.notes())
