"""What is supposed of a cluster is so while it is supposed, and leaves nothing behind."""

import pytest

from asched.core.model.kinds import NODE, PERSISTENT_VOLUME
from asched.core.model.meta import ObjectMeta
from asched.core.model.volume import PersistentVolume, PersistentVolumeStatus
from asched.core.state.audit import recount
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Gone, Seen
from tests.builders import a_cluster, a_node, a_pod, pending
from tests.topology_world import RandomWorld


def two_nodes() -> Cluster:
    return a_cluster(
        a_node("n1").allocatable(cpu="4", memory="8Gi", pods="10"),
        a_node("n2").allocatable(cpu="4", memory="8Gi", pods="10"),
        pods=(
            a_pod("a").requests(cpu="1").host_port(80).on("n1"),
            a_pod("b").requests(cpu="2").on("n1"),
        ),
    )


def asked(cluster: Cluster, row: int = 0) -> tuple[int, int]:
    """(milli-CPU, pods) on a row."""
    read = cluster.nodes.columns.read
    return int(read("requested")[0, row]), int(read("pod_count")[row])


def test_a_step_is_taken_back_by_itself_and_the_rest_at_the_end() -> None:
    cluster = two_nodes()
    there = {info.pod.metadata.name: info for info in cluster.pods_on(0).values()}
    guest = pending(cluster, a_pod("guest").requests(cpu="500m"))

    with cluster.supposing().gone(there.values(), 0) as suppose:
        assert asked(cluster) == (0, 0)
        suppose.there((there["b"],), 0)
        assert asked(cluster) == (2000, 1)
        with cluster.supposing().there((guest,), 0):
            assert asked(cluster) == (2500, 2)
        suppose.back()
        assert asked(cluster) == (0, 0)
        suppose.there((there["a"],), 0)
        assert set(cluster.pods_on(0)) == {there["a"].pod.uid}

    assert asked(cluster) == (3000, 2)
    assert recount(cluster) == []


def test_a_port_is_free_with_one_of_its_users_and_both_have_it_again() -> None:
    """No two should have it; upstream's dry runs free it with the first that goes."""
    cluster = a_cluster(
        a_node("n1"), pods=(a_pod("a").host_port(80).on("n1"), a_pod("b").host_port(80).on("n1"))
    )
    first, _ = cluster.pods_on(0).values()
    before = cluster.occupancy.ports_of((first,), 0)
    with cluster.supposing().gone((first,), 0):
        assert cluster.occupancy.ports_of((first,), 0) == {("TCP", 80): {}}
    assert cluster.occupancy.ports_of((first,), 0) == before == {("TCP", 80): {"0.0.0.0": 2}}


def test_nothing_of_a_row_is_logged_and_everything_of_a_fact_is() -> None:
    cluster = two_nodes()
    there = tuple(cluster.pods_on(0).values())
    end = cluster.nodes.log.end
    with cluster.supposing().gone(there, 0):
        pass
    assert cluster.nodes.log.end == end
    with cluster.supposing().without(there):
        assert cluster.nodes.log.end > end
        assert not cluster.placed
        end = cluster.nodes.log.end
    assert cluster.nodes.log.end > end  # and back again
    assert {info.node_name for info in cluster.placed.values()} == {"n1"}


def test_pods_of_a_lost_node_are_supposed_away_and_are_orphans_again() -> None:
    cluster = two_nodes()
    there = tuple(cluster.pods_on(0).values())
    cluster.apply(Gone(NODE, cluster.node_of("n1")))
    with cluster.supposing().without(there):
        assert not cluster.placed
    assert [info.row for info in cluster.placed.values()] == [-1, -1]
    assert recount(cluster) == []


def test_a_node_is_another_one_or_there_at_all() -> None:
    cluster = two_nodes()
    smaller = a_node("n1").allocatable(cpu="1", memory="1Gi", pods="1").build()
    with cluster.supposing().seen(NODE, smaller).seen(NODE, a_node("n3").build()):
        assert cluster.nodes.columns.read("allocatable")[0, 0] == 1000
        assert cluster.nodes.count == 3
        assert asked(cluster) == (3000, 2)
    assert cluster.nodes.columns.read("allocatable")[0, 0] == 4000
    assert cluster.nodes.count == 2
    assert recount(cluster) == []


def test_a_pod_that_is_nowhere_is_supposed_on_a_node_as_a_fact() -> None:
    cluster = two_nodes()
    guest = pending(cluster, a_pod("guest").requests(cpu="500m").host_port(80))
    end = cluster.nodes.log.end
    with cluster.supposing().placed(guest, "n2"):
        assert asked(cluster, 1) == (500, 1)
        assert cluster.nodes.log.end > end
        assert cluster.placed[guest.pod.uid].row == 1
    assert (guest.row, guest.pod.uid in cluster.placed) == (-1, False)
    assert recount(cluster) == []


@pytest.mark.parametrize("is_assumed", [True, False])
def test_an_object_is_supposed_whatever_version_of_ours_is_assumed(is_assumed: bool) -> None:
    def volume(phase: str, version: str) -> PersistentVolume:
        metadata = ObjectMeta(name="pv", uid="pv", resource_version=version)
        return PersistentVolume(metadata, status=PersistentVolumeStatus(phase))

    cluster, kind = two_nodes(), PERSISTENT_VOLUME
    cluster.apply(Seen(kind, volume("told", "5")))
    if is_assumed:
        cluster.assume_object(kind, volume("assumed", "5"))
    with cluster.supposing().seen(kind, volume("supposed", "5")):
        assert cluster.get(kind, "pv").status.phase == "supposed"
        assert cluster.told(kind, "pv").status.phase == "supposed"
    assert cluster.told(kind, "pv").status.phase == "told"
    assert cluster.get(kind, "pv").status.phase == ("assumed" if is_assumed else "told")
    epoch = cluster.epoch
    cluster.restore_object(kind, "pv")
    assert (cluster.epoch > epoch) is is_assumed, "else there is no version of ours"
    with cluster.supposing().seen(kind, PersistentVolume(ObjectMeta(name="new"))):
        assert cluster.get(kind, "new") is not None
    assert cluster.get(kind, "new") is None


@pytest.mark.parametrize("seed", range(20))
def test_random_suppositions_leave_no_trace(seed: int) -> None:
    """Facts first, then rows, steps taken back now and then: as a fresh count has it in the end."""
    world = RandomWorld(7000 + seed)
    rng, cluster = world.rng, world.cluster
    for _ in range(12):
        world.step()
        if not world.nodes:
            continue
        before = {uid: (i.node_name, i.row) for uid, i in cluster.placed.items()}
        with cluster.supposing() as suppose:
            for _ in range(rng.randint(0, 3)):
                placed = [i for i in cluster.placed.values() if not i.assumed]
                suppose.without(rng.sample(placed, min(len(placed), rng.randint(0, 4))))
                suppose.placed(world.info(world.some_pod("")), rng.choice(list(world.nodes)))
            if rng.random() < 0.3:
                suppose.seen(
                    NODE, a_node(rng.choice((*world.nodes, "new"))).labels(zone="z").build()
                )
            for _ in range(rng.randint(0, 4)):
                row = cluster.nodes.row_of[rng.choice(list(world.nodes))]
                there = list(cluster.pods_on(row).values())
                if there and rng.random() < 0.5:
                    suppose.gone(rng.sample(there, rng.randint(1, len(there))), row)
                else:
                    suppose.there([world.info(world.some_pod(""))], row)
                if rng.random() < 0.4:
                    suppose.back()
        assert {uid: (i.node_name, i.row) for uid, i in cluster.placed.items()} == before
        assert recount(cluster) == []


def test_what_was_supposed_is_no_step_of_the_journal() -> None:
    cluster = two_nodes()
    info = next(iter(cluster.placed.values()))
    guest = pending(cluster, a_pod("guest"))
    node = a_node("n1").cordoned().build()
    end = cluster.journal.end
    for suppose in (
        lambda: cluster.supposing().without([info]),
        lambda: cluster.supposing().placed(guest, "n2"),
        lambda: cluster.supposing().seen(NODE, node),
        lambda: cluster.supposing().gone([info], 0),
    ):
        with suppose():
            pass
        assert cluster.journal.end == end


def test_a_pod_that_waits_for_the_rest_of_its_gang_waits_on() -> None:
    member = a_pod("member").spec(schedulingGroup={"podGroupName": "crew"}).on("n1")
    other = a_pod("other").spec(schedulingGroup={"podGroupName": "crew"}).on("n1")
    cluster = a_cluster(a_node("n1"), pods=(member, other))
    groups = cluster.pod_groups
    groups.hold(member.build())
    with cluster.supposing().without(list(cluster.placed.values())):
        assert not groups.holds(member.build())
    assert groups.holds(member.build())
    assert not groups.holds(other.build())
