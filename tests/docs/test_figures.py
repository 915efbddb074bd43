"""Figures that several pages have are the same everywhere."""

import re

from asched_lab.measure import published
from tests.support import ROOT


def test_the_readme_has_the_rates_of_the_results_page() -> None:
    page = (ROOT / published.PAGE).read_text(encoding="utf-8")
    readme = (ROOT / published.README).read_text(encoding="utf-8")
    found = published.figures(page)
    assert set(published.LABELS) <= set(found)
    for workload, label in published.LABELS.items():
        assert f"| {label} | {' | '.join(found[workload])} |" in readme


def test_one_result_of_the_demo() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    pattern = re.compile(r"\d+ of 5000 pods bound to 1000 nodes in .*")
    results = {r for page in pages for r in pattern.findall(page.read_text(encoding="utf-8"))}
    assert len(results) == 1
