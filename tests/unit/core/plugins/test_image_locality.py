"""ImageLocality: what images are worth, and how they are named."""

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.plugins.image_locality import ImageLocality
from tests.builders import NodeBuilder, PodBuilder, a_cluster, a_node, a_pod, all_rows, pending


def scores(cluster: Cluster, pod: PodBuilder) -> list[int]:
    plugin = ImageLocality(cluster)
    return plugin.score(pending(cluster, pod), all_rows(cluster), None).tolist()


def others(count: int) -> list[NodeBuilder]:
    return [a_node(f"other-{number}") for number in range(count)]


def test_an_image_on_two_of_five_nodes() -> None:
    holders = [a_node(name).image("app:latest", mib=500) for name in ("n1", "n2")]

    assert scores(a_cluster(*holders, *others(3)), a_pod()) == [18, 18, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "images", "expected"),
    [
        ("small and medium", {"a:1": 40, "b:1": 300}, 7),
        ("one of medium size", {"b:1": 250}, 5),
        ("a huge one counts up to the limit", {"b:1": 4000}, 100),
    ],
)
def test_two_containers_on_two_nodes(name: str, images: dict[str, int], expected: int) -> None:
    node = a_node("n1")
    for image, mib in images.items():
        node.image(image, mib=mib)
    pod = a_pod().image("a:1").container("b:1")

    assert scores(a_cluster(node, *others(1)), pod) == [expected, 0]


def test_the_same_image_counts_for_each_container() -> None:
    cluster = a_cluster(a_node("n1").image("a:1", mib=600))

    once, twice = a_pod().image("a:1"), a_pod().image("a:1").container("a:1")

    assert scores(cluster, once) == [100 * (600 - 23) // (1000 - 23)]
    assert scores(cluster, twice) == [100 * (1200 - 23) // (2000 - 23)]


def test_init_containers_count_like_others_and_image_volumes_add_to_the_sum_alone() -> None:
    node = a_node("n1").image("a:1", mib=300).image("files:1", mib=400)
    with_init = a_pod().image("b:1").init("a:1")
    with_volume = a_pod().image("b:1")
    with_volume.spec(volumes=[{"name": "v", "image": {"reference": "files:1"}}])

    assert scores(a_cluster(node), with_init) == [100 * (300 - 23) // (2000 - 23)]
    assert scores(a_cluster(node), with_volume) == [100 * (400 - 23) // (1000 - 23)]


@pytest.mark.parametrize(
    ("wanted", "known"),
    [
        ("app", "app:latest"),
        ("host:5000/app", "host:5000/app:latest"),
        ("host:5000/app:v1", "host:5000/app:v1"),
        ("app@sha256:abc", "app@sha256:abc"),
    ],
)
def test_a_name_without_tag_means_latest(wanted: str, known: str) -> None:
    cluster = a_cluster(a_node("n1").image("first:name", known, mib=1000))

    assert scores(cluster, a_pod().image(wanted)) == [100]
