"""A cache of a cluster, with a word for each thing that happens, and for what is believed."""

from typing import Any

from asched.core.framework.per_class import PerClass
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from asched.core.state.facts import Gone
from asched.core.state.pods import PodInfo
from asched.hardware.numa.cache import Mode, TopologyCache
from asched.hardware.numa.demand import demand_of
from asched.hardware.numa.fingerprint import fingerprint
from asched.hardware.numa.topology import NODE_RESOURCE_TOPOLOGY, NodeResourceTopology
from tests.hardware.numa.worlds import Json, World, a_node, a_pod, a_topology, a_zone

START_S, RESYNC_S = 1_800_000_000.0, 10.0
#: In place of cores: of the node's zones nothing certain is known.
STALE = "stale"


def named(*pods: str) -> str:
    return fingerprint(("default", pod) for pod in pods)


class Watched:
    """A cluster and a cache of it; cores by zone say what is believed."""

    def __init__(self, mode: Mode = Mode.OVER_RESERVE, **options: str) -> None:
        self.world = World()
        self.cluster = self.world.cluster
        self.now_s = START_S
        self.cluster.begin_turn(self.now_s, is_quiet=True)
        demand = PerClass(lambda cls: demand_of(cls.example))
        self.cache = TopologyCache(
            self.cluster, mode, demand, fingerprint, resync_s=RESYNC_S, **options
        )
        self.pods: dict[str, PodInfo] = {}

    def node(self, name: str = "n1", uid: str = "") -> "Watched":
        made = a_node(name)
        if uid:
            made["metadata"]["uid"] = uid
        self.world.add(made)
        return self

    def drop(self, name: str = "n1") -> None:
        self.cluster.apply(Gone(NODE, self.cluster.node_of(name)))

    def word(self, *cores: int, node: str = "n1", **attributes: str) -> "Watched":
        """An agent tells of zones with so many cores."""
        zones = [a_zone(at, cpu=str(one), memory="8Gi") for at, one in enumerate(cores)]
        self.world.tell(a_topology(node, *zones, **attributes))
        return self

    def no_word(self, node: str = "n1") -> None:
        told = decode(NodeResourceTopology, {"metadata": {"name": node}})
        self.cluster.apply(Gone(NODE_RESOURCE_TOPOLOGY, told))

    def places(self, name: str, cores: int, node: str = "n1") -> None:
        """We place a pod."""
        info = self.world.pending(a_pod(name, {"cpu": str(cores), "memory": "1Gi"}))
        self.state(node)
        self.cluster.assume(info, node)
        self.cache.reserve(info, node)
        self.pods[name] = info

    def fails(self, name: str, node: str = "n1") -> None:
        self.cache.release(f"pod-{name}", node)
        self.cluster.forget(self.pods.pop(name))

    def sees(self, name: str, phase: str, *, node: str = "n1", asked: Json | None = None) -> None:
        pod = a_pod(name, asked or {"cpu": "1", "memory": "1Gi"}, on=node)
        pod["status"]["phase"] = phase
        self.world.see(pod)

    def ends(self, name: str, node: str = "n1") -> None:
        self.cluster.apply(Gone(POD, decode(Pod, a_pod(name, {}, on=node))))

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.cluster.begin_turn(self.now_s, is_quiet=True)

    def state(self, node: str = "n1") -> Any:
        """Cores left by zone; STALE; None where nobody tells of zones."""
        self.cache.refresh()
        row, cache = self.cluster.nodes.row_of[node], self.cache
        height = self.cluster.nodes.height
        assert len(cache.is_fresh) == len(cache.has_topology) == cache.zones.size == height
        if not cache.has_topology[row]:
            assert cache.is_fresh[row]
            return None
        if not cache.is_fresh[row]:
            return STALE
        count = int(cache.zones.count[row])
        return [one // 1000 for one in cache.zones.of("cpu")[:count, row].tolist()]
