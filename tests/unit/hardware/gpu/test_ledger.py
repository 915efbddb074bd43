"""What the ledger knows of rows: which kinds of pods are there, and how many devices there are."""

import pytest

from asched.hardware.gpu.args import DEVICES_MAX, GpuSharingArgs
from asched.hardware.gpu.ledger import GpuLedger
from tests.builders import a_cluster, a_node, a_pod, all_rows, pending

GPU, PERCENT = "nvidia.com/gpu", "nvidia.com/gpucores"


def gpus(name: str, number: int):
    offered = {GPU: "640", PERCENT: "6400"}
    return a_node(name).allocatable(offered).labels({"nvidia.com/gpu.count": str(number)})


def asks(name: str, number: int, percent: int = 0):
    return a_pod(name).requests({GPU: str(number)} | ({PERCENT: str(percent)} if percent else {}))


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
    shares = GpuLedger(cluster, GpuSharingArgs()).shares(all_rows(cluster))

    assert DEVICES_MAX == 64
    assert shares.devices.tolist() == [devices]
    assert int((shares.free > 0).sum()) == devices


@pytest.mark.parametrize(
    ("number", "percent", "milli"),
    [(1, 1, 10), (1, 99, 990), (1, 100, 1000), (1, 150, 1000), (2, 50, 1000), (1, 0, 1000)],
)
def test_a_share_of_one_device_is_a_share_and_all_else_is_whole(
    number: int, percent: int, milli: int
) -> None:
    cluster = a_cluster(gpus("n1", 8))
    wish = pending(cluster, asks("x", number, percent))
    demand = GpuLedger(cluster, GpuSharingArgs()).demand(wish.cls)

    assert (demand.number, demand.milli) == (number, milli)
