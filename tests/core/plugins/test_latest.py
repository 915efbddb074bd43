"""The latest answer about a pod."""

from asched.core.plugins.latest import Latest
from asched.core.state.pods import PodInfo
from tests.volume_builders import a_claim, a_cluster, a_pod, see


def test_an_answer_holds_for_one_pod_while_no_object_changes() -> None:
    cluster = a_cluster()
    asked: list[str] = []

    def derive(pod: PodInfo) -> int:
        asked.append(pod.pod.metadata.name)
        return len(asked)

    latest = Latest(cluster, derive)
    a, b = (cluster.classes.info_of(a_pod(name)) for name in "ab")

    assert (latest(a), latest(a)) == (1, 1)
    assert latest(b) == 2
    assert latest(a) == 3
    see(cluster, a_claim("c"))
    assert latest(a) == 4
    assert asked == ["a", "b", "a", "a"]
