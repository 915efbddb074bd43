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
    (folder / info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: acme\nVersion: 1.2\n\nName: x\n"
    )
    (folder / info / "PKG-INFO").write_text(
        "Metadata-Version: 2.1\nName: acme\nVersion: 1.2\n\nName: x\n"
    )
    (folder / info / "entry_points.txt").write_text(text)
    return folder


@pytest.mark.parametrize("info", ["acme-1.2.dist-info", "acme.egg-info"])
def test_an_installed_package_is_found(tmp_path, monkeypatch, info) -> None:
    monkeypatch.syspath_prepend(str(installed(tmp_path, info, POINTS)))
    (found,) = offered(GROUP)
    assert (found.name, found.value, found.origin) == ("Acme", "acme_rules:Acme", "acme 1.2")


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


def test_of_two_of_one_name_the_first_on_the_path_counts(tmp_path, monkeypatch) -> None:
    for place, info in (("far", "Acme_Rules-1.2.dist-info"), ("near", "acme.rules-2.dist-info")):
        points = f"# none\n[{GROUP}]\nAcme = {place}:Acme\n[console]\nrun = a:b\n"
        monkeypatch.syspath_prepend(str(installed(tmp_path / place, info, points)))
    assert [(found.name, found.value) for found in offered(GROUP)] == [("Acme", "near:Acme")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"[{GROUP}]\n# A = b:C\n  Acme  =  a:B \n\nno pair\n", [("Acme", "a:B")]),
        (f"[{GROUP}.more]\nA = b:C\n", []),
        (f"# [{GROUP}]\nA = b:C\n", []),
        (f"[console]\n[{GROUP}]\nAcme = a:B [x]\n", [("Acme", "a:B [x]")]),
        (f"[{GROUP}]\n[console\nAcme = a:B\n[other]\nB = c:D\n", [("Acme", "a:B")]),
        (f"[{GROUP}]\nAcme = a:B\nB = a:B [x]\n", [("Acme", "a:B"), ("B", "a:B [x]")]),
    ],
)
def test_lines_of_the_groups_section_alone_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: list[tuple[str, str]]
) -> None:
    monkeypatch.syspath_prepend(str(installed(tmp_path, "acme-1.2.dist-info", text)))
    assert [(found.name, found.value) for found in offered(GROUP)] == expected


def test_so_is_one_in_the_folder_one_stands_in_and_one_in_an_egg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path / "here", "acme-1.2.dist-info", POINTS)
    egg = tmp_path / "eggs" / "other-3-py3.11.egg" / "EGG-INFO"
    egg.mkdir(parents=True)
    (egg / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: other\nVersion: 3\n")
    (egg / "entry_points.txt").write_text(f"[{GROUP}]\nEgg = egg:Egg\n")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert [(found.name, found.origin) for found in offered(GROUP)] == [("Acme", "acme 1.2")]
    monkeypatch.setattr(sys, "path", [*sys.path, str(egg.parent)])
    assert sorted((found.name, found.origin) for found in offered(GROUP)) == [
        ("Acme", "acme 1.2"),
        ("Egg", "other 3"),
    ]


def test_it_finds_what_the_library_finds() -> None:
    from importlib.metadata import entry_points

    for group in ("console_scripts", "pytest11"):
        expected = {(point.name, point.value) for point in entry_points(group=group)}
        assert {(found.name, found.value) for found in offered(group)} == expected
        assert expected


def test_it_parses_no_distribution_for_it() -> None:
    code = (
        "import sys; from asched.edge.host.user_plugins.entry_points import offered;"
        "assert offered('console_scripts');"
        "assert 'importlib.metadata' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
