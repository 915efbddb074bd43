"""docs/operations.md says what is there: commands, alerts, overlays, messages, exit codes."""

import re
import shutil
from pathlib import Path

import yaml

from asched.cli.commands import COMMANDS, LAB_COMMANDS
from tests.deploy.manifests import DEPLOY, container, documents, one, rendered
from tests.shared import ROOT

TEXT = (ROOT / "docs/operations.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_every_command_has_its_exit_codes() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \|", section("Exit codes"), re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == {*COMMANDS, *LAB_COMMANDS}


def test_every_alert_is_explained() -> None:
    rules = documents(DEPLOY / "components/monitoring/rules.yaml")[0]["spec"]["groups"]
    alerts = {rule["alert"] for group in rules for rule in group["rules"]}
    assert set(re.findall(r"`(Asched\w+)`", section("Monitoring"))) == alerts


def test_every_metric_of_our_own_is_explained() -> None:
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "asched").rglob("*.py"))
    made = set(re.findall(r'"(asched_[a-z_]+[a-z])"', " ".join(sources)))
    rows = re.findall(r"^\| (`asched_.+?) \|", section("Monitoring"), re.MULTILINE)
    assert set(re.findall(r"`(asched_\w+)`", " ".join(rows))) == made


def test_every_folder_named_exists() -> None:
    named = set(re.findall(r"`(deploy/[\w/.-]+?)/?`", TEXT))
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_quoted_messages_are_in_the_program() -> None:
    """The longest piece of each message that holds no value."""
    source = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "asched").rglob("*.py"))
    joined = re.sub(r'"\s*\n\s*f?"', "", source)
    rows = re.findall(
        r"^\| `\"?([^`]+?)\"?`(?: and no more|, exit 1)? \|",
        section("Troubleshooting"),
        re.MULTILINE,
    )
    quoted = [row for row in rows if not row.startswith("0/N")]
    assert len(quoted) >= 8
    for row in quoted:
        pieces = re.split(r'\.\.\.|\bnodes\b|"core"|\(Unauthorized\)|\bpods\b', row)
        longest = max(pieces, key=len).strip(' ()";:')
        assert len(longest) > 12, row
        assert longest in joined, longest


def test_the_overlay_of_ones_own_renders(tmp_path: Path) -> None:
    text = re.search(r"<<'END'\n(.+?)\n\s+END\n", section("Install"), re.DOTALL)
    assert text is not None
    shutil.copytree(DEPLOY, tmp_path / "deploy", ignore=shutil.ignore_patterns("*.lock"))
    own = tmp_path / "my-cluster"
    own.mkdir()
    (own / "kustomization.yaml").write_text(yaml.safe_dump(yaml.safe_load(text[1])))
    image = container(one(rendered(own), "Deployment"))["image"]
    assert image == "REGISTRY/asched:0.1.0"


def test_another_configuration_is_chosen_as_the_text_says(tmp_path: Path) -> None:
    text = re.search(r"```\n(configMapGenerator:.+?)```", section("Configuration"), re.DOTALL)
    assert text is not None
    shutil.copytree(DEPLOY, tmp_path / "deploy", ignore=shutil.ignore_patterns("*.lock"))
    own = tmp_path / "my-cluster"
    own.mkdir()
    shutil.copy(ROOT / "config/high-load.yaml", own)
    document = {"resources": ["../deploy/overlays/ha"], **yaml.safe_load(text[1])}
    (own / "kustomization.yaml").write_text(yaml.safe_dump(document))
    data = one(rendered(own), "ConfigMap")["data"]
    assert data == {"config.yaml": (ROOT / "config/high-load.yaml").read_text(encoding="utf-8")}
