"""Packages that offer plugins are found, and nothing is parsed where there are none."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from asched.edge.host.user_plugins.entry_points import offered

GROUP = "acme.rules"
POINTS = f"[{GROUP}]\nAcme = acme_rules:Acme\n"


def installed(folder: Path, info: str, text: str) -> Path:
    (folder / info).mkdir(parents=True)
    (folder / info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.2\n")
    (folder / info / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.2\n")
    (folder / info / "entry_points.txt").write_text(text)
    return folder


@pytest.mark.parametrize("info", ["acme-1.2.dist-info", "acme.egg-info"])
def test_an_installed_package_is_found(tmp_path, monkeypatch, info) -> None:
    monkeypatch.syspath_prepend(str(installed(tmp_path, info, POINTS)))
    assert [point.value for point in offered(GROUP)] == ["acme_rules:Acme"]


def test_so_is_one_in_a_zip_file(tmp_path, monkeypatch) -> None:
    file = tmp_path / "acme.zip"
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("acme-1.2.dist-info/METADATA", "Name: acme\nVersion: 1.2\n")
        packed.writestr("acme-1.2.dist-info/entry_points.txt", POINTS)
    monkeypatch.syspath_prepend(str(file))
    assert [point.name for point in offered(GROUP)] == ["Acme"]


def test_so_is_one_that_a_finder_of_somebody_else_knows(tmp_path, monkeypatch) -> None:
    from importlib.metadata import DistributionFinder, MetadataPathFinder

    folder = installed(tmp_path, "acme-1.2.dist-info", POINTS)

    class Elsewhere(DistributionFinder):
        @staticmethod
        def find_spec(*_: object) -> None:
            return None

        @staticmethod
        def find_distributions(_context: object = None):
            return MetadataPathFinder.find_distributions(
                DistributionFinder.Context(path=[str(folder)])
            )

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Elsewhere])
    assert [point.name for point in offered(GROUP)] == ["Acme"]


def test_other_groups_and_places_that_are_not_there_offer_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(installed(tmp_path, "a.dist-info", "[other]\nA = b:C\n")))
    monkeypatch.syspath_prepend(str(tmp_path / "absent"))
    assert list(offered(GROUP)) == []


def test_a_start_without_plugins_parses_no_distribution() -> None:
    code = (
        "import sys; from asched.edge.host.user_plugins.entry_points import offered;"
        "assert not list(offered('acme.rules'));"
        "assert 'importlib.metadata' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
