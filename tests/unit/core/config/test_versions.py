"""Minor versions: whose rules decide, and the gates that each of them has."""

from pathlib import Path

import pytest

from asched.core.config.decode import decode
from asched.core.config.defaults import configuration
from asched.core.config.gates import (
    CHANGES,
    DEFAULT_GATES,
    GATES,
    GateError,
    default_gates,
    parse,
    table_of,
    version_with,
)
from asched.core.config.merge import UnusableProfileError, resolve
from asched.core.config.text import effective as effective_text
from asched.core.config.validate import validate
from asched.core.config.versions import (
    BASE,
    MINORS,
    RULES,
    UnknownVersionError,
    emulated,
    for_server,
    rules_of,
)
from asched.core.plugins import IN_TREE_POINTS
from asched_lab.pages.generated import SETTLED, TEXTS

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("name", sorted({**RULES, **SETTLED}))
def test_every_rule_is_shown_by_a_test(name: str) -> None:
    texts = {**TEXTS, **SETTLED}[name]
    path, _, function = texts.test.partition("::")
    assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8")
    assert (RULES.get(name) or texts.since) in MINORS[1:]


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_rule_is_asked_for_by_name(name: str) -> None:
    sources = [
        file.read_text(encoding="utf-8")
        for file in (ROOT / "asched").rglob("*.py")
        if file.name != "versions.py"
    ]
    assert any(f'"{name}"' in text for text in sources)
    assert name not in table_of(MINORS[-1]).gates


def test_a_rule_is_in_force_from_its_version_on() -> None:
    assert not any(rules_of(BASE).values())
    assert all(rules_of(MINORS[-1]).values())
    assert rules_of("1.37")["distinct-attribute-per-device"]


@pytest.mark.parametrize(
    ("text", "minor", "warning"),
    [
        ("v1.36.3", "1.36", ""),
        ("v1.37.0-rc.0+abc", "1.37", ""),
        ("v1.34.1-eks-1", "1.36", ""),
        ("1.33", "1.36", "older than 1.34"),
        ("v1.38.0-alpha.1", "1.38", "preview"),
        ("v1.41.0", "1.38", "newer than this asched"),
    ],
)
def test_the_rules_for_a_server(text: str, minor: str, warning: str) -> None:
    found = for_server(text)
    assert found.minor == minor
    assert warning in found.warning
    assert bool(warning) is bool(found.warning)


@pytest.mark.parametrize("text", ["", "2.0", "1", "v1.x", "latest"])
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(UnknownVersionError):
        for_server(text)


def test_a_version_is_emulated_only_within_what_is_known() -> None:
    assert emulated("1.37").minor == "1.37"
    for text in ("1.33", "1.39"):
        with pytest.raises(UnknownVersionError, match="is not between"):
            emulated(text)


def test_gates_of_a_minor_version() -> None:
    for name in ("StorageCapacityScoring", "VolumeLimitScaling", "DRADeviceTaintRules"):
        assert not DEFAULT_GATES[name]
        assert default_gates("1.37")[name]
    assert "GangScheduling" not in table_of("1.37").gates
    assert table_of(BASE).gates == GATES
    assert version_with("DRAFractionalCapacityRange") == "1.37"
    assert parse(["DRAFractionalCapacityRange=false"], "1.37").warnings == ()
    for minor, changes in CHANGES.items():
        assert changes.locked <= table_of(minor).gates.keys()
        assert changes.removed.keys().isdisjoint(table_of(minor).gates)


def test_generic_workload_includes_the_gates_that_it_replaced() -> None:
    assert not default_gates("1.37")["GangScheduling"]
    enabled = parse(["GenericWorkload=true"], "1.37").enabled
    assert enabled["GangScheduling"]
    assert enabled["WorkloadAwarePreemption"]
    assert default_gates("1.38")["GangScheduling"]


@pytest.mark.parametrize(
    ("value", "minor", "words"),
    [
        ("DRAFractionalCapacityRange=true", "1.36", "Kubernetes 1.37 and newer have it"),
        ("CompositePodGroup=true", "1.36", "Kubernetes 1.37 and newer have it"),
        ("DRADerivedAttributes=true", "1.37", "asched does not implement it"),
        ("GangScheduling=true", "1.37", "in Kubernetes 1.37 it is part of GenericWorkload"),
        ("SidecarContainers=false", "1.37", "in Kubernetes 1.37 it is always on"),
        ("NodeDeclaredFeatures=false", "1.37", "feature is locked to true"),
    ],
)
def test_gates_that_a_version_refuses(value: str, minor: str, words: str) -> None:
    with pytest.raises(GateError, match=words):
        parse([value], minor)


@pytest.mark.parametrize(
    ("value", "minor", "words"),
    [
        ("WatchListCompression=true", "1.36", "has no effect: Kubernetes 1.37 and newer have it"),
        ("SidecarContainers=true", "1.37", "Kubernetes 1.37 has no such gate, it is always on"),
        ("NativeHistograms=false", "1.37", "has no effect on this scheduler"),
        ("SchedulerPreQueueingHints=true", "1.37", "has no effect on this scheduler"),
    ],
)
def test_gates_that_change_nothing_are_warnings(value: str, minor: str, words: str) -> None:
    assert any(words in line for line in parse([value], minor).warnings)


def test_a_plugin_and_a_field_that_asched_lacks_are_refused_with_their_version() -> None:
    entries = {"enabled": [{"name": "DeferredPodScheduling"}]}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": entries, "placementFeasible": entries}}],
    }
    checked, (field,) = decode(document)
    assert field.text.endswith('unknown field "profiles[0].plugins.placementFeasible"')
    assert "Kubernetes 1.38 and newer" in field.hint
    with pytest.raises(UnusableProfileError) as caught:
        resolve(configuration(checked, default_gates("1.37")).profiles[0], IN_TREE_POINTS, 0)
    (plugin,) = caught.value.problems
    assert plugin.text.endswith('"DeferredPodScheduling" does not exist')
    assert "Kubernetes 1.37 and newer" in plugin.hint


def test_an_extension_point_of_a_newer_version_is_refused_with_that_version() -> None:
    plugins = {"podGroupPostFilter": {"enabled": [{"name": "DefaultPreemption"}]}}
    document = {"profiles": [{"schedulerName": "a", "plugins": plugins}]}
    (problem,) = validate(configuration(document), default_gates("1.36"))
    assert problem.text == 'unknown field "profiles[0].plugins.podGroupPostFilter"'
    assert "Kubernetes 1.37 and newer" in problem.hint
    gates = default_gates("1.37")
    effective = configuration(document, gates)
    assert validate(effective, gates) == []
    assert effective_text(effective)["profiles"][0]["plugins"]["podGroupPostFilter"]
