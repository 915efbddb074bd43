"""What a tenant can reserve with promised starts: no more than its share, by ends that are true."""

from typing import Any

import pytest
from msgspec.structs import replace

from asched.core.cluster.facts import Bound, Done, Gone, Seen, WallClock
from asched.core.framework.effects import Bind, DeletePod, PatchPodStatus
from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP, ELASTIC_QUOTA, JOB, NODE, POD
from asched.core.model.quotas import ElasticQuota
from asched.core.model.timestamp import rfc3339
from asched.core.model.workload import CoschedulingGroup, Job
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.playbook import Play

EPOCH_S = 1_700_000_000.0
DURATION = "asched.dev/expected-duration-seconds"
TRUSTED = {"maxNamespacePercentage": 100}
PROMISED = "; expected to start by "


class Cluster:
    """A scheduler with Backfill on nodes of 4 CPUs; bindings succeed, placed pods are started."""

    def __init__(self, nodes: int, *, quotas: bool = False, **args: Any) -> None:
        enabled = [{"name": "Coscheduling"}, {"name": "Backfill"}]
        plugins: dict[str, Any] = {
            "multiPoint": {"enabled": enabled, "disabled": [{"name": "PrioritySort"}]}
        }
        if quotas:
            plugins["multiPoint"]["enabled"].append({"name": "CapacityScheduling"})
            plugins["postFilter"] = {"disabled": [{"name": "*"}]}
        config = [{"name": "Backfill", "args": args}]
        own = {"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": config}
        self.play = Play(*(room(f"n{number}") for number in range(nodes)), profiles=[own])
        self.places: dict[str, str] = {}
        self.words: dict[str, str] = {}
        self.takes_time_to_go = False
        self.play.turn(WallClock(EPOCH_S - self.play.now_s))

    def go(self, *facts: Any, after_s: float = 0.0) -> None:
        self.play.turn(*facts, after_s=after_s)
        while True:
            answers: list[Any] = []
            for patch in self.play.of(PatchPodStatus):
                if "message" in (patch.condition or ()):
                    self.words[patch.pod.name] = patch.condition["message"]
            for bind in self.play.of(Bind):
                self.places[bind.pod.name] = bind.node
                pod = self.play.parts.cluster.pods_seen[bind.pod.key].on(bind.node)
                started = rfc3339(self.play.parts.cluster.wall_clock_s)
                status = replace(pod.status, start_time=started)
                answers += [Bound(bind.id), Seen(POD, replace(pod, status=status))]
            for gone in () if self.takes_time_to_go else self.play.of(DeletePod):
                answers += [
                    Done(gone.id),
                    Gone(POD, self.play.parts.cluster.pods_seen[gone.pod.key]),
                ]
            if not answers:
                return
            self.play.turn(*answers)

    def show(self, *pods: PodBuilder) -> None:
        self.go(*(Seen(POD, pod.spec(schedulerName="default-scheduler").build()) for pod in pods))

    def end(self, name: str, namespace: str = "others") -> None:
        self.go(Gone(POD, self.play.parts.cluster.pods_seen[f"{namespace}/{name}"]))

    def wait(self, seconds: float) -> None:
        """Pass time as a process does: from deadline to deadline."""
        until_s = self.play.now_s + seconds
        while (due_s := self.play.machine.next_deadline_s()) is not None and due_s <= until_s:
            self.go(after_s=max(due_s - self.play.now_s, 0.01))
        self.go(after_s=until_s - self.play.now_s)

    def gang(self, name: str, *pods: PodBuilder, namespace: str = "default") -> None:
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
        spec = {"minMember": len(pods)}
        group = decode(CoschedulingGroup, {"metadata": metadata, "spec": spec})
        self.go(Seen(COSCHEDULING_GROUP, group))
        self.show(*(pod.labels({"scheduling.x-k8s.io/pod-group": name}) for pod in pods))

    def has_promise(self, name: str) -> bool:
        return PROMISED in self.words.get(name, "")


def room(name: str) -> NodeBuilder:
    return a_node(name).allocatable(cpu="4", memory="64Gi", pods="100")


def asking(name: str, cpu: str = "1", namespace: str = "default") -> PodBuilder:
    return a_pod(name, namespace).requests(cpu=cpu)


def ending(pod: PodBuilder, seconds: int) -> PodBuilder:
    return pod.spec(activeDeadlineSeconds=seconds)


def expecting(pod: PodBuilder, seconds: int) -> PodBuilder:
    return pod.metadata(annotations={DURATION: str(seconds)})


def of_others(name: str, cpu: str = "1") -> PodBuilder:
    return asking(name, cpu, "others")


def with_false_ends(**args: Any) -> Cluster:
    """A gang as large as the cluster, beside tiny pods that say that they end in a minute."""
    cluster = Cluster(4, **args)
    cluster.show(*(expecting(asking(f"tiny-{n}", "1m"), 60).on(f"n{n}") for n in range(4)))
    started = {"startTime": rfc3339(EPOCH_S)}
    cluster.show(
        *(expecting(asking(f"tiny-{n}", "1m"), 60).on(f"n{n}").status(**started) for n in range(4))
    )
    cluster.gang("large", *(asking(f"w{n}", "4") for n in range(4)))
    return cluster


@pytest.mark.parametrize("args", [{}, TRUSTED])
def test_by_default_an_end_that_nothing_enforces_promises_nothing(args: dict[str, Any]) -> None:
    cluster = with_false_ends(**args)

    cluster.show(of_others("single"))

    assert "single" in cluster.places
    assert not cluster.has_promise("w0")


def test_an_end_that_was_overrun_is_not_believed_again() -> None:
    cluster = with_false_ends(**TRUSTED, softEnds=True)
    assert cluster.has_promise("w0")
    cluster.show(of_others("single"))
    assert "single" not in cluster.places

    cluster.wait(300)

    assert "single" in cluster.places


def test_an_owner_that_moves_its_end_back_is_not_believed_either() -> None:
    cluster = with_false_ends(**TRUSTED, softEnds=True)
    cluster.show(of_others("single"))
    for minute in range(2, 12):
        cluster.wait(50)
        started = {"startTime": rfc3339(EPOCH_S)}
        for number in range(4):
            tiny = expecting(asking(f"tiny-{number}", "1m"), 60 * minute)
            cluster.show(tiny.on(f"n{number}").status(**started))

    assert "single" in cluster.places


@pytest.mark.parametrize("what", ["label", "job of another controller", "job without a start"])
def test_what_only_looks_like_a_deadline_promises_nothing(what: str) -> None:
    cluster = Cluster(1, **TRUSTED)
    pod = asking("long", "3")
    if what == "label":
        pod = pod.labels({"kueue.x-k8s.io/max-exec-time-seconds": "60"})
    else:
        spec: dict[str, Any] = {"activeDeadlineSeconds": 60}
        status: dict[str, Any] = {}
        if what == "job of another controller":
            spec["managedBy"] = "example.com/own"
            status["startTime"] = rfc3339(EPOCH_S)
        metadata = {"name": "job", "namespace": "default", "uid": "uid-job"}
        cluster.go(Seen(JOB, decode(Job, {"metadata": metadata, "spec": spec, "status": status})))
        owner = {"kind": "Job", "name": "job", "uid": "uid-job", "controller": True}
        pod = pod.metadata(ownerReferences=[owner])
    cluster.show(pod.on("n0").status(startTime=rfc3339(EPOCH_S)))

    cluster.show(asking("large", "4"))

    assert "large" in cluster.words
    assert not cluster.has_promise("large")


def busy(nodes: int, **args: Any) -> Cluster:
    """Each node has 3 of its 4 CPUs in use for 1,000 seconds."""
    cluster = Cluster(nodes, **args)
    cluster.show(*(ending(of_others(f"busy-{n}", "3"), 1000) for n in range(nodes)))
    assert len(cluster.places) == nodes
    return cluster


def test_a_namespace_may_reserve_a_tenth_of_the_cluster_by_default() -> None:
    cluster = busy(10, reservations=9)
    cluster.gang("two", *(asking(f"two-{n}", "4") for n in range(2)))
    cluster.show(asking("one", "4"))
    cluster.show(asking("another", "4"))

    assert not cluster.has_promise("two-0")
    assert cluster.has_promise("one")
    assert not cluster.has_promise("another")
    assert (
        "no start is promised: promises to its namespace may reserve 10 % of the cluster"
        in (cluster.words["another"])
    )
    cluster.show(*(of_others(f"small-{n}") for n in range(9)))
    assert {f"small-{n}" for n in range(9)} <= set(cluster.places), "on all other nodes"


def test_the_share_is_counted_for_each_namespace() -> None:
    cluster = busy(10, reservations=9)
    cluster.show(asking("one", "4"))
    cluster.show(asking("foreign", "4", "third"))

    assert cluster.has_promise("one")
    assert cluster.has_promise("foreign")


def test_a_promise_has_the_priority_of_the_least_important_pod_that_it_is_made_to() -> None:
    cluster = busy(2, **TRUSTED)
    cluster.gang("mixed", asking("high", "4").priority(1000), asking("low", "4"))
    assert cluster.has_promise("high")

    cluster.show(of_others("middle").priority(500))

    assert "middle" in cluster.places


def test_more_important_pods_do_not_heed_a_promise() -> None:
    cluster = busy(1, **TRUSTED)
    cluster.show(asking("large", "4"))
    assert cluster.has_promise("large")

    cluster.show(of_others("equal"))
    cluster.show(of_others("vip").priority(1))

    assert "equal" not in cluster.places
    assert "vip" in cluster.places


def test_a_promise_gives_way_to_a_nominated_pod() -> None:
    """A pod evicts another one, which takes its time to go; a larger pod waits as well."""
    cluster = busy(1, **TRUSTED)
    cluster.takes_time_to_go = True
    cluster.show(of_others("victim").priority(-1))
    cluster.show(of_others("nominated"))
    cluster.show(asking("large", "4"))
    cluster.wait(5)
    assert "nominated" not in cluster.places

    cluster.end("victim")
    cluster.wait(5)

    assert "nominated" in cluster.places


def test_a_promise_ends_when_its_time_is_over_however_often_it_was_moved() -> None:
    cluster = Cluster(1, **TRUSTED, horizonSeconds=3600)
    cluster.show(ending(of_others("vip-0", "1"), 900))
    cluster.show(asking("large", "4"))
    assert cluster.has_promise("large")
    cluster.show(of_others("single"))
    placed_at_s = 0
    for number in range(1, 15):  # more important pods keep it from its start
        cluster.wait(400)
        cluster.show(ending(of_others(f"vip-{number}"), 900).priority(9))
        if number >= 2:
            cluster.end(f"vip-{number - 2}")
        cluster.wait(5)
        if "single" in cluster.places and not placed_at_s:
            placed_at_s = 405 * number

    assert "large" not in cluster.places
    assert 2000 < placed_at_s <= 3600


def a_quota(namespace: str, cpu: str) -> Seen:
    amounts = {"cpu": cpu, "memory": "64Gi", "ephemeral-storage": "1Ti"}
    metadata = {"name": "quota", "namespace": namespace, "uid": f"uid-quota-{namespace}"}
    body = {"metadata": metadata, "spec": {"min": amounts, "max": amounts}}
    return Seen(ELASTIC_QUOTA, decode(ElasticQuota, body))


def test_promises_count_against_the_elastic_quota_of_their_namespace() -> None:
    cluster = Cluster(2, quotas=True, **TRUSTED, reservations=9)
    cluster.show(*(ending(of_others(f"busy-{n}", "3"), 1000) for n in range(2)))
    cluster.go(a_quota("default", "5"))

    cluster.show(asking("one", "4"))
    cluster.show(asking("two", "4"))

    assert cluster.has_promise("one")
    assert not cluster.has_promise("two")


def test_the_cause_of_a_delay_names_no_pods_of_other_namespaces() -> None:
    cluster = Cluster(1, **TRUSTED)
    cluster.show(ending(asking("secret-project", "3", "bank"), 100))
    cluster.show(asking("large", "4"))
    assert cluster.has_promise("large")

    cluster.wait(200)  # it does not end in time
    cluster.show(ending(asking("secret-vip", "1", "bank"), 400).priority(9))
    cluster.wait(60)

    assert "not by" in cluster.words["large"]
    assert "secret" not in cluster.words["large"]
    assert "bank" not in cluster.words["large"]


def test_the_cause_of_a_delay_names_pods_of_the_own_namespace() -> None:
    cluster = Cluster(1, **TRUSTED)
    cluster.show(ending(asking("mine", "3"), 100))
    cluster.show(asking("large", "4"))

    cluster.wait(200)

    assert "pod default/mine does not end by" in cluster.words["large"]


def test_a_promise_is_kept_although_a_node_went() -> None:
    cluster = busy(2, **TRUSTED)
    cluster.show(asking("large", "4"))
    assert cluster.has_promise("large")
    cluster.go(Gone(NODE, room("n0").build()))
    cluster.wait(60)
    assert cluster.has_promise("large")

    for number in range(2):
        cluster.end(f"busy-{number}")
    cluster.wait(60)

    assert "large" in cluster.places
