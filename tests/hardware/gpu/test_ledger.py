"""What the ledger knows of rows: which kinds of pods are there, and how many devices there are."""

import pytest

from asched.core.model.kinds import NODE, POD
from asched.core.state.facts import Gone, Seen
from asched.hardware.gpu.args import DEVICES_MAX, GpuSharingArgs
from asched.hardware.gpu.ledger import Ledger, held_by
from asched.hardware.gpu.shares import Demand
from tests.builders import a_cluster, a_node, a_pod, all_rows, pending

GPU, PERCENT = "nvidia.com/gpu", "nvidia.com/gpucores"


def gpus(name: str, number: int):
    offered = {GPU: "640", PERCENT: "6400"}
    return a_node(name).allocatable(offered).labels({"nvidia.com/gpu.count": str(number)})


def asks(name: str, number: int, percent: int = 0):
    return a_pod(name).requests({GPU: str(number)} | ({PERCENT: str(percent)} if percent else {}))


def test_fractions_are_one_kind_and_each_number_of_whole_devices_another() -> None:
    placed = [
        asks("a", 1, 47).on("n1"),
        asks("b", 1, 20).on("n1"),
        asks("c", 4).on("n1"),
        asks("d", 1).on("n2"),
        a_pod("plain").on("n2"),
    ]
    cluster = a_cluster(gpus("n1", 8), gpus("n2", 2), gpus("n3", 1), pods=placed)
    ledger, view = Ledger(cluster, GpuSharingArgs()), all_rows(cluster)
    ledger.refresh()

    found = {
        demand: [part.tolist() for part in ledger.kinds(view, demand)]
        for demand in (Demand(0, 300, 1), Demand(0, 1000, 1), Demand(0, 1000, 4))
    }
    assert [same for same, _ in found.values()] == [
        [True, False, False],
        [False, True, False],
        [True, False, False],
    ]
    assert [how_many for _, how_many in found.values()] == [[2, 1, 0]] * 3


@pytest.mark.parametrize(
    ("label", "offered", "devices"),
    [
        ("3", "9", 3),
        ("", "9", 9),
        ("many", "9", 9),
        ("\u00b2", "9", 9),
        ("", "", 0),
        ("99", "1", 64),
    ],
)
def test_the_label_says_how_many_devices_there_are_else_what_is_allocatable(
    label: str, offered: str, devices: int
) -> None:
    node = a_node("n1").labels({"nvidia.com/gpu.count": label} if label else {})
    cluster = a_cluster(node.allocatable({GPU: offered} if offered else {}))
    shares = Ledger(cluster, GpuSharingArgs()).shares(all_rows(cluster))

    assert DEVICES_MAX == 64
    assert shares.devices.tolist() == [devices]
    assert int((shares.left > 0).sum()) == devices


@pytest.mark.parametrize(
    ("number", "percent", "milli"),
    [(1, 1, 10), (1, 99, 990), (1, 100, 1000), (1, 150, 1000), (2, 50, 1000), (1, 0, 1000)],
)
def test_a_share_of_one_device_is_a_share_and_all_else_is_whole(
    number: int, percent: int, milli: int
) -> None:
    cluster = a_cluster(gpus("n1", 8))
    wish = pending(cluster, asks("x", number, percent))
    demand = Ledger(cluster, GpuSharingArgs()).demand(wish.cls)

    assert (demand.number, demand.milli) == (number, milli)


def test_a_row_whose_pods_went_is_free_again() -> None:
    pod = asks("a", 4).on("n1")
    cluster = a_cluster(gpus("n1", 8), pods=[pod])
    ledger, view = Ledger(cluster, GpuSharingArgs()), all_rows(cluster)
    assert ledger.shares(view).left[0, :8].tolist() == [0] * 4 + [1000] * 4
    cluster.apply(Gone(POD, pod.build()))

    view = all_rows(cluster)
    assert ledger.shares(view).left[0, :8].tolist() == [1000] * 8
    assert ledger.kinds(view, Demand(0, 1000, 4))[1].tolist() == [0]


def test_rows_have_their_devices_however_many_others_have() -> None:
    """The widest come last; one holds a pod that asks for more than there are."""
    placed = [asks("a", 1).on("n1"), asks("b", 2).on("n2"), asks("c", 12).on("n3")]
    cluster = a_cluster(gpus("n1", 1), gpus("n2", 3), gpus("n3", 8), pods=placed)
    ledger, view = Ledger(cluster, GpuSharingArgs()), all_rows(cluster)
    shares = ledger.shares(view)
    assert [row[:8] for row in shares.left.tolist()] == [
        [0] * 8,
        [0, 0, 1000, 0, 0, 0, 0, 0],
        [0] * 8,
    ]
    assert shares.devices.tolist() == [1, 3, 8]
    assert ledger.kinds(view, Demand(0, 1000, 2))[0].tolist() == [False, True, False]
    for number in range(1, 2 * DEVICES_MAX):
        same, kinds = ledger.kinds(view, Demand(0, 1000, number))
        assert (len(same), kinds.tolist()) == (3, [1, 1, 1])


def test_devices_that_went_are_left_to_nobody() -> None:
    cluster = a_cluster(gpus("n1", 8), gpus("n2", 4), gpus("n3", 2))
    ledger = Ledger(cluster, GpuSharingArgs())
    ledger.shares(all_rows(cluster))
    cluster.apply(Seen(NODE, gpus("n1", 2).build()))
    cluster.apply(Gone(NODE, gpus("n2", 4).build()))
    shares = ledger.shares(all_rows(cluster))
    assert shares.devices.tolist() == [2, 0, 2]
    assert (shares.left > 0).sum(axis=1).tolist() == [2, 0, 2]


def test_what_all_ask_for_is_counted_once_however_often_it_is_read() -> None:
    cluster = a_cluster(gpus("n1", 8), pods=[asks("a", 2).on("n1"), asks("b", 2).on("n1")])
    ledger = Ledger(cluster, GpuSharingArgs())
    for _ in range(2):
        ledger.refresh()
        assert ledger.asked == {Demand(0, 1000, 2): 2}
        cluster.nodes.log.forget()


def test_a_pod_that_asks_for_no_device_asks_for_cpu_whatever_its_model() -> None:
    node = gpus("n1", 2).labels({"nvidia.com/gpu.product": "A100"})
    cluster = a_cluster(node)
    ledger = Ledger(cluster, GpuSharingArgs())
    chooses = {"nodeSelector": {"nvidia.com/gpu.product": "A100"}}
    plain = pending(cluster, a_pod("x").requests(cpu="2").spec(**chooses))
    assert ledger.demand(plain.cls) == Demand(2000)
    asking = pending(cluster, asks("y", 1).spec(**chooses))
    assert ledger.demand(asking.cls) == Demand(0, 1000, 1, ("A100",))
    shares = ledger.shares(all_rows(cluster))
    assert [shares.models[at] for at in shares.model.tolist()] == ["A100"]


def test_whoever_fits_on_no_device_is_taken_to_be_on_the_roomiest() -> None:
    using = [Demand(0, milli, 1) for milli in (500, 700, 600)]
    assert sorted(held_by(using, 2)) == [0, 300]
    assert held_by(using, 0) == []
