"""The generated pages of docs/ are what the code says now."""

import re

import pytest

from asched.core.config.fields import ConfigRecord
from asched.core.framework.points import Plugin
from asched.names import PREFIX
from asched_lab.pages.annotations import MARKERS
from asched_lab.pages.configuration import rows_of
from asched_lab.pages.generated import PAGES
from asched_lab.pages.headers import purpose
from asched_lab.pages.metrics import VALUES
from tests.support import ROOT


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_up_to_date(name: str) -> None:
    written = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert written == PAGES[name](ROOT), "run `make pages`"


def test_a_field_without_a_meaning_is_an_error_that_says_where_to_write_it() -> None:
    class Quiet(ConfigRecord, frozen=True):
        is_loud: bool = False

    with pytest.raises(LookupError, match=r"^Q.isLoud .* a line `is_loud: .* Quiet in tests/"):
        list(rows_of(Quiet, {}, "Q."))


def test_a_plugin_without_a_header_is_an_error_that_says_where_to_write_it() -> None:
    class Quiet(Plugin):
        name = "Quiet"

    with pytest.raises(LookupError, match=r"begin the docstring of .*test_generated_pages.py"):
        purpose(Quiet)


def test_every_metric_of_asched_in_the_sources_is_on_the_page() -> None:
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "asched").rglob("*.py"))
    made = set(re.findall(r'"(asched_[a-z_]+[a-z])"', " ".join(sources)))
    rows = set(re.findall(r"^\| `(asched_\w+)` \|", PAGES["metrics.md"](ROOT), re.MULTILINE))
    assert rows == made
    assert made >= VALUES.keys()


def test_every_annotation_on_the_page_is_in_the_sources() -> None:
    sources = [
        *(ROOT / "asched").rglob("*.py"),
        *(ROOT / "lab").rglob("*.py"),
        *(ROOT / "deploy/components").rglob("*.yaml"),
    ]
    text = " ".join(
        path.read_text(encoding="utf-8") for path in sources if "pages" not in path.parts
    )
    prefixes = ("kueue.x-k8s.io/podset-", "volcano.sh/network-topology-", "kai.scheduler/topology-")
    for marker in MARKERS:
        name = marker.name
        for prefix in prefixes:
            name = name.removeprefix(prefix)
        shown = name.removeprefix("ALIYUN_COM_GPU_MEM_").removeprefix(f"{PREFIX}/")
        assert shown in text, marker.name
        own = name.removeprefix(f"{PREFIX}/")
        assert own == name or f'PREFIX}}/{own}"' in text, marker.name


def test_the_prefix_of_own_names_has_one_place() -> None:
    spelled = re.compile(rf'"[\w.-]*{re.escape(PREFIX)}')
    files = [path for package in ("asched", "lab") for path in (ROOT / package).rglob("*.py")]
    assert [
        path.relative_to(ROOT).as_posix()
        for path in files
        if spelled.search(path.read_text(encoding="utf-8"))
    ] == ["asched/names.py"]


def test_annotations_in_the_sources_are_on_the_page() -> None:
    """Constants of the plugins that name a key of a pod or node."""
    known = {marker.name for marker in MARKERS}
    ignored = re.compile(
        r"^(?:[\w.]*resource\.kubernetes\.io|pv\.kubernetes\.io|volume\.|storage\.alpha|kubernetes\.io"
        r"|k8s\.io|client\.authentication|topology\.(?!node\.k8s\.io)|failure-domain"
        r"|node\.kubernetes\.io|scheduling\.k8s\.io/PodGroup|.*/v\d$)"
    )
    found = set()
    for path in (ROOT / "asched").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for line in re.findall(r"^[A-Z_]+(?:, [A-Z_]+)?(?:: Final)? = (.+)$", text, re.MULTILINE):
            named = line.replace("{PREFIX}", PREFIX)
            found |= set(re.findall(r'"([a-z][a-z0-9.-]*\.[a-z]+/[A-Za-z._-]*\w)"', named))
    assert {name for name in found if not ignored.match(name)} <= known
