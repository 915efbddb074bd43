"""The Helm chart: what it refuses, and that it renders what the kustomize tree renders."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.manifests import (
    DEPLOY,
    JsonObject,
    chart,
    container,
    helm_ran,
    one,
    rendered,
)

CHART = DEPLOY / "chart"
#: Options of the chart -> components of the same name, but for the case of letters.
OPTIONS = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["options"]
COMPONENTS = sorted(path.parent.name for path in DEPLOY.glob("components/*/rbac.yaml"))


# --- the chart alone ------------------------------------------------------------------------------


def test_helm_lint_finds_nothing() -> None:
    made = helm_ran("lint", str(CHART), "--strict")
    assert made.returncode == 0, made.stdout
    assert "WARNING" not in made.stdout


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("replicas=2", "Additional property replicas is not allowed"),
        ("options.gpus=true", "Additional property gpus is not allowed"),
        ("replicaCount=two", "replicaCount"),
        ("image.digest=latest", "image.digest"),
        ("options.gpuNodeLocks=true", "options.gpuAnnotations"),
        ("options.statusControllers=true", "options.coscheduling"),
        ("config.kind=Policy", "config: no KubeSchedulerConfiguration: its kind is Policy"),
        ("schedulerName=default-scheduler", "a profile serves default-scheduler"),
    ],
)
def test_a_value_that_cannot_work_is_refused(value: str, text: str) -> None:
    made = helm_ran("template", "y", str(CHART), f"--set={value}")
    assert made.returncode != 0
    assert text in made.stderr


def test_a_configuration_of_the_operator_is_mounted_as_it_is(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(
        "# ours\napiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "leaderElection: {resourceName: kube-scheduler}\nprofiles: [schedulerName: batch]\n"
    )
    lease = "--leader-elect-resource-name=batch-1"
    texts = mine.read_text()
    for flag in (f"--set-file=config={mine}", f"--values={tmp_path / 'values.yaml'}"):
        (tmp_path / "values.yaml").write_text(yaml.safe_dump({"config": yaml.safe_load(texts)}))
        objects = chart("y", "x", flag, "--set=leaseName=batch-1")
        data = one(objects, "ConfigMap")["data"]["config.yaml"]
        assert yaml.safe_load(data) == yaml.safe_load(texts)
        assert lease in container(one(objects, "Deployment"))["args"]
        role = one(objects, "Role", "y-asched-leader-election")
        assert role["rules"][1]["resourceNames"] == ["batch-1"]
    objects = chart("y", "x", "--set=existingConfigMap.name=mine,existingConfigMap.key=k.yaml")
    assert [o for o in objects if o["kind"] == "ConfigMap"] == []
    assert "--config=/etc/asched/k.yaml" in container(one(objects, "Deployment"))["args"]
    assert one(objects, "Deployment")["spec"]["template"]["spec"]["volumes"][0] == {
        "name": "config",
        "configMap": {"name": "mine"},
    }


# --- beside kustomize -----------------------------------------------------------------------------


def camel(name: str) -> str:
    head, *tail = name.split("-")
    return head + "".join(word.title() for word in tail)


def with_components(folder: Path, base: str, *names: str) -> list[JsonObject]:
    """An overlay of deploy/ with components, as a user's own."""
    (folder / "deploy").symlink_to(DEPLOY)
    own = folder / "own"
    own.mkdir()
    document = {
        "resources": [f"../deploy/overlays/{base}"],
        "components": [f"../deploy/components/{name}" for name in names],
    }
    (own / "kustomization.yaml").write_text(yaml.safe_dump(document))
    return rendered(own)


def comparable(objects: list[JsonObject]) -> dict[str, Any]:
    """Objects by kind and name, without what Helm and kustomize name or label differently."""
    found = {}
    for obj in json.loads(json.dumps(objects).replace('.asched-system"', '"')):
        kind, metadata = obj["kind"], obj["metadata"]
        if kind == "Namespace":
            continue
        if kind == "ConfigMap":
            obj["data"] = {key: yaml.safe_load(text) for key, text in obj["data"].items()}
        if metadata["name"].startswith("asched-config"):
            metadata |= {"name": "asched-config", "labels": {}}
        if kind == "Deployment":
            pod = obj["spec"]["template"]
            pod["metadata"]["annotations"].pop("checksum/config", None)
            pod["spec"]["volumes"][0]["configMap"]["name"] = "asched-config"
            _drop_labels(pod["metadata"])
        _drop_labels(metadata)
        found[f"{kind} {metadata.get('namespace', '')}/{metadata['name']}"] = obj
    return found


def _drop_labels(metadata: JsonObject) -> None:
    for name in ("part-of", "managed-by", "version"):
        metadata["labels"].pop(f"app.kubernetes.io/{name}", None)
    metadata["labels"].pop("helm.sh/chart", None)


RIGHTS = [name for name in COMPONENTS if camel(name) in OPTIONS]
ALL_OPTIONS = ",".join(f"options.{camel(name)}=true" for name in RIGHTS)


@pytest.mark.parametrize(
    ("overlay", "components", "values"),
    [
        ("ha", (), "replicaCount=2"),
        ("single", (), "replicaCount=1"),
        ("monitoring", (), "monitoring.enabled=true"),
        ("shadow", (), "replicaCount=1,shadow.enabled=true"),
        ("ha", ("kube-scheduler-rbac",), "rbac.asKubeScheduler=true"),
        (
            "ha",
            (*RIGHTS, "network-policy", "admission-policy"),
            f"{ALL_OPTIONS},networkPolicy.enabled=true,admissionPolicy.enabled=true",
        ),
        (
            "monitoring",
            ("kube-scheduler-job",),
            "monitoring.enabled=true,monitoring.job=kube-scheduler",
        ),
    ],
)
def test_the_chart_renders_what_kustomize_renders(
    overlay: str, components: tuple[str, ...], values: str, tmp_path: Path
) -> None:
    charts = comparable(chart("asched", "asched-system", f"--set={values}"))
    ours = comparable(with_components(tmp_path, overlay, *components))
    if overlay == "shadow":  # base leaves the strategy open
        del charts["Deployment asched-system/asched"]["spec"]["strategy"]
    if "kube-scheduler-job" in components:  # the chart's alerts follow the job, kustomize's do not
        del charts["PrometheusRule asched-system/asched"]["spec"]
        del ours["PrometheusRule asched-system/asched"]["spec"]
    assert charts.keys() == ours.keys()
    for name, obj in ours.items():
        assert charts[name] == obj, name


def test_every_component_with_rights_is_an_option() -> None:
    assert {camel(name) for name in COMPONENTS} - {"explain"} == set(OPTIONS)


def test_the_network_policy_admits_the_addresses_of_the_api_server() -> None:
    flags = ("--set=networkPolicy.enabled=true", "--set=networkPolicy.apiServers={192.0.2.7/32}")
    (policy,) = (one for one in chart("y", "x", *flags) if one["kind"] == "NetworkPolicy")
    (rule,) = policy["spec"]["ingress"]
    assert {"ipBlock": {"cidr": "192.0.2.7/32"}} in rule["from"]
