"""What `simulate`, `plan` and the embedded API server make of absent, wrong and unknown fields.

Every kind that the lab reads is tested with an object that has all fields of its type.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from asched.cli.main import main
from asched_lab.apiserver.context import Options
from asched_lab.apiserver.resources import BY_KIND
from asched_lab.apiserver.server import ApiServer
from asched_lab.whatif.api import ScenarioError, SnapshotError, read, simulate
from tests.lab.whatif import whole_objects as objects
from tests.lab.whatif.clusters import a_deployment, a_node, a_pod
from tests.unit.cli.programs import asched

Json = dict[str, Any]
#: Without these an object has no kind or no name.
NAMING = (("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"))
#: A value of a wrong type for each form of a field, and how its error is worded.
WRONG = {
    "str": ({}, "must be a string, not a mapping"),
    "bool": ("x", 'must be true or false, not "x"'),
    "int32": ("x", 'must be a whole number of 32 bits, not "x"'),
    "int64": (1.5, "must be a whole number of 64 bits, not 1.5"),
    "qty": ("1gb", 'must be a quantity such as 500m or 2Gi, not "1gb"'),
    "amount": ("1gb", 'must be a quantity such as 500m or 2Gi, not "1gb"'),
    "time": ("monday", 'must be a time such as 2026-01-31T12:00:00Z, not "monday"'),
    "ios": ([], "must be a whole number or a string, not a list"),
    "[": ({}, "must be a list, not a mapping"),
    "{": ("x", 'must be a mapping, not "x"'),
}


STORAGE = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "example.com/disk",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def a_stateful_set(mounted: str) -> Json:
    """One with claims `data`, written as `kubectl get` shows it: with kind and apiVersion."""
    made = {**a_deployment("db", 2), "kind": "StatefulSet"}
    mounts = [{"name": mounted, "mountPath": "/data"}]
    made["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = mounts
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    made["spec"] |= {"serviceName": "db", "volumeClaimTemplates": [claim]}
    return made


def a_file(folder: Path, name: str, *items: Json) -> str:
    file = folder / f"{name}.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


def variants(key: tuple[str, str]) -> list[tuple[str, Json]]:
    """The whole object, and without each of its fields."""
    whole = objects.whole(key)
    dropped = [path for path in objects.paths(whole) if path not in NAMING]
    found = [("", whole), *((objects.written(p), objects.without(whole, p)) for p in dropped)]
    for number, (_, obj) in enumerate(found):
        obj["metadata"]["name"] = f"x{number}"
    return found


def first_bad(found: list[tuple[str, Json]], words: list[str], folder: Path, flag: str) -> str:
    """A field without which the command raises, found by halves, and what it raises; or ""."""
    try:
        main([*words, flag, a_file(folder, "some", a_node("n1", "64"), *(o for _, o in found))])
    except Exception as error:  # noqa: BLE001 - whichever it is
        if len(found) == 1:
            return f"without {found[0][0]}: {error!r}"
        halves = found[: len(found) // 2], found[len(found) // 2 :]
        named = (first_bad(half, words, folder, flag) for half in halves)
        return next(filter(None, named), f"together: {error!r}")
    return ""


@pytest.mark.parametrize("key", objects.KINDS, ids="/".join)
def test_a_cluster_may_lack_any_field(key: tuple[str, str], tmp_path: Path) -> None:
    words = ["simulate", "-f", a_file(tmp_path, "pod", a_pod("p")), "--like", "n1=1"]
    found = variants(key)
    if key == ("v1", "Pod"):
        for path, obj in found:
            if path != "spec":
                obj["spec"]["nodeName"] = "n1"
    assert first_bad(found, [*words, "--drain", "n1"], tmp_path, "--snapshot") == ""


async def test_a_snapshot_of_a_server_whose_objects_lack_any_field(tmp_path: Path) -> None:
    """Of CRDs for example: nothing fills in their fields."""
    server = ApiServer(options=Options(alpha=frozenset(version for version, _ in objects.KINDS)))
    await server.start()
    for key in objects.KINDS:
        for _, obj in variants(key):
            obj["metadata"].setdefault("namespace", "default")
            server.ctx.put(BY_KIND[key], {n: v for n, v in obj.items() if (n,) not in NAMING[:2]})
    kubeconfig, file = tmp_path / "kubeconfig", tmp_path / "cluster.json"
    kubeconfig.write_text(server.kubeconfig(), encoding="utf-8")
    try:
        status, _, said = await asched("snapshot", str(file), f"--kubeconfig={kubeconfig}")
    finally:
        await server.stop()
    assert status == 0, said
    status, _, said = await asched("simulate", "--snapshot", str(file), "--validate=ignore")
    assert (status, said) == (0, "")


@pytest.mark.parametrize("command", ["simulate", "plan"])
@pytest.mark.parametrize("key", objects.KINDS, ids="/".join)
def test_a_manifest_may_lack_any_field(
    key: tuple[str, str], command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A field without which there is no valid object is missed in words, not by a traceback."""
    words = [command, "--snapshot", a_file(tmp_path, "cluster", a_node("n1", "64"))]
    found = [(path, obj) for path, obj in variants(key) if not path.startswith("status.")]
    assert first_bad(found, words, tmp_path, "-f") == ""
    assert "unknown field" not in capsys.readouterr().err


@pytest.mark.parametrize("key", objects.KINDS, ids="/".join)
def test_a_wrong_type_is_reported_with_object_and_field(
    key: tuple[str, str], tmp_path: Path
) -> None:
    cluster = read(a_file(tmp_path, "cluster", a_node("n1")))
    for path, form in objects.forms(key):
        value, wording = WRONG[form if form in WRONG else form[0] if form[0] in WRONG else "{"]
        obj = objects.with_value(objects.whole(key), path, value)
        problem = rf"{key[1]} \S.*: {re.escape(objects.written(path))}: {re.escape(wording)}$"
        with pytest.raises(ScenarioError, match=f"^{problem}"):
            simulate(cluster, [obj])
        file = a_file(tmp_path, "wrong", obj)
        with pytest.raises(SnapshotError, match=f"^{re.escape(file)}: {problem}"):
            read(file)


def a_pod_with(**container: Any) -> Json:
    return a_pod("p", containers=[{"name": "c", "image": "i", **container}])


@pytest.mark.parametrize("command", ["simulate", "plan"])
@pytest.mark.parametrize(
    ("obj", "said"),
    [
        (
            a_pod_with(resources={"requests": {"memory": "1gb"}}),
            "Pod default/p: spec.containers[0].resources.requests.memory: must be a quantity such",
        ),
        (a_pod("p", nodeSelector=["disk"]), "spec.nodeSelector: must be a mapping, not a list"),
        (
            a_pod("p", priority="high"),
            'spec.priority: must be a whole number of 32 bits, not "high"',
        ),
        ({**a_deployment("web", 1), "metadata": 3}, "Deployment without a name: metadata: must be"),
        (a_deployment("web", "two"), "Deployment default/web: spec.replicas: must be a whole"),
        ({**a_node("n2"), "spec": []}, "Node n2: spec: must be a mapping, not a list"),
        ({**a_node("n2"), "kind": ""}, "an object n2: kind: must be a string that is not empty"),
        ({**a_node("n2"), "kind": "Nodes"}, 'Nodes n2: kind: no kind "Nodes" in version "v1"'),
        (
            {**a_deployment("web", 1), "apiVersion": "apps/v1beta1"},
            'Deployment default/web: kind: no kind "Deployment" in version "apps/v1beta1"',
        ),
    ],
)
def test_a_wrong_manifest_is_one_line_with_the_file(
    obj: Json, said: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, file = a_file(tmp_path, "cluster", a_node("n1")), tmp_path / "wrong.yaml"
    file.write_text(yaml.safe_dump(obj))
    assert main([command, "--snapshot", cluster, "-f", str(file), "--validate=ignore"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"asched {command}: {file}: ")
    assert said in error
    assert error.count("\n") == 1


MISSPELT = a_pod_with(resources={"request": {"cpu": "1"}})
MISSPELT["spec"]["nodeSelectors"] = {"disk": "ssd"}
FIELDS = 'unknown field "spec.containers[0].resources.request", unknown field "spec.nodeSelectors"'


@pytest.mark.parametrize("command", ["simulate", "plan"])
@pytest.mark.parametrize(
    ("flags", "status", "said"),
    [
        ((), 1, f"asched {{}}: {{}}: Pod default/p: {FIELDS}; correct the file, or accept it with"),
        (("--validate",), 1, FIELDS),
        (("--validate=true",), 1, FIELDS),
        (("--validate=warn",), 0, f"asched {{}}: warning: {{}}: Pod default/p: {FIELDS}\n"),
        (("--validate=ignore",), 0, ""),
        (("--validate=false",), 0, ""),
    ],
)
def test_unknown_fields_are_errors_or_warnings_as_in_kubectl(
    command: str,
    flags: tuple[str, ...],
    status: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster, file = a_file(tmp_path, "cluster", a_node("n1")), a_file(tmp_path, "pod", MISSPELT)
    assert main([command, "--snapshot", cluster, "-f", file, *flags]) == status
    error = capsys.readouterr().err
    assert error.startswith(said.format(command, file)) if "{" in said else said in error
    assert error or not said


def test_unknown_fields_of_a_cluster_are_warnings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A newer API server has more fields than are known here."""
    nodes = [a_node(name, taintz=[{"key": "a"}]) for name in ("n1", "n2")]
    cluster = a_file(tmp_path, "cluster", *nodes)
    assert main(["simulate", "--snapshot", cluster]) == 0
    warning = f'warning: {cluster}: Node n1: unknown field "spec.taintz", and in 1 more object\n'
    assert capsys.readouterr().err == f"asched simulate: {warning}"
    assert main(["simulate", "--snapshot", cluster, "--validate=ignore"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_fields_that_are_written_twice_are_reported(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, file = a_file(tmp_path, "cluster", a_node("n1")), tmp_path / "twice"
    text = {
        "yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {day: 2026-01-01}}\n"
        "spec:\n  nodeName: n1\n  nodeName: n2\n  containers: [{name: c, image: i}]\n",
        "json": '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec":'
        ' {"nodeName": "n1", "nodeName": "n2", "containers": [{"name": "c", "image": "i"}]}}',
    }[form]
    file.write_text(text)
    assert main(["simulate", "--snapshot", cluster, "-f", str(file)]) == 1
    assert 'Pod p: duplicate field "spec.nodeName"; correct' in capsys.readouterr().err


@pytest.mark.parametrize("command", ["simulate", "plan"])
def test_a_stateful_set_mounts_its_own_claims(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = a_file(tmp_path, "cluster", a_node("n1"), STORAGE)
    file = a_file(tmp_path, "set", a_stateful_set("data"))
    assert main([command, "--snapshot", cluster, "-f", file]) == 0
    printed = capsys.readouterr().out
    assert "refused" not in printed
    assert "2 of 2 placed" in printed or "planned: 2 pods" in printed
    wrong = a_file(tmp_path, "wrong", a_stateful_set("other"))
    assert main([command, "--snapshot", cluster, "-f", wrong]) == 1
    said = "".join(capsys.readouterr())
    assert 'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "other"' in said


def test_nothing_but_refusals_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = a_file(tmp_path, "cluster", a_node("n1"))
    file = a_file(tmp_path, "bad", a_pod("p", containers=[]), a_deployment("web", -1))
    assert main(["simulate", "--snapshot", cluster, "-f", file]) == 1
    printed = capsys.readouterr().out
    assert "no pod waits" not in printed
    assert "no pods of 2 refused objects\n" in printed
    assert "spec.replicas: Invalid value: -1: must be greater than or equal to 0" in printed

    fine = a_file(tmp_path, "fine", a_pod("q"))
    assert main(["simulate", "--snapshot", cluster, "-f", file, "-f", fine]) == 1
    assert "Pod default/q: 1 of 1 placed" in capsys.readouterr().out


def test_pods_beyond_a_quota_are_a_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "status": {"hard": {"pods": "2"}, "used": {"pods": "0"}},
    }
    cluster = a_file(tmp_path, "cluster", a_node("n1"), quota)
    file = a_file(tmp_path, "web", a_deployment("web", 4))
    assert main(["simulate", "--snapshot", cluster, "-f", file]) == 0
    assert "Deployment default/web: 2 of 2 placed" in capsys.readouterr().out


def test_a_plan_file_with_any_wrong_value_is_refused_or_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = a_file(tmp_path, "cluster", a_node("n1"), STORAGE)
    file, changed = a_file(tmp_path, "set", a_stateful_set("data")), tmp_path / "changed"
    words = ["plan", "--snapshot", cluster]
    words_of_one = [*words, "--replicas", "1", "-f", file]
    assert main([*words_of_one, "--out", str(tmp_path / "plan")]) == 0
    plan = json.loads((tmp_path / "plan").read_text())
    for number, path in enumerate(objects.paths(plan)):
        value = ("x", 1, [], {}, None)[number % 5]
        wrong = objects.without(plan, path) if value is None else None
        changed.write_text(json.dumps(wrong or objects.with_value(plan, path, value)))
        assert main([*words, "--check", str(changed)]) in (0, 1)
    capsys.readouterr()
