"""The operators' pages agree with the program: commands, alerts, overlays, messages, exit codes."""

import re
import shutil
import subprocess
from pathlib import Path

import yaml

from asched.cli.commands import COMMANDS, LAB_COMMANDS
from tests.deploy.manifests import DEPLOY, container, documents, one, rendered
from tests.support import ROOT

PAGES = ("index", "install", "operate", "troubleshoot")
TEXTS = {name: (ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in PAGES}
WORDS_MAX = 4_500
#: Pages of their own that people read to look something up.
LONGEST = {"parity": 2_500, "batch": 3_000}


def section(page: str, title: str) -> str:
    return TEXTS[page].partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def alerts() -> dict[str, dict[str, str]]:
    rules = documents(DEPLOY / "components/monitoring/rules.yaml")[0]["spec"]["groups"]
    return {rule["alert"]: rule["annotations"] for group in rules for rule in group["rules"]}


def words_of(text: str) -> int:
    """Words outside of code, without the rules of tables."""
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return sum(re.search(r"\w", word) is not None for word in text.split())


def test_they_are_short() -> None:
    assert words_of(" ".join(TEXTS.values())) <= WORDS_MAX
    pages = {name: (ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in LONGEST}
    assert {name for name, text in pages.items() if words_of(text) > LONGEST[name]} == set()


def test_every_command_has_its_exit_codes() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \|", section("operate", "Exit codes"), re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == {*COMMANDS, *LAB_COMMANDS}


def test_every_alert_links_to_its_heading() -> None:
    headings = re.findall(r"^### (\w+)$", section("troubleshoot", "Alerts"), re.MULTILINE)
    assert headings == list(alerts())
    for name, annotations in alerts().items():
        assert annotations["runbook"] == f"docs/troubleshoot.md#{name.lower()}"
        assert annotations["description"]


def test_every_folder_named_exists() -> None:
    named = set(re.findall(r"`(deploy/[\w/.-]+?)/?`", " ".join(TEXTS.values())))
    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_component_and_overlay_is_in_a_table() -> None:
    rows = re.findall(r"^\| `(deploy/\w+/[\w-]+)` \|", TEXTS["install"], re.MULTILINE)
    folders = [*(DEPLOY / "components").iterdir(), *(DEPLOY / "overlays").iterdir()]
    assert set(rows) == {folder.relative_to(ROOT).as_posix() for folder in folders}


def test_there_is_one_way_to_make_an_overlay(tmp_path: Path) -> None:
    """README and page have the same commands; components of the pages are added as they say."""
    lines = re.compile(r"^    (mkdir my-cluster$|echo .+ >>? my-cluster/.+)", re.MULTILINE)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = lines.findall(readme)
    assert len(commands) == 3
    assert commands == lines.findall(TEXTS["install"])
    (tmp_path / "deploy").symlink_to(DEPLOY)
    subprocess.run(["sh", "-ec", "\n".join(commands)], cwd=tmp_path, check=True)
    pages = TEXTS["install"] + (ROOT / "docs/batch.md").read_text(encoding="utf-8")
    components = re.findall(r"`components: \[(.+?)\]`", pages)
    assert len(components) >= 3
    with (tmp_path / "my-cluster/kustomization.yaml").open("a", encoding="utf-8") as file:
        file.write(f"components: [{', '.join(components)}]\n")
    objects = rendered(tmp_path / "my-cluster")
    assert container(one(objects, "Deployment"))["image"] == "REGISTRY/asched:0.1.0"
    assert one(objects, "ClusterRole", "asched-coscheduling")


def test_quoted_messages_are_in_the_program() -> None:
    """The longest piece of each message that holds no value."""
    source = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "asched").rglob("*.py"))
    joined = re.sub(r'"\s*\n\s*f?"', "", source)
    rows = re.findall(
        r"^\| `\"?([^`]+?)\"?`(?: and no more|, exit 1)? \|",
        section("troubleshoot", "Process"),
        re.MULTILINE,
    )
    assert len(rows) >= 15
    for row in rows:
        pieces = re.split(r'\.\.\.|\bnodes\b|"core"|\(Unauthorized\)|\bpods\b', row)
        longest = max(pieces, key=len).strip(' ()";:')
        assert len(longest) > 12, row
        assert longest in joined, longest
    for message in re.findall(r"search the log for `([^`]+)`", TEXTS["troubleshoot"]):
        assert message in joined, message


def test_another_configuration_is_chosen_as_the_page_says(tmp_path: Path) -> None:
    chapter = section("install", "Choose a configuration")
    text = re.search(r"```\n(configMapGenerator:.+?)```", chapter, re.DOTALL)
    assert text is not None
    shutil.copytree(DEPLOY, tmp_path / "deploy", ignore=shutil.ignore_patterns("*.lock"))
    own = tmp_path / "my-cluster"
    own.mkdir()
    shutil.copy(ROOT / "config/high-load.yaml", own)
    document = {"resources": ["../deploy/overlays/ha"], **yaml.safe_load(text[1])}
    (own / "kustomization.yaml").write_text(yaml.safe_dump(document))
    data = one(rendered(own), "ConfigMap")["data"]
    assert data == {"config.yaml": (ROOT / "config/high-load.yaml").read_text(encoding="utf-8")}
