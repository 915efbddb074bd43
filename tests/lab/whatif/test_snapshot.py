"""What is written of a cluster, and what can be read again."""

import gzip
import io
import json

import orjson
import pytest
import yaml

from asched_lab.whatif.objects import SnapshotError, parsed
from asched_lab.whatif.snapshot import Snapshot, read
from tests.lab.whatif.clusters import a_node, a_pod, a_snapshot

SECRET = "hunter2"


def a_talkative_pod() -> dict:
    pod = a_pod("web", on="n1")
    container = pod["spec"]["containers"][0]
    container["env"] = [{"name": "PASSWORD", "value": SECRET}]
    container["command"] = ["serve", f"--password={SECRET}"]
    container["args"] = [SECRET]
    container["livenessProbe"] = {"httpGet": {"httpHeaders": [{"name": "X", "value": SECRET}]}}
    pod["spec"]["volumes"] = [{"name": "v", "configMap": {"name": SECRET}}]
    pod["metadata"]["annotations"] = {
        "vault.example.com/token": SECRET,
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"password": SECRET}),
        "scheduler.alpha.kubernetes.io/node-selector": "kept",
    }
    pod["metadata"]["managedFields"] = [{"manager": SECRET}]
    return pod


@pytest.mark.parametrize("form", ["lines", "list", "yaml", "packed"])
def test_nothing_that_no_scheduler_reads_is_written(form: str) -> None:
    snapshot = a_snapshot(a_node("n1"), a_talkative_pod())
    body = {
        "lines": b"".join(snapshot.lines()),
        "list": orjson.dumps(snapshot.as_list()),
        "yaml": yaml.safe_dump(snapshot.as_list()).encode(),
        "packed": gzip.compress(b"".join(snapshot.lines())),
    }[form]
    plain = gzip.decompress(body) if form == "packed" else body

    assert SECRET.encode() not in plain
    again = read(io.BytesIO(body), "file")
    assert again.objects == snapshot.objects
    (pod,) = again.objects["v1", "Pod"]
    kept = {"scheduler.alpha.kubernetes.io/node-selector": "kept"}
    assert pod["metadata"]["annotations"] == kept
    assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}


def test_kinds_that_hold_secrets_are_not_taken() -> None:
    snapshot = Snapshot()
    for kind in ("Secret", "ConfigMap", "ServiceAccount"):
        assert not snapshot.add({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}})
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"spec": {"nodeName": SECRET}},
        },
    }
    assert snapshot.add(replica_set)
    assert SECRET.encode() not in b"".join(snapshot.lines())


def test_what_kubectl_prints_is_as_good() -> None:
    node = a_node("n1")
    bare = {key: value for key, value in node.items() if key not in ("apiVersion", "kind")}
    typed = {"apiVersion": "v1", "kind": "NodeList", "items": [bare]}
    printed = yaml.safe_dump_all([typed, {"apiVersion": "v1", "kind": "List", "items": [node]}])

    snapshot = read(io.BytesIO(printed.encode()), "file")

    assert [obj["metadata"]["name"] for obj in snapshot.objects["v1", "Node"]] == ["n1", "n1"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "holds no object that a scheduler reads"),
        (b"[1, 2]", "is no Kubernetes object"),
        (b"\x1f\x8b broken", "is cut off or broken"),
        (gzip.compress(b'{"kind": "Node"}', mtime=0)[:-9], "is cut off or broken"),
        (b'{"kind": "a"}\n{"kind', "line 2"),
        (b"a: [", "while parsing"),
        (
            b'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": 3}}',
            "Node n1: metadata.labels: must be a mapping, not 3",
        ),
    ],
)
def test_a_file_that_is_no_cluster_is_one_line(body: bytes, said: str) -> None:
    with pytest.raises(SnapshotError) as raised:
        read(io.BytesIO(body), "file")
    assert said in str(raised.value)
    assert str(raised.value).startswith("file: ")
    assert "\n" not in str(raised.value)


def test_manifests_are_taken_whole() -> None:
    found = list(parsed(b"---\nkind: A\n---\n---\nkind: List\nitems: [{kind: B, x: 1}]\n", "f"))
    assert [obj["kind"] for obj, _ in found] == ["A", "B"]
    assert found[1].obj["x"] == 1


@pytest.mark.parametrize("data", [b"9" * 5000, b"[" * 5_000 + b"]" * 5_000])
def test_what_is_no_value_is_told_as_what_is_no_yaml(data: bytes) -> None:
    with pytest.raises(SnapshotError, match=r"^f: "):
        list(parsed(data, "f"))
