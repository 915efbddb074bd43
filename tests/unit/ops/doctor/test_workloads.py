"""What a workload serves, from its command line and its configuration."""

import pytest
import yaml

from asched.ops.doctor.workloads import ServedWorkload, flags_of, served_by

THEIRS = "kube-system/kube-scheduler"
TWO = "profiles: [{schedulerName: a}, {schedulerName: b}]\nleaderElection: {resourceName: l}\n"


def test_flags_in_both_forms() -> None:
    words = ["run", "--config", "/x", "--leader-elect=false", "--v=2", "--profiling", "--a_b=c"]
    assert flags_of(words) == {
        "config": "/x",
        "leader-elect": "false",
        "v": "2",
        "profiling": "true",
        "a-b": "c",
    }


@pytest.mark.parametrize(
    ("words", "text", "is_ours", "names", "lease"),
    [
        ([], "", False, "default-scheduler", THEIRS),
        ([], "", True, "asched", "kube-system/asched"),
        (["--scheduler-name=x"], "", True, "x", "kube-system/asched"),
        (["--config=/f"], TWO, True, "a b", "kube-system/l"),
        (["--config=/f"], TWO, False, "a b", "kube-system/l"),
        (["--config=/f"], "profiles: [{}]", False, "default-scheduler", THEIRS),
        (["--config=/f"], "profiles: [{}]", True, "default-scheduler", THEIRS),
        (["--config=/unseen"], "", True, "asched", "kube-system/asched"),
        (["--config=/f", "--leader-elect-resource-name=m"], TWO, True, "a b", "kube-system/m"),
        (["--leader-elect-resource-namespace=n"], "", True, "asched", "n/asched"),
        (["--leader-elect=false"], TWO, False, "a b", ""),
        (["--config=/f"], "leaderElection: {leaderElect: false}", False, "default-scheduler", ""),
        (
            ["--config=/f", "--leader-elect=true"],
            "leaderElection: {leaderElect: false}",
            False,
            "default-scheduler",
            THEIRS,
        ),
        (["--config=/f"], "just a text", False, "default-scheduler", THEIRS),
    ],
)
def test_names_and_lease(
    words: list[str], text: str, is_ours: bool, names: str, lease: str
) -> None:
    served = served_by("ns/d", flags_of(words), yaml.safe_load(text), is_ours=is_ours)
    namespace, _, name = lease.partition("/")
    expected = (namespace, name) if lease else None
    assert served == ServedWorkload("ns/d", frozenset(names.split()), expected, is_ours)
