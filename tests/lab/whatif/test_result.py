"""Fullness, fragmentation and differences, by sums that can be done in one's head."""

import json
from xml.etree import ElementTree as ET

from asched_lab.whatif.programs import differences, picture, simulate
from tests.lab.whatif.clusters import a_deployment, a_node, a_pod, a_snapshot, supposed


def test_fullness_counts_nodes_that_take_pods() -> None:
    result = supposed(
        a_node("n1"),
        a_node("n2"),
        a_node("closed", "64", unschedulable=True),
        a_pod("there", "1", on="n1"),
        a_pod("hidden", "8", on="closed"),
        workloads=(a_deployment("web", 3),),
    )
    cpu = result.rooms[0]
    assert (cpu.resource, cpu.offered_before, cpu.asked_before) == ("cpu", 8000, 1000)
    assert (cpu.offered, cpu.asked) == (8000, 4000)
    assert (cpu.before, cpu.after) == (0.125, 0.5)
    (closed,) = [node for node in result.nodes if not node.is_open]
    assert (closed.shares["cpu"], closed.pods, closed.new) == (0.125, 1, 0)
    assert sum(node.new for node in result.nodes) == 3


def test_free_room_in_pieces_too_small_is_fragmentation() -> None:
    """Two pods of 3 cores on nodes of 4: a core is left on each, and none takes the typical pod;
    in one piece four such nodes would leave room for one more.
    """
    nodes = [a_node(f"n{number}") for number in range(4)]
    result = supposed(*nodes, workloads=(a_deployment("web", 4, "3"),))
    assert len(result.placed) == 4
    assert result.typical is not None
    assert (result.typical.cpu, result.typical.fits, result.typical.fits_in_one_piece) == (
        *(3000, 0),
        1,
    )
    assert result.typical.fragmentation == 1.0


def test_what_is_asked_again_of_lost_capacity_is_told() -> None:
    result = supposed(a_node("n1"), a_node("n2"), lose=("n2",))
    cpu = result.rooms[0]
    assert (cpu.offered_before, cpu.offered) == (8000, 4000)
    assert result.typical is None  # there is no pod to be typical


def test_equal_pods_differ_by_how_many_are_where() -> None:
    snapshot = a_snapshot(a_node("n1"), a_node("n2"))
    web = a_deployment("web", 2)
    here = simulate(snapshot, [web])
    assert differences(here, simulate(snapshot, [web])) == []
    there = simulate(snapshot, [web], lose=["n2"])
    (one,) = differences(here, there)
    assert (one.here, one.there) == ("n2", "n1")


def test_what_is_told_can_be_written_down() -> None:
    result = supposed(a_node("n1"), a_pod("web"), a_pod("big", "9"))
    told = json.loads(json.dumps(result.told()))
    assert (told["placed"], told["pending"]) == (1, 1)
    pods = {pod["pod"]: pod for pod in told["pods"]}
    assert pods["default/web"] == {"pod": "default/web", "node": "n1"}
    assert pods["default/big"]["node"] == ""
    assert pods["default/big"]["why"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert told["resources"][0]["askedBefore"] == 0


def test_the_picture_has_every_node_and_needs_nothing_else() -> None:
    nodes = [a_node(f"n<{number}") for number in range(70)]
    result = supposed(*nodes, a_node("shut", unschedulable=True), a_pod("web", "2"))
    drawn = picture("what & why", result)
    root = ET.fromstring(drawn)
    titles = [node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 71
    assert any(title.endswith("1 pods, 1 new") and "cpu 50%" in title for title in titles)
    assert any(title.startswith("shut: ") and title.endswith("takes no pods") for title in titles)
    assert root.get("aria-label") == "what & why: 1 placed, 0 wait"
    assert "href" not in drawn
