"""Links of the documents lead to files and headings that exist, and paths in them to files."""

import re
from pathlib import Path

import pytest

from tests.support import ROOT

PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "asched").glob("*.md"),
    *(ROOT / "deploy").rglob("*.md"),
]
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
#: A file of the tree in backticks, maybe with the name of a test.
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|yaml|json|lock|md|toml))(?:::\w+)?`")
#: Where the pages read paths from.
PACKAGE = ROOT / "asched"
FOLDERS = [ROOT, PACKAGE, PACKAGE / "core", PACKAGE / "hardware", ROOT / "lab/asched_lab"]
#: What a page has its reader make, and an annotation.
NO_FILES = re.compile(r"team_nodes\.py$|^hami\.io/")


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_in_backticks_exist(page: Path) -> None:
    named = {
        path for path in FILE.findall(page.read_text(encoding="utf-8")) if not NO_FILES.search(path)
    }
    there = {path for path in named for folder in FOLDERS if (folder / path).exists()}
    assert named - there == set()


def test_pages_have_links_at_all() -> None:
    assert len(PAGES) >= 9
    assert sum(len(LINK.findall(page.read_text(encoding="utf-8"))) for page in PAGES) > 20
