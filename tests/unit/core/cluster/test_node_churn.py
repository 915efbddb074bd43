"""What nodes showed once is forgotten: tables are as long as what lives, and mean what lives."""

import random

import numpy as np

from asched.core.cluster.audit import recount
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.model.kinds import NODE, POD
from asched.core.plugins.inter_pod_affinity import InterPodAffinity
from asched.core.plugins.node_affinity import NodeAffinity
from asched.core.plugins.node_declared_features import NodeDeclaredFeatures
from asched.core.plugins.taint_toleration import TaintToleration
from tests.builders import NodeBuilder, a_cluster, a_node, a_pod, all_rows, pending, term

HOST = "kubernetes.io/hostname"


def a_changing_node(name: str, time: int) -> NodeBuilder:
    """As autoscalers leave it: a time in a taint, in a label and in a label's key."""
    node = a_node(name).labels({HOST: f"{name}-{time}", "seen": str(time), f"job-{time}": "x"})
    node.taints(f"ToBeDeleted={time}:NoSchedule soft={time}:PreferNoSchedule")
    return node.features(f"F{time}").allocatable({f"example.com/r{time}": "1"})


def test_plugins_know_what_ids_mean_now() -> None:
    """Beside answers made from nothing, whatever happened to the nodes."""
    rng = random.Random(3)
    cluster = a_cluster()
    pods = [
        a_pod("a").tolerates("ToBeDeleted=1 soft=2").requires_nodes(term("seen In 1,3")),
        a_pod("b").tolerates("ToBeDeleted=2:NoSchedule").requires_nodes(term("seen Gt 1")),
        a_pod("c").labels(app="web").spec(affinity=_away_from("web", HOST)),
        a_pod("d").labels(app="web").spec(affinity=_away_from("web", "seen")),
    ]
    kept = _plugins(cluster)
    for step in range(150):
        name, time = f"n{rng.randrange(5)}", rng.randrange(6)
        if rng.random() < 0.2 and cluster.node_of(name) is not None:
            cluster.apply(Gone(NODE, cluster.node_of(name)))
        else:
            cluster.apply(Seen(NODE, a_changing_node(name, time).build()))
        placed = a_pod(f"p{rng.randrange(4)}").labels(app=rng.choice(("web", "db"))).on(name)
        cluster.apply(Seen(POD, placed.metadata(uid=f"uid-{step}").build()))
        if rng.random() < 0.3:
            continue
        for pod in pods:
            info = pending(cluster, pod)
            for one, fresh in zip(kept, _plugins(cluster), strict=True):
                assert _codes(one, info, cluster) == _codes(fresh, info, cluster)
            fresh = TaintToleration(cluster)
            scores = [p.score(info, all_rows(cluster), None) for p in (kept[0], fresh)]
            assert np.array_equal(*scores)
    assert recount(cluster) == []


def _plugins(cluster: Cluster) -> list:  # type: ignore[type-arg]
    return [
        TaintToleration(cluster),
        NodeAffinity(),
        NodeDeclaredFeatures(),
        InterPodAffinity(None, cluster),
    ]


def _codes(plugin, info, cluster: Cluster) -> list[int]:  # type: ignore[no-untyped-def]
    data = plugin.pre_filter(info).data if hasattr(plugin, "pre_filter") else None
    if plugin.name == "InterPodAffinity" and data.is_idle:
        return []
    return plugin.filter(info, all_rows(cluster), data).tolist()


def _away_from(app: str, key: str) -> dict[str, object]:
    selector = {"matchLabels": {"app": app}}
    return {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": key, "labelSelector": selector}
            ]
        }
    }


def test_a_node_that_lists_an_image_twice_can_go() -> None:
    """Kubelets list what the runtime has, and the API server lets them."""
    twice = a_node("n").image("lone", mib=10).image("lone", "app:1", mib=20).build()
    cluster = a_cluster(a_node("other").image("app:1", mib=10))
    cluster.apply(Seen(NODE, twice))
    cluster.apply(Gone(NODE, twice))
    assert {name: len(state.rows) for name, state in cluster.nodes.images.items()} == {"app:1": 1}
