"""Classes of pods: shared by equal pods, remembered for a while, forgotten in the end."""

from asched.core.model.pod import Pod
from asched.core.state.pods import CLASS_BYTES, RECENT_BYTES_MAX, PodClasses
from tests.builders import a_pod


def test_equal_pods_share_a_class() -> None:
    classes = PodClasses()
    one, two = (a_pod(name).requests(cpu="1").build() for name in ("one", "two"))
    assert classes.class_of(one) is classes.class_of(two)
    assert classes.class_of(one) is not classes.class_of(a_pod("three").requests(cpu="2").build())


def test_a_volume_that_no_rule_reads_has_no_name() -> None:
    """The API server mounts a token in every pod, under another name in each."""

    def mounting(name: str, *volumes: dict[str, object]) -> Pod:
        token = {"name": f"kube-api-access-{name}", "projected": {"sources": []}}
        return a_pod(name).spec(volumes=[token, *volumes]).build()

    classes = PodClasses()
    assert classes.class_of(mounting("one")) is classes.class_of(mounting("two"))
    assert classes.class_of(mounting("one")) is classes.class_of(a_pod("three").build())

    claims = [{"name": "data", "persistentVolumeClaim": {"claimName": c}} for c in ("x", "x", "y")]
    x, x_too, y = (classes.class_of(mounting(str(n), claim)) for n, claim in enumerate(claims))
    assert x is x_too
    assert x is not y
    own = {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    assert classes.class_of(mounting("one", own)) is not classes.class_of(mounting("two", own))


def test_a_class_outlives_its_last_pod_for_a_while() -> None:
    """Pods that come one by one, each bound before the next, are of one class."""
    classes = PodClasses()
    number = classes.class_of(a_pod("one").requests(cpu="1").build()).number
    for index in range(100):
        classes.class_of(a_pod("other").requests(cpu=str(index + 2)).build())
    assert classes.class_of(a_pod("two").requests(cpu="1").build()).number == number

    for index in range(RECENT_BYTES_MAX // CLASS_BYTES):
        classes.class_of(a_pod("other").requests(cpu=str(index + 2)).build())
    assert classes.class_of(a_pod("three").requests(cpu="1").build()).number != number


def test_large_pods_push_out_more_of_those_that_nobody_uses() -> None:
    classes = PodClasses()
    for index in range(20):
        classes.class_of(
            a_pod("large")
            .spec(nodeName="", nodeSelector={"k": f"{index}"})
            .labels({f"key-{k}": "v" * 60 for k in range(1_000)})
            .build()
        )
    assert 1 <= len(classes._recent) < 10
    for _ in range(2):
        classes.class_of(a_pod("large").labels(x="y" * 1_000_000).build())
    assert len(classes._recent) == 1
