"""asched beside kube-scheduler: the measurement, and what it publishes."""

import re
import shutil
from pathlib import Path

import pytest

from asched_lab.measure import published
from asched_lab.measure.__main__ import main
from asched_lab.measure.beside import SERVERS, Runs
from asched_lab.measure.measurement import Row
from tests.support import ROOT


def rows(*rates: float) -> list[Row]:
    return [Row("plain", 5000, 3000, 3000, rate, rate / 2, 0.5, events=3000) for rate in rates]


def test_published_rates_are_those_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "docs/results").mkdir(parents=True)
    for file in (published.PAGE, published.README):
        shutil.copy(ROOT / file, tmp_path / file)
    runs = [
        Runs("plain", "default", rows(1000, 1500, 1200), rows(300, 300, 300)),
        Runs("plain", "unlimited", rows(2000), rows(400)),
    ]

    published.publish(tmp_path, published.section(runs, {"date": "today"}))

    page = (tmp_path / published.PAGE).read_text(encoding="utf-8")
    assert (
        "1,200 (1,000 to 1,500) | 600 (500 to 750) | 3,000 | 0.5 | 300 | 150 | 3,000 | 0.5 |"
        in page
    )
    assert published.figures(page) == {"plain": ("1,200", "300")}
    readme = (tmp_path / published.README).read_text(encoding="utf-8")
    assert f"| {published.LABELS['plain']} | 1,200 | 300 | [performance]" in readme
    before = (ROOT / published.README).read_text(encoding="utf-8")
    assert len(readme.splitlines()) == len(before.splitlines())


def test_rows_that_it_does_not_have_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--beside", "kube-scheduler", "--rows", "wall"]) == 2
    assert "--beside has no row wall" in capsys.readouterr().err


@pytest.mark.real
def test_both_bind_every_pod(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = ("--nodes=5", "--pods=20", "--rounds=1", "--rows=plain")
    if main(["--beside", "kube-scheduler", *sizes]) == 2:
        pytest.skip("KUBEBUILDER_ASSETS has no kube-scheduler")
    told = capsys.readouterr().out
    for server in SERVERS:
        row = rf"^\| plain \| {server} (\|[^|]+\|[^|]+\| 20 \|[^|]+){{2}}\|$"
        assert re.search(row, told, re.MULTILINE)
