"""The Helm chart: what it refuses, and that it renders what the kustomize tree renders."""

import json
import tomllib
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
from tests.support import ROOT

CHART = DEPLOY / "chart"
#: Options of the chart -> components of the same name, but for the case of letters.
OPTIONS = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["options"]
#: Where the spec of a pod is in a Deployment.
POD = "spec.template.spec"
#: Everything but what `asched explain` needs.
WITHOUT_EXPLAIN = "--set=monitoring.enabled=true,explain.enabled=false"
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
        if kind in ("Namespace", "Lease"):  # by kustomize the Lease goes with its namespace
            continue
        if kind == "ConfigMap":
            obj["data"] = {key: yaml.safe_load(text) for key, text in obj["data"].items()}
        if metadata["name"].startswith("asched-config"):
            metadata |= {"name": "asched-config", "labels": {}}
        if kind == "Deployment":
            pod = obj["spec"]["template"]
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


@pytest.mark.parametrize(
    ("value", "kind", "path", "expected"),
    [
        ("commonLabels.team=a", "Service", "metadata.labels.team", "a"),
        ("commonLabels.team=a", "Deployment", "spec.template.metadata.labels.team", "a"),
        ("serviceAccount.annotations.k=v", "ServiceAccount", "metadata.annotations.k", "v"),
        ("serviceAccount.name=own", "ServiceAccount", "metadata.name", "own"),
        ("serviceAccount.name=own", "ClusterRoleBinding", "subjects.0.name", "own"),
        ("serviceAccount.name=own", "Deployment", f"{POD}.serviceAccountName", "own"),
        (
            "serviceAccount.name=own",
            "FlowSchema",
            "spec.rules.0.subjects.0.serviceAccount.name",
            "own",
        ),
        ("podSecurityContext.runAsUser=7", "Deployment", f"{POD}.securityContext.runAsUser", 7),
        (
            "securityContext.readOnlyRootFilesystem=false",
            "Deployment",
            f"{POD}.containers.0.securityContext.readOnlyRootFilesystem",
            False,
        ),
        (
            "affinity.podAffinity.in=n-{{ .Release.Namespace }}",
            "Deployment",
            f"{POD}.affinity",
            {"podAffinity": {"in": "n-x"}},
        ),
        ("replicaCount=1", "Deployment", f"{POD}.affinity", None),
        ("topologySpreadConstraints=null", "Deployment", f"{POD}.topologySpreadConstraints", None),
        ("extraVolumes[0].name=mine", "Deployment", f"{POD}.volumes.1.name", "mine"),
        ("env[0].name=MINE", "Deployment", f"{POD}.containers.0.env.1.name", "MINE"),
        (
            "monitoring.serviceMonitor.labels.release=p",
            "ServiceMonitor",
            "metadata.labels.release",
            "p",
        ),
        (
            "monitoring.serviceMonitor.interval=1m",
            "ServiceMonitor",
            "spec.endpoints.0.interval",
            "1m",
        ),
        (
            "monitoring.serviceMonitor.scrapeTimeout=4s",
            "ServiceMonitor",
            "spec.endpoints.1.scrapeTimeout",
            "4s",
        ),
        (
            "monitoring.prometheusRule.labels.release=p",
            "PrometheusRule",
            "metadata.labels.release",
            "p",
        ),
        (
            "monitoring.prometheusRule.interval=2m",
            "PrometheusRule",
            "spec.groups.0.interval",
            "2m",
        ),
        (
            "monitoring.prometheusRule.runbookUrl=https://x/runbooks",
            "PrometheusRule",
            "spec.groups.0.rules.0.annotations.runbook_url",
            "https://x/runbooks#ascheddown",
        ),
        ("extraObjects[0].kind=Extra{{ .Release.Name }}", "Extray", "kind", "Extray"),
        ("extraObjects[0]=kind: Extra{{ .Release.Name }}", "Extray", "kind", "Extray"),
    ],
)
def test_a_value_is_where_it_belongs(value: str, kind: str, path: str, expected: object) -> None:
    objects = chart("y", "x", WITHOUT_EXPLAIN, f"--set={value}")
    found: Any = next(obj for obj in objects if obj["kind"] == kind)
    for step in path.split("."):
        found = found[int(step)] if step.isdigit() else found.get(step)
    assert found == expected


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("serviceAccount.create=false", "ServiceAccount"),
        ("podDisruptionBudget.enabled=false", "PodDisruptionBudget"),
        ("monitoring.prometheusRule.enabled=false", "PrometheusRule"),
        ("flowSchemas.enabled=false", "FlowSchema"),
        ("quota.enabled=false", "ResourceQuota"),
        ("shadow.enabled=true", "Lease"),
    ],
)
def test_a_switch_leaves_objects_out(value: str, kind: str) -> None:
    def names(*words: str) -> set[tuple[str, str]]:
        objects = chart("y", "x", WITHOUT_EXPLAIN, *words)
        return {(obj["kind"], obj["metadata"]["name"]) for obj in objects}

    without = names(f"--set={value}")
    assert kind in {kind for kind, _ in names() - without}
    assert kind not in {kind for kind, _ in without}


def test_the_configuration_and_its_name_change_together() -> None:
    def of(*words: str) -> tuple[str, str]:
        objects = chart("y", "x", *words)
        (config,) = (obj for obj in objects if obj["kind"] == "ConfigMap")
        pod = one(objects, "Deployment")["spec"]["template"]["spec"]
        assert pod["volumes"][0]["configMap"]["name"] == config["metadata"]["name"]
        return config["metadata"]["name"], config["data"]["config.yaml"]

    first, other = of(), of("--set=schedulerName=other")
    assert first[0] != other[0]
    assert first[1] != other[1]
    assert of("--set=replicaCount=1") == first


def test_every_value_has_a_type_and_the_addresses_are_the_projects() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = project["urls"]["Source"]
    about = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (about["home"], about["sources"]) == (source, [source])
    assert f"repo_url: {source}\n" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")

    def closed(schema: JsonObject, values: JsonObject) -> None:
        assert schema["additionalProperties"] is False
        properties = schema["properties"]
        assert properties.keys() - {"global"} == values.keys()
        for key, value in values.items():
            if "properties" in properties[key]:
                closed(properties[key], value)

    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    closed(json.loads((CHART / "values.schema.json").read_text(encoding="utf-8")), values)


def test_every_component_with_rights_is_an_option() -> None:
    assert {camel(name) for name in COMPONENTS} - {"explain"} == set(OPTIONS)


def test_the_network_policy_admits_the_addresses_of_the_api_server() -> None:
    flags = ("--set=networkPolicy.enabled=true", "--set=networkPolicy.apiServers={192.0.2.7/32}")
    (policy,) = (one for one in chart("y", "x", *flags) if one["kind"] == "NetworkPolicy")
    (rule,) = policy["spec"]["ingress"]
    assert {"ipBlock": {"cidr": "192.0.2.7/32"}} in rule["from"]
