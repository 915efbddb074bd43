"""Whom the cluster tells of its steps: journal, groups, consumers, holds, domains, ports."""

from typing import Any

from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD, POD_GROUP
from asched.core.model.workload import PodGroup
from asched.core.state.audit import recount
from asched.core.state.cluster import Cluster
from asched.core.state.consumers import CONSUMES
from asched.core.state.facts import Gone, Seen
from asched.core.state.holds import HeldAmounts, HeldPlace
from asched.core.state.nodes import PODS_MOVED
from tests.builders import NodeBuilder, PodBuilder, a_cluster, a_node, a_pod, pending
from tests.core.state.scenes import WEBS


def see(cluster: Cluster, *built: PodBuilder | NodeBuilder) -> None:
    for one in built:
        cluster.apply(Seen(POD if isinstance(one, PodBuilder) else NODE, one.build()))


def web(name: str = "web") -> PodBuilder:
    return a_pod(name).requests(cpu="1").labels(app="web")


def steps(cluster: Cluster, position: int) -> list[tuple[str, bool, str]]:
    """(whose, whether it was there before, where a pod counted), oldest first."""
    told = [(s.key, s.before is not None, s.node) for s in cluster.journal.since(position)]
    return told[::-1]


def test_every_step_is_in_the_journal() -> None:
    cluster = a_cluster()
    see(cluster, a_node("n1"), a_node("n1").cordoned(), web().on("n1"))
    see(cluster, web().labels(a="b").on("n1"))
    cluster.apply(Gone(NODE, a_node("n1").build()))
    cluster.apply(Gone(POD, web().on("n1").build()))
    assert steps(cluster, 0) == [
        ("n1", False, ""),
        ("n1", True, ""),
        ("uid-web", False, ""),
        ("uid-web", True, "n1"),
        ("n1", True, ""),
        ("uid-web", True, "n1"),
    ]


def test_groups_know_their_pods_and_which_of_them_have_places() -> None:
    cluster = a_cluster(a_node("n1"))

    def member(name: str) -> PodBuilder:
        return a_pod(name).spec(schedulingGroup={"podGroupName": "crew"})

    see(cluster, member("a"), member("b"))
    pods = cluster.pod_groups.get("default/crew")
    assert (set(pods.unplaced), set(pods.placed)) == ({"uid-a", "uid-b"}, set())
    info = pending(cluster, member("a"))
    cluster.assume(info, "n1")
    assert (set(pods.unplaced), set(pods.placed)) == ({"uid-b"}, {"uid-a"})
    cluster.forget(info)
    assert (set(pods.unplaced), set(pods.placed)) == ({"uid-a", "uid-b"}, set())
    cluster.apply(Gone(POD, member("b").build()))
    assert set(pods.unplaced) == {"uid-a"}
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    metadata = {"name": "crew", "namespace": "default", "uid": "u"}
    cluster.apply(Seen(POD_GROUP, decode(PodGroup, {"metadata": metadata, "spec": spec})))
    assert cluster.pod_groups.gangs["default/crew"].min_count == 2


def test_consumers_of_requests_are_known_while_they_have_places() -> None:
    cluster = a_cluster(a_node("n1"))
    info = pending(cluster, web().metadata(annotations={CONSUMES: "job"}))
    cluster.assume(info, "n1")
    assert list(cluster.consumers.of("default/job")) == ["uid-web"]
    cluster.forget(info)
    assert not cluster.consumers.of("default/job")


def holding(cluster: Cluster, cpu: int = 1000) -> Any:
    cluster.holds.put("owner", [HeldPlace(HeldAmounts({"cpu": cpu}, pods=2), "n1")])
    return cluster.nodes.columns.read


def test_what_is_held_counts_as_pods_do_and_is_logged() -> None:
    cluster = a_cluster(a_node("n0"), a_node("n1"))
    cursor = cluster.nodes.log.end
    read = holding(cluster)
    assert (read("requested")[0, 1], read("pod_count")[1]) == (1000, 2)
    assert list(cluster.nodes.log.since(cursor) or ()) == [(1, PODS_MOVED)]
    assert not cluster.pods_on(1), "nobody finds a pod there whom he could evict"
    cluster.holds.drop("owner")
    assert (read("requested")[0, 1], read("pod_count")[1]) == (0, 0)
    pod = pending(cluster, a_pod("to-come").requests(cpu="3").host_port(80))
    cluster.holds.put("owner", [HeldPlace(pod, "n1")])
    assert (read("requested")[0, 1], read("pod_count")[1]) == (3000, 1)
    assert cluster.occupancy.ports[("TCP", 80)] == {1: {"0.0.0.0": 1}}
    assert not cluster.pods_on(1)


def test_holds_hear_of_pods_and_nodes_that_take_their_room() -> None:
    cluster = a_cluster(a_node("n1").allocatable(cpu="2"))
    holding(cluster)
    see(cluster, web("a").on("n1"))
    assert not cluster.holds.touched
    see(cluster, web("b").on("n1"))
    assert list(cluster.holds.touched) == ["owner"]
    cluster.holds.touched.clear()
    see(cluster, a_node("n1").allocatable(cpu="2").labels(a="b"))
    assert list(cluster.holds.touched) == ["owner"]
    cluster.holds.touched.clear()
    cluster.apply(Gone(NODE, a_node("n1").build()))
    assert list(cluster.holds.touched) == ["owner"]
    hold = cluster.holds.of("owner")
    assert hold is not None
    assert hold.places == ()


def zone_count(cluster: Cluster, zone: str) -> int:
    counts = cluster.counter(WEBS).domain("zone")
    column = cluster.nodes.label_column("zone")
    return int(counts[column.values.find(zone)])


def test_domains_follow_the_labels_of_nodes_and_pods() -> None:
    cluster = a_cluster(a_node("n1").labels(zone="a"), a_node("n2").labels(zone="b"))
    see(cluster, web().on("n1"))
    assert (zone_count(cluster, "a"), zone_count(cluster, "b")) == (1, 0)
    before = cluster.counts
    see(cluster, a_node("n1").labels(zone="b"))
    assert zone_count(cluster, "b") == 1
    see(cluster, a_pod("web").requests(cpu="1").on("n1"))
    assert zone_count(cluster, "b") == 0
    assert cluster.counts > before
    see(cluster, web("other").on("n2"))
    assert zone_count(cluster, "b") == 1
    cluster.apply(Gone(NODE, a_node("n2").labels(zone="b").build()))
    assert zone_count(cluster, "b") == 0
    assert recount(cluster) == []


def claiming(name: str) -> PodBuilder:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    return a_pod(name).spec(volumes=[volume])


def test_ports_and_claims_move_the_counts() -> None:
    cluster = a_cluster(a_node("n1"))
    before = cluster.counts
    see(cluster, claiming("a").on("n1"))
    assert cluster.occupancy.claims == {"default/data": {0: 1}}
    assert cluster.counts == before + 1
    cluster.apply(Gone(POD, claiming("a").on("n1").build()))
    assert cluster.occupancy.claims == {}
    assert cluster.counts == before + 2


def test_a_version_that_says_more_of_a_pod_counts_as_before() -> None:
    """Kubelets tell of resources in the status: only the key of the class is longer."""
    cluster = a_cluster(a_node("n1"), pods=[web().on("n1")])
    told = {"name": "c0", "resources": {"requests": {"cpu": "1"}}}
    told["allocatedResources"] = {"cpu": "1"}
    position = cluster.journal.end
    see(cluster, web().on("n1").status(containerStatuses=[told]))
    assert steps(cluster, position) == []
    grown = {**told, "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "2"}}
    see(cluster, web().on("n1").status(containerStatuses=[grown]))
    assert cluster.nodes.columns.read("requested")[0, 0] == 2000
    assert recount(cluster) == []


def test_what_rules_read_of_a_placed_pod_counts_as_it_comes_changes_and_goes() -> None:
    """Whoever keeps anything by row, like when its pods end, hears of each."""
    cluster = a_cluster(a_node("n1"))
    cluster.classes.tell_apart_by(("says",))
    cluster.classes.tell_apart_by_deadlines()
    see(cluster, web().on("n1"))

    def tells(**spec: Any) -> PodBuilder:
        return web().on("n1").spec(**spec)

    for version in (
        tells(activeDeadlineSeconds=9),
        tells(activeDeadlineSeconds=8).metadata(annotations={"says": "a"}),
        tells(activeDeadlineSeconds=8).metadata(annotations={"says": "a"}).status(phase="Running"),
        tells().metadata(annotations={"says": "b"}),
        tells(),
    ):
        cursor, before = cluster.nodes.log.end, cluster.placed["uid-web"].cls.told
        see(cluster, version)
        told = cluster.placed["uid-web"].cls.told
        rows = [row for row, _ in cluster.nodes.log.since(cursor) or ()]
        assert told == cluster.classes.class_of(version.build()).told
        assert bool(rows) is (told != before)
        assert recount(cluster) == []
