"""Which configurations stand in a text of manifests."""

import json

import pytest

from asched.cli.config import ConfigPart, NoConfigurationError, parts

OURS = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def a_config_map(**data: str) -> str:
    """In JSON words, which are YAML too; the comment makes it no JSON."""
    return "# a manifest\n" + json.dumps(
        {"kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        OURS,
        "kind: Pod\n",
        "---\n" + OURS,
        "{broken",
        "a: [\n---\nb: ]\n",
        '{"kind": "List", "items": []}',
    ],
)
def test_one_document_is_taken_as_it_is(text: str) -> None:
    assert parts(text) == [ConfigPart(text)]


@pytest.mark.parametrize(
    ("head", "is_ours"),
    [
        ("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n", True),
        ("apiVersion: kubescheduler.config.k8s.io/v9\nkind: Unknown\n", True),
        ("apiVersion: kubescheduler.config.k8s.io.x/v1\nkind: Unknown\n", False),
        ("apiVersion: x/v1\nkind: KubeSchedulerConfiguration\n", True),
        ("kind: KubeSchedulerConfiguration\n", True),
        ("apiVersion: v1\nkind: Policy\n", True),
        ("apiVersion: v1\nkind: Pod\n", False),
        ("- kind: Policy\n", False),
    ],
)
def test_ours_is_found_by_its_group_or_its_kind(head: str, is_ours: bool) -> None:
    text = f"kind: Service\n---\n{head}"
    if not is_ours:
        with pytest.raises(NoConfigurationError):
            parts(text)
        return
    (found,) = parts(text)
    assert found.text == f"\n\n{head}"  # lines are counted as in the whole file
    assert found.where.endswith(" of line 3")


def test_a_configuration_that_cannot_be_read_is_not_passed_over() -> None:
    broken = f"{OURS}profiles: [\n"
    assert parts(a_config_map(mine=broken)) == [ConfigPart(broken, "ConfigMap m, mine")]
