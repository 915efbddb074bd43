"""Build the site of docs/ with Zensical; a broken link fails.

Links that leave docs/ (`../config/default.yaml`) work on GitHub but not on the site. The build
copies docs/ and turns them into addresses of the repository first.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

#: The target of a Markdown link or picture that leaves its folder.
_LEAVES: Final = re.compile(r"(?<=\]\()(?:\.\./)+[^)\s#]+")
_BRANCH: Final = "main"


class MissingError(Exception):
    """A link names a file that does not exist."""


def build(root: Path) -> int:
    """Build build/site of the clone at `root`; the exit code of Zensical. Raises MissingError."""
    staged = root / "build" / "site-source"
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    config = (root / "mkdocs.yml").read_text(encoding="utf-8")
    found = re.search(r"^repo_url: (\S+)$", config, re.MULTILINE)
    assert found, "mkdocs.yml names no repo_url"
    shutil.copytree(root / "docs", staged / "docs")
    for page in (root / "docs").rglob("*.md"):
        text = _with_addresses(page, root, found[1])
        (staged / page.relative_to(root)).write_text(text, encoding="utf-8")
    (staged / "mkdocs.yml").write_text(
        config.replace("site_dir: build/site", "site_dir: site"), encoding="utf-8"
    )
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    made = subprocess.run(command, cwd=staged, check=False).returncode
    if made == 0:
        shutil.rmtree(root / "build" / "site", ignore_errors=True)
        (staged / "site").rename(root / "build" / "site")
    return made


def missing_pages(root: Path) -> list[str]:
    """Pages that the navigation names and docs/ lacks."""
    text = (root / "mkdocs.yml").read_text(encoding="utf-8")
    config = yaml.load(text, Loader=_Plain)  # noqa: S506 - it is a SafeLoader
    return [name for name in _leaves(config["nav"]) if not (root / "docs" / name).exists()]


class _Plain(yaml.SafeLoader):
    """Read Python tags as nothing: they name functions of the builder."""


_Plain.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def _leaves(entry: str | list[Any] | dict[str, Any]) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    values = entry.values() if isinstance(entry, dict) else entry
    return [leaf for value in values for leaf in _leaves(value)]


def _with_addresses(page: Path, root: Path, repository: str) -> str:
    def address(found: re.Match[str]) -> str:
        target = (page.parent / found[0]).resolve()
        if target.is_relative_to(root / "docs"):
            return found[0]
        if not target.exists():
            raise MissingError(f"{page.relative_to(root)}: {found[0]} does not exist")
        kind = "tree" if target.is_dir() else "blob"
        return f"{repository}/{kind}/{_BRANCH}/{target.relative_to(root).as_posix()}"

    return _LEAVES.sub(address, page.read_text(encoding="utf-8"))
