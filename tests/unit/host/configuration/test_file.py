from pathlib import Path

import pytest

from asched.core.config.text import effective
from asched.host.configuration.file import (
    FILE_BYTES_MAX,
    ConfigError,
    LoadedConfig,
    UnreadableFileError,
    load_config,
    read_text,
)
from asched.kube.yaml_text import to_yaml
from tests.support import ROOT, plugins_along

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
READY = sorted((ROOT / "config").iterdir())


def errors(text: str, **options: bool) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(text=text, **options)  # type: ignore[arg-type]
    return [str(error) for error in caught.value.errors]


def test_every_fault_has_its_line_and_column() -> None:
    text = (
        f"{HEAD}parallelism: 0\nprofiles:\n- schedulerName: ''\n  percentageOfNodesToScore: 200\n"
    )
    assert errors(text) == [
        "<text>:3:1: parallelism: Invalid value: 0: should be an integer value greater than zero",
        "<text>:5:3: profiles[0].schedulerName: Required value",
        (
            "<text>:6:3: profiles[0].percentageOfNodesToScore: Invalid value: 200: "
            "not in valid range [0-100]"
        ),
    ]


def test_unknown_fields_and_repeated_keys_come_together_with_hints() -> None:
    assert errors(f"{HEAD}paralellism: 3\nfoo: 1\nfoo: 2\n") == [
        '<text>:5:1: key "foo" occurs twice',
        '<text>:4:1: unknown field "foo"',
        '<text>:3:1: unknown field "paralellism" (did you mean "parallelism"?)',
    ]


def test_unknown_plugins_are_found_where_they_stand() -> None:
    text = f"{HEAD}profiles:\n- plugins:\n    filter:\n      enabled:\n      - name: Nodeport\n"
    assert errors(text) == [
        ('<text>:7:9: plugin "Nodeport" does not exist (did you mean "NodePorts"?)')
    ]


def test_a_policy_supplies_profile_and_extenders() -> None:
    policy = "kind: Policy\nalwaysCheckAllPredicates: true\npriorities: []\n"
    base = f"{HEAD}parallelism: 3\nprofiles: [{{schedulerName: mine}}]\n"
    loaded = load_config(text=base, policy=policy)
    assert loaded.configuration.parallelism == 3
    assert loaded.profiles[0].scheduler_name == "mine"
    assert loaded.profiles[0].profile.always_check_all_filters
    assert loaded.profiles[0].at("score") == ()


@pytest.mark.parametrize(
    ("base", "policy", "text"),
    [
        (f"{HEAD}extenders: [{{}}]\n", "kind: Policy\n", "exclude each other"),
        (f"{HEAD}profiles: [{{plugins: {{}}}}]\n", "kind: Policy\n", "exclude each other"),
        (HEAD, "predicates: [{name: x}]\n", 'predicate type not found for "x"'),
        (HEAD, "- 1\n", "a Policy must be an object"),
        (HEAD, "a: [\n", "this is not YAML"),
    ],
)
def test_a_policy_that_cannot_be_used(base: str, policy: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(text=base, policy=policy)
    assert text in str(caught.value)


def test_unreadable_files_are_one_line(tmp_path: Path) -> None:
    missing, big, binary = (tmp_path / name for name in ("missing", "big", "binary"))
    big.write_bytes(b"#" * (FILE_BYTES_MAX + 1))
    binary.write_bytes(b"\xff\xfe")
    for path, text in (
        (missing, f"open {missing}: no such file or directory"),
        (tmp_path, f"read {tmp_path}: is a directory"),
        (big, f"read {big}: larger than {FILE_BYTES_MAX} bytes"),
        (binary, f"read {binary}: not UTF-8 at byte 0"),
    ):
        with pytest.raises(UnreadableFileError) as caught:
            read_text(path)
        assert str(caught.value) == text


@pytest.mark.parametrize("path", READY, ids=lambda path: path.name)
def test_every_ready_file_can_be_used(path: Path) -> None:
    """With the plugins that come along, found as entry points, and args that these take."""
    plugins = plugins_along()
    loaded = load_config(path, known=plugins.known)
    plugins.check_args(loaded, path.name)
    assert loaded.profiles
    assert effective(loaded.configuration)["profiles"]


def ready(name: str) -> LoadedConfig:
    return load_config(ROOT / "config" / name, known=plugins_along().known)


def test_the_ready_files_do_what_they_say() -> None:
    assert {path.name for path in READY} == {
        "backfill.yaml",
        "batch.yaml",
        "bin-packing.yaml",
        "default.yaml",
        "gpu-fractions.yaml",
        "gpu-sharing.yaml",
        "gpushare.yaml",
        "hami.yaml",
        "high-load.yaml",
        "koordinator-load.yaml",
        "kueue.yaml",
        "load-aware.yaml",
        "network-topology.yaml",
        "numa.yaml",
        "policy.json",
        "policy.yaml",
        "several-profiles.yaml",
        "spreading.yaml",
        "volcano-vgpu.yaml",
        "with-extender.yaml",
    }
    assert ready("default.yaml").profiles[0].scheduler_name == "asched"
    assert ready("high-load.yaml").configuration.client_connection.qps < 0
    assert len(ready("several-profiles.yaml").profiles) == 3
    plain = ready("several-profiles.yaml").profiles[2]
    assert plain.at("score") == ()
    assert [plugin.name for plugin in plain.at("postFilter")] == ["DynamicResources"]
    packing = ready("bin-packing.yaml").profiles[0].profile.plugin_config["NodeResourcesFit"]
    assert packing.scoring_strategy.type == "RequestedToCapacityRatio"  # type: ignore[union-attr]
    spread = {p.name: p.weight for p in ready("spreading.yaml").profiles[0].at("score")}
    assert max(spread, key=lambda name: spread[name]) == "PodTopologySpread"
    fit = ready("with-extender.yaml").profiles[0].profile.plugin_config["NodeResourcesFit"]
    assert fit.ignored_resources == ("example.com/accelerator",)  # type: ignore[union-attr]
    gpus = {p.name: p.weight for p in ready("gpu-sharing.yaml").profiles[0].at("score")}
    assert gpus["GpuSharing"] > 100 * sum(w for name, w in gpus.items() if name != "GpuSharing") / 2
    kueue = ready("kueue.yaml").profiles[0]
    assert [one.name for one in kueue.at("preEnqueue")][-1] == "CheckAndHold"
    backfill = ready("backfill.yaml").profiles[0]
    assert [one.name for one in backfill.at("filter")][-1] == "Backfill"
    assert [one.name for one in backfill.at("queueSort")] == ["Coscheduling"]
    batch = ready("batch.yaml")
    assert [p.scheduler_name for p in batch.profiles] == ["asched", "scheduler-plugins-scheduler"]
    for profile in batch.profiles:
        assert [one.name for one in profile.at("queueSort")] == ["Coscheduling"]
        assert [one.name for one in profile.at("permit")] == ["Coscheduling"]
    policy = ready("policy.yaml")
    assert policy.profiles[0].profile.always_check_all_filters
    assert policy.configuration.profiles[0].always_check_all_filters
    assert len(ready("policy.json").extenders) == 1


@pytest.mark.parametrize("name", ["policy.yaml", "policy.json"])
def test_what_migration_writes_means_what_the_old_file_meant(name: str) -> None:
    old = ready(name)
    assert old.translation is not None
    new = load_config(text=to_yaml(old.translation.document))
    assert new.translation is None
    assert [profile.points for profile in new.profiles] == [p.points for p in old.profiles]
    assert new.extenders == old.extenders
    assert effective(new.configuration) == effective(old.configuration)
