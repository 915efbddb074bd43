from pathlib import Path

import pytest

from asched.cli.flags import UsageError, parse
from asched.cli.run_config import exposition, lease_warnings, load, needs_policy_configmap
from asched.serve.telemetry.instruments import Exposition

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(f"{HEAD}profiles: [{{schedulerName: mine}}]\n", encoding="utf-8")
    return path


def test_without_a_file_the_name_is_ours_or_the_one_given() -> None:
    assert load(parse([])).profiles[0].scheduler_name == "asched"
    assert load(parse(["--scheduler-name=it's"])).profiles[0].scheduler_name == "it's"


def test_election_flags_override_a_file_and_others_do_not(file: Path) -> None:
    args = [f"--config={file}", "--leader-elect=false", "--kube-api-qps=1", "--kubeconfig=/x"]
    built = load(parse(args)).configuration
    assert not built.leader_election.leader_elect
    assert built.client_connection.qps == -1
    assert built.client_connection.kubeconfig == ""


def test_without_a_file_the_deprecated_flags_count() -> None:
    args = ["--kube-api-qps=1", "--kube-api-burst=2", "--kubeconfig=/x", "--profiling=false"]
    built = load(parse(args)).configuration
    client = built.client_connection
    assert (client.qps, client.burst, client.kubeconfig) == (1, 2, "/x")
    assert not built.enable_profiling
    assert built.enable_contention_profiling


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("flag", ["profiling", "contention-profiling"])
def test_profiling_is_a_file_s_matter_if_there_is_one(file: Path, flag: str, wanted: bool) -> None:
    plain, words = load(parse([])).configuration, [f"--{flag}={str(wanted).lower()}"]
    field = f"enable_{flag.replace('-', '_')}"
    alone = load(parse(words)).configuration
    assert getattr(alone, field) is wanted
    beside = load(parse([f"--config={file}", *words])).configuration
    assert getattr(beside, field) is getattr(plain, field) is True


def test_our_lease_has_its_own_name_unless_we_replace_kube_scheduler(file: Path) -> None:
    assert load(parse([])).configuration.leader_election.resource_name == "asched"
    args = [f"--config={file}"]
    assert load(parse(args)).configuration.leader_election.resource_name == "asched"
    named = [*args, "--leader-elect-resource-name=x"]
    assert load(parse(named)).configuration.leader_election.resource_name == "x"
    file.write_text(f"{HEAD}leaderElection: {{resourceName: own}}\n", encoding="utf-8")
    assert load(parse(args)).configuration.leader_election.resource_name == "own"
    file.write_text(HEAD, encoding="utf-8")
    assert load(parse(args)).configuration.leader_election.resource_name == "kube-scheduler"


def test_a_policy_file_and_a_policy_config_map(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text('{"kind": "Policy", "priorities": []}', encoding="utf-8")
    from_file = [f"--policy-config-file={path}"]
    both = [*from_file, "--policy-configmap=p"]
    assert not needs_policy_configmap(parse(from_file))
    assert not needs_policy_configmap(parse([]))
    # Nothing but the ConfigMap is there: the flag that prefers a file changes nothing.
    assert needs_policy_configmap(parse(["--policy-configmap=p", "--use-legacy-policy-config"]))
    assert needs_policy_configmap(parse(both))
    assert not needs_policy_configmap(parse([*both, "--use-legacy-policy-config"]))
    loaded = load(parse(from_file))
    assert [line.partition(": ")[0] for line in loaded.warnings] == [str(path)]
    assert loaded.profiles[0].scheduler_name == "asched"
    assert loaded.profiles[0].at("score") == ()
    other = '{"kind": "Policy", "priorities": [{"name": "ImageLocalityPriority", "weight": 2}]}'
    given = load(parse(both), policy_text=other)
    assert [plugin.name for plugin in given.profiles[0].at("score")] == ["ImageLocality"]


@pytest.mark.parametrize(
    ("election", "served", "warned"),
    [
        ("{resourceName: kube-scheduler}", "mine", True),
        ("{resourceName: kube-scheduler}", "default-scheduler", False),
        ("{resourceName: kube-scheduler, leaderElect: false}", "mine", False),
        ("{resourceName: kube-scheduler, resourceNamespace: mine}", "mine", False),
        ("{}", "mine", False),
    ],
)
def test_the_lease_of_kube_scheduler_in_a_copied_configuration_is_warned_of(
    election: str, served: str, warned: bool, tmp_path: Path
) -> None:
    file = tmp_path / "copied.yaml"
    profile = f"profiles: [{{schedulerName: {served}}}]\n"
    file.write_text(f"{HEAD}leaderElection: {election}\n{profile}", encoding="utf-8")

    warnings = lease_warnings(load(parse([f"--config={file}"])).configuration)

    assert ["kube-scheduler's own lease" in line for line in warnings] == [True] * warned


@pytest.mark.parametrize(
    ("client", "flags", "limit"),
    [
        ("", [], (-1, 100)),
        ("qps: 0", [], (-1, 100)),
        ("qps: 7", [], (7, 100)),
        ("qps: 50, burst: 9", ["--kube-api-qps=1"], (50, 9)),
        ("contentType: x", ["--kube-api-qps=1"], (-1, 100)),
        (None, ["--kube-api-qps=3"], (3, 100)),
        (None, ["--kube-api-burst=4"], (-1, 4)),
    ],
)
def test_only_a_written_rate_limits_requests(
    file: Path, client: str | None, flags: list[str], limit: tuple[float, int]
) -> None:
    args = flags if client is None else [f"--config={file}", *flags]
    file.write_text(f"{HEAD}clientConnection: {{{client}}}\n", encoding="utf-8")
    client = load(parse(args)).configuration.client_connection
    assert (client.qps, client.burst) == limit


def exposition_of(*argv: str) -> Exposition:
    return exposition(parse(argv))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2]", 'must map "metric,label" to values'),
        ("a: b", "must map \"metric,label\" to values, not 'a'"),
        ("{'a,b': [1]}", "between commas, as one text: a,b"),
        ("{", "while parsing"),
    ],
)
def test_a_manifest_of_labels_that_cannot_be_used_is_one_line(
    tmp_path: Path, text: str, said: str
) -> None:
    manifest = tmp_path / "lists.yaml"
    manifest.write_text(text)
    with pytest.raises(UsageError) as caught:
        exposition_of(f"--allow-metric-labels-manifest={manifest}")
    assert said in str(caught.value)
    assert str(manifest) in str(caught.value)
    assert "\n" not in str(caught.value)
