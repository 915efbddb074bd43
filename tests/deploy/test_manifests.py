"""The manifests: rendered by kubectl, strict, consistent with each other and with the program."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml

from asched.cli import flags
from asched.host.configuration.file import load_config
from asched.serve.probers import NODE_VARIABLE
from asched_lab.apiserver.resources import BY_KIND
from asched_lab.apiserver.schema import decode, type_name
from tests.deploy import shapes
from tests.deploy.manifests import (
    DEPLOY,
    OVERLAYS,
    container,
    documents,
    kubectl,
    one,
    overlay,
    program,
    rendered,
)
from tests.support import ROOT, real_api_server

SELECTOR = {"app.kubernetes.io/name": "asched", "app.kubernetes.io/instance": "asched"}
EXAMPLE = DEPLOY / "examples" / "my-scheduler"


def complaints(manifest: dict[str, object]) -> list[str]:
    """Unknown fields and wrong types, by the tables of the embedded API server or ours."""
    kind = str(manifest["kind"])
    if kind in shapes.SHAPES:
        return shapes.faults(manifest)
    res = BY_KIND[str(manifest["apiVersion"]), kind]
    assert type_name(res) != "Anything", f"nobody checks {kind}"
    return decode(res, manifest)[1]


@pytest.mark.parametrize("name", OVERLAYS)
def test_no_field_is_unknown_or_of_a_wrong_type(name: str) -> None:
    assert [line for manifest in overlay(name) for line in complaints(manifest)] == []


def test_a_misspelt_field_would_be_found() -> None:
    manifests = overlay("ha")
    one(manifests, "FlowSchema", "asched")["spec"]["matchingPrecedense"] = 1
    one(manifests, "ClusterRole", "asched")["rules"][0]["verb"] = ["get"]
    template = one(manifests, "Deployment")["spec"]["template"]
    template["spec"]["containers"][0]["securityContxt"] = {}
    found = [line for manifest in manifests for line in complaints(manifest)]
    assert sorted(line.rpartition(".")[2].partition(":")[0] for line in found) == [
        "matchingPrecedense",
        "securityContxt",
        "verb",
    ]


def test_published_schemas_have_nothing_to_say() -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is absent")
    foreign = ("ServiceMonitor", "PrometheusRule")
    for manifest in (*overlay("monitoring"), *overlay("kind"), *rendered(EXAMPLE)):
        if manifest["kind"] not in foreign:
            validate.validate(manifest, "1.36", strict=True)


def test_the_configurations_are_those_of_the_config_folder() -> None:
    """kustomize reads no file outside its folder, so the copies are held equal here."""
    for copy, original in (("base", "default"), ("overlays/kind", "high-load")):
        text = (DEPLOY / copy / "scheduler.yaml").read_text(encoding="utf-8")
        assert text == (ROOT / "config" / f"{original}.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_command_line_and_the_mounted_configuration_are_understood(name: str) -> None:
    manifests = overlay(name)
    deployment = one(manifests, "Deployment")
    command, *words = container(deployment)["args"]
    if name == "shadow":
        assert command == "shadow"
        command = words.pop(0)
    assert command == "run"
    options = flags.parse(words)
    (mount,) = (m for m in container(deployment)["volumeMounts"] if m["name"] == "config")
    folder, _, file = options.config.rpartition("/")
    assert folder == mount["mountPath"]
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    (volume,) = (v for v in volumes if v["name"] == "config")
    data = one(manifests, "ConfigMap", volume["configMap"]["name"])["data"]
    configuration = load_config(text=data[file]).configuration
    if name == "shadow":
        assert options.shadow == ("default-scheduler",)
        assert [p.scheduler_name for p in configuration.profiles] == list(options.shadow)
        return
    assert [profile.scheduler_name for profile in configuration.profiles] == ["asched"]
    assert configuration.leader_election.resource_name == "asched"


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_pod_never_waits_for_itself_and_holds_no_right_of_the_node(name: str) -> None:
    spec = one(overlay(name), "Deployment")["spec"]["template"]["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["priorityClassName"] == "system-cluster-critical"
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    security = spec["containers"][0]["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    # The serving certificate is in memory: a drain refuses pods with local storage.
    assert [volume.keys() - {"name"} for volume in spec["volumes"]] == [{"configMap"}]
    assert [mount for mount in spec["containers"][0]["volumeMounts"] if not mount["readOnly"]] == []


def test_the_priority_class_is_admitted_outside_kube_system() -> None:
    """Providers that guard the class want a quota of its scope in the namespace."""
    base = yaml.safe_load((DEPLOY / "base" / "kustomization.yaml").read_text(encoding="utf-8"))
    manifests = [m for name in base["resources"] for m in documents(DEPLOY / "base" / name)]
    deployment, quota = one(manifests, "Deployment"), one(manifests, "ResourceQuota")
    spec = deployment["spec"]["template"]["spec"]
    assert complaints(quota) == []
    assert quota["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    (scope,) = quota["spec"]["scopeSelector"]["matchExpressions"]
    assert scope == {
        "scopeName": "PriorityClass",
        "operator": "In",
        "values": [spec["priorityClassName"]],
    }
    assert int(quota["spec"]["hard"]["pods"]) >= 2 * 2  # two replicas, and two that take over
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux"}


def test_the_network_policy_lets_monitoring_in_at_the_port_of_the_pages() -> None:
    folder = DEPLOY / "components" / "network-policy"
    (policy,) = documents(folder / "policy.yaml")
    assert complaints(policy) == []
    assert policy["spec"]["podSelector"]["matchLabels"] == SELECTOR
    (rule,) = policy["spec"]["ingress"]
    (deployment,) = documents(DEPLOY / "base" / "deployment.yaml")
    (port,) = container(deployment)["ports"]
    assert [one["port"] for one in rule["ports"]] == [port["name"]]
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    assert listed["resources"] == ["policy.yaml"]


def test_the_grace_period_is_longer_than_the_drain() -> None:
    from asched.host.loops import DRAIN_S

    spec = one(overlay("ha"), "Deployment")["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] > 2 * DRAIN_S


def test_the_probes_ask_paths_that_need_no_credentials() -> None:
    probed = container(one(overlay("ha"), "Deployment"))
    ports = {port["name"]: port["containerPort"] for port in probed["ports"]}
    open_paths = flags.parse([]).authorization.authorization_always_allow_paths
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        get = probed[name]["httpGet"]
        assert (get["scheme"], ports[get["port"]]) == ("HTTPS", 10259)
        assert get["path"] in open_paths


@pytest.mark.parametrize("name", OVERLAYS)
def test_everything_selects_the_same_pods(name: str) -> None:
    manifests = overlay(name)
    deployment = one(manifests, "Deployment")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert SELECTOR.items() <= labels.items()
    assert labels["app.kubernetes.io/version"]
    found = [
        deployment["selector"]["matchLabels"],
        one(manifests, "Service")["spec"]["selector"],
        one(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        *(
            constraint["labelSelector"]["matchLabels"]
            for constraint in deployment["template"]["spec"]["topologySpreadConstraints"]
        ),
    ]
    assert all(selector == SELECTOR for selector in found)


def test_replicas_and_strategy_follow_the_overlay() -> None:
    single, ha = (one(overlay(name), "Deployment")["spec"] for name in ("single", "ha"))
    assert (single["replicas"], single["strategy"]) == (1, {"type": "Recreate"})
    assert ha["replicas"] == 2
    assert ha["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_the_option_replaces_our_role_by_kube_schedulers(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = DEPLOY / "components" / "kube-scheduler-rbac"
    top = tmp_path_factory.mktemp("option")
    shutil.copytree(DEPLOY, top / "deploy", ignore=shutil.ignore_patterns("*.lock"))
    chosen = top / "deploy" / "overlays" / "chosen"
    chosen.mkdir()
    (chosen / "kustomization.yaml").write_text(
        yaml.safe_dump(
            {
                "resources": ["../monitoring"],
                "components": [
                    f"../../components/{folder.name}",
                    "../../components/kube-scheduler-job",
                ],
            }
        )
    )
    manifests = rendered(chosen)
    roles = {m["metadata"]["name"] for m in manifests if m["kind"] == "ClusterRole"}
    assert roles == {"asched-serving", "asched-explain"}
    bound = {m["roleRef"]["name"] for m in manifests if m["kind"] == "ClusterRoleBinding"}
    kube_schedulers = {"system:kube-scheduler", "system:volume-scheduler"}
    assert bound == {"asched-serving", "asched-explain", *kube_schedulers}
    for endpoint in one(manifests, "ServiceMonitor")["spec"]["endpoints"]:
        assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": "kube-scheduler"}]


def test_bindings_and_leases_have_flows_of_their_own() -> None:
    schemas = [m for m in overlay("ha") if m["kind"] == "FlowSchema"]
    levels = {
        m["metadata"]["name"]: m["spec"]["priorityLevelConfiguration"]["name"] for m in schemas
    }
    assert levels == {
        "asched-leader-election": "leader-election",
        "asched-bindings": "workload-high",
        "asched-reviews": "workload-low",
        "asched": "workload-high",
    }
    precedence = {m["metadata"]["name"]: m["spec"]["matchingPrecedence"] for m in schemas}
    # Below the built-in schema of kube-system's accounts (900), the special ones before the rest.
    assert precedence["asched-bindings"] < precedence["asched"] < 900
    assert precedence["asched-leader-election"] < precedence["asched"]
    assert precedence["asched-bindings"] < precedence["asched-reviews"] < precedence["asched"]


def test_no_image_floats() -> None:
    images = [
        container(one(manifests, "Deployment"))["image"]
        for manifests in (*map(overlay, OVERLAYS), rendered(EXAMPLE))
    ]
    assert all(re.fullmatch(r"asched:[\w.]+", image) and "latest" not in image for image in images)


def test_yaml_is_tidy() -> None:
    lint = program("yamllint", "pip install yamllint")
    words = ["--strict", "-c", str(DEPLOY / ".yamllint"), str(DEPLOY), str(ROOT / "config")]
    made = subprocess.run([lint, *words], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout


@pytest.fixture
def empty_server() -> Iterator[str]:
    with real_api_server() as path:
        yield path


@pytest.mark.real
def test_a_real_api_server_accepts_all_of_it(empty_server: str) -> None:
    """Strict, in a namespace that enforces the restricted profile; bare pods are asked as well."""
    command = [kubectl(), f"--kubeconfig={empty_server}"]

    def send(verb: str, manifest: object, *words: str) -> None:
        text = yaml.safe_dump(manifest)
        made = subprocess.run(
            [*command, verb, "-f", "-", "--validate=strict", *words],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, f"{made.stderr}\n{text}"
        assert "Warning" not in made.stderr

    foreign = ("ServiceMonitor", "PrometheusRule")
    send("create", documents(DEPLOY / "base" / "namespace.yaml")[0])
    policy = DEPLOY / "components" / "network-policy" / "policy.yaml"
    send("create", documents(policy)[0], "--dry-run=server")
    for name in OVERLAYS:
        for manifest in overlay(name):
            if manifest["kind"] not in ("Namespace", *foreign):
                send("create", manifest, "--dry-run=server")
        pod = one(overlay(name), "Deployment")["spec"]["template"]
        metadata = {**pod["metadata"], "name": "bare", "namespace": "asched-system"}
        pod |= {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        send("create", pod, "--dry-run=server")
    for manifest in (*rendered(EXAMPLE), *documents(EXAMPLE / "pods.yaml")):
        send("create", manifest, "--dry-run=server")


def test_the_python_of_the_image_is_one_the_package_takes() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    (tag,) = re.findall(r"^ARG BASE=python:(\d+\.\d+)-slim$", text, re.MULTILINE)
    assert tuple(map(int, tag.split("."))) >= (3, 11)
    assert sys.version_info >= (3, 11)


def test_the_address_of_the_node_is_named_for_its_probes() -> None:
    (variable,) = container(one(overlay("ha"), "Deployment"))["env"]
    assert variable["name"] == NODE_VARIABLE
    assert variable["valueFrom"] == {"fieldRef": {"fieldPath": "status.hostIP"}}


def test_the_install_page_begins_with_what_is_open() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    first, _, _ = page.partition("\n## ")
    for name in ("network-policy", "admission-policy"):
        assert f"`{name}`" in first
        assert (DEPLOY / "components" / name).is_dir()
