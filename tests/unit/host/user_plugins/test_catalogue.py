"""Where plugins of users come from, who may have which name, and what is said of bad ones."""

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from asched.core.cluster.cluster import Cluster
from asched.host.configuration.file import ConfigError, load_config
from asched.host.user_plugins import catalogue as user_plugins
from asched.host.user_plugins.catalogue import PluginLoadError, discover

GOOD = """
    class Mine:
        def filter(self, pod, node): ...
        def score(self, pod, node): return 1
"""


def write(path: Path, text: str = GOOD) -> Path:
    path.write_text(dedent(text), encoding="utf-8")
    return path


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path in which a distribution is installed."""
    folder = tmp_path / "site"
    info = folder / "acme_rules-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-rules\nVersion: 1.2\n")
    points = "[asched.plugins]\nAcme = acme_rules:Acme\nBroken = acme_broken:Rule\n"
    (info / "entry_points.txt").write_text(points)
    write(folder / "acme_rules.py", "class Acme:\n    def filter(self, pod, node): ...\n")
    write(folder / "acme_broken.py", "import no_such_module\n")
    monkeypatch.syspath_prepend(str(folder))
    return folder


def refused(*plugins: str, folder: str = "") -> str:
    with pytest.raises(PluginLoadError) as error:
        discover(plugins, folder)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_file_gives_its_classes_with_their_points(tmp_path: Path) -> None:
    file = write(tmp_path / "rules.py")
    catalogue = discover([str(file)])
    assert catalogue.known["Mine"] == {"filter", "score"}
    assert catalogue.plugins["Mine"].origin == f"{file}:Mine"
    assert catalogue.given == ("Mine",)
    assert "NodeName" in catalogue.known
    assert "Other" not in catalogue.known
    assert type(catalogue.factories["Mine"](None, Cluster())).name == "Mine"


def test_a_directory_gives_every_file_but_private_ones_and_tests(tmp_path: Path) -> None:
    write(tmp_path / "a.py")
    write(tmp_path / "_b.py", "raise RuntimeError")
    write(tmp_path / "test_a.py", "raise RuntimeError")
    write(tmp_path / "notes.txt", "no python")
    assert list(discover((), str(tmp_path)).plugins) == ["Mine"]


def test_an_entry_point_is_loaded_when_a_profile_names_it(site: Path) -> None:
    catalogue = discover()
    assert {"Acme", "Broken"} <= set(catalogue.plugins)
    assert catalogue.plugins["Acme"].origin == "acme-rules 1.2"
    assert "acme_rules" not in sys.modules
    text = """
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        profiles: [{plugins: {multiPoint: {enabled: [{name: NAME}]}}}]
    """
    loaded = load_config(text=dedent(text.replace("NAME", "Acme")), known=catalogue.known)
    assert [entry.name for entry in loaded.profiles[0].at("filter")][-1] == "Acme"
    assert "acme_broken" not in sys.modules
    with pytest.raises(PluginLoadError) as error:
        load_config(text=dedent(text.replace("NAME", "Broken")), known=catalogue.known)
    assert str(error.value).startswith(
        "plugin Broken of acme-rules 1.2 (acme_broken:Rule) cannot be imported:"
        " ModuleNotFoundError: No module named 'no_such_module' ("
    )
    assert isinstance(error.value.__cause__, ModuleNotFoundError)
    with pytest.raises(ConfigError) as unknown:
        load_config(text=dedent(text.replace("NAME", "Acne")), known=catalogue.known)
    assert 'did you mean "Acme"' in str(unknown.value)


def test_two_plugins_of_one_name_are_refused_with_both_origins(tmp_path: Path, site: Path) -> None:
    one, two = write(tmp_path / "one.py"), write(tmp_path / "two.py")
    assert refused(str(one), str(two)) == (
        f"two plugins are called Mine: one of {one}:Mine, one of {two}:Mine;"
        " give one of the classes another `name`"
    )
    own = write(tmp_path / "own.py", GOOD.replace("Mine", "Acme"))
    assert f"one of acme-rules 1.2, one of {own}:Acme" in refused(str(own))
    in_tree = write(tmp_path / "fit.py", GOOD.replace("Mine", "NodeName"))
    assert "has the name of an in-tree plugin" in refused(str(in_tree))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import nothing_like_it", "cannot be imported: ModuleNotFoundError: No module named"),
        ("def filter(:", "cannot be imported: SyntaxError: invalid syntax"),
        ("x = 1", "contains no plugin: no public class has a method named after an extension"),
        ("class A:\n  def filter(self): ...", "A.filter(self) must take self and 2 argument(s)"),
        ("class A:\n  async def score(self, p, n): ...", "A.score is async, but only"),
        ("import sys\nsys.exit(3)", "cannot be imported: SystemExit: 3"),
        (
            "from asched.plugin import Plugin\nclass A(Plugin):\n  def filter(self, p, n): ...",
            "bad.py:A: a subclass of Plugin must be one of FilterPlugin, ScorePlugin, ..., too",
        ),
        ("raise KeyboardInterrupt", "cannot be imported: KeyboardInterrupt"),
    ],
)
def test_a_bad_file_costs_one_clear_line(tmp_path: Path, text: str, words: str) -> None:
    assert words in refused(str(write(tmp_path / "bad.py", text)))


def test_a_module_that_waits_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_plugins, "IMPORT_S", 0.05)
    file = write(tmp_path / "stuck.py", "import threading\nthreading.Event().wait()\n")

    said = refused(str(file))

    assert f"plugin file {file} was not imported within 0.05 s" in said
    assert not [name for name in sys.modules if "stuck" in name]


def test_a_constructor_that_ends_the_process_is_refused(tmp_path: Path) -> None:
    text = GOOD + "        def __init__(self): raise SystemExit(1)\n"
    (plugin,) = discover((str(write(tmp_path / "leaves.py", text)),)).plugins.values()

    with pytest.raises(ValueError, match="SystemExit: 1"):
        plugin.make(None, Cluster())


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "rules.py")
    assert refused(f"{file}:Mein").endswith('rules.py has no Mein (did you mean "Mine"?)')
    assert refused(f"{tmp_path}/no.py").endswith("no.py: there is no such file")
    assert refused("no_such_module:X").startswith("--plugin no_such_module:X cannot be imported:")
    assert refused(folder=f"{tmp_path}/no") == f"--plugin-dir {tmp_path}/no: is not a directory"
    assert refused("json:dumps") == "json:dumps is a function, a plugin is a class"


def test_a_folder_that_cannot_be_read_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)

    with pytest.raises(PluginLoadError) as error:
        discover(plugin_dir=str(tmp_path))
    assert str(error.value) == f"--plugin-dir {tmp_path}: Permission denied"


def test_what_a_plugin_declares_must_be_rules(tmp_path: Path) -> None:
    file = write(tmp_path / "rules.py", GOOD.replace("Mine:", "Mine:\n        rbac_rules = 'get'"))
    assert refused(str(file)) == (
        f"plugin Mine of {file}:Mine: rbac_rules must be a list of rules, as in a ClusterRole"
    )


@pytest.mark.parametrize("path", [[], [""], ["."]])
def test_modules_of_the_folder_one_stands_in_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: list[str]
) -> None:
    """It is put behind what is there, once; `python -m` has it already."""
    name = f"rules_here_{len(''.join(path))}{len(path)}"
    write(tmp_path / f"{name}.py")
    monkeypatch.chdir(tmp_path)
    rest = [one for one in sys.path if one]
    before = [str(tmp_path) if one == "." else one for one in path] + rest
    monkeypatch.setattr(sys, "path", list(before))

    assert list(discover([f"{name}:Mine"]).plugins)[-1] == "Mine"

    assert sys.path == (before if path else [*before, str(tmp_path)])


def test_an_error_tells_the_last_line_of_users_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "deep_in_rules.py", "\n\ndef fail():\n    raise ValueError('a\\n b')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    file = write(tmp_path / "rules.py", "import deep_in_rules\n\ndeep_in_rules.fail()\n")
    missing = write(tmp_path / "missing.py", "\nimport nothing_like_it\n")

    assert refused(str(file)) == (
        f"plugin file {file} cannot be imported: ValueError: a b ({tmp_path}/deep_in_rules.py:4)"
    )
    assert refused(str(missing)).endswith(f"No module named 'nothing_like_it' ({missing}:2)")
    assert refused("nothing_like_it:X").endswith(
        "No module named 'nothing_like_it'; install its package, set PYTHONPATH, or name a file.py"
    )
    broken = write(tmp_path / "deep.py", "raise ValueError('x')\n")
    assert refused(f"{broken.stem}:X").endswith(f"ValueError: x ({broken}:1)")


def test_args_that_do_not_fit_are_told_at_their_place(tmp_path: Path) -> None:
    text = GOOD + "        def __init__(self, args: Args) -> None: ...\n"
    head = "from dataclasses import dataclass\n@dataclass\nclass Args:\n    price: int\n"
    file = tmp_path / "rules.py"
    file.write_text(head + dedent(text))
    catalogue = discover([str(file)])
    config = """\
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        profiles:
        - plugins: {multiPoint: {enabled: [{name: Mine}]}}
          pluginConfig:
          - name: NodeResourcesFit
          - name: Mine
            args: {price: PRICE}
    """
    good, bad = (
        load_config(text=dedent(config.replace("PRICE", price)), known=catalogue.known)
        for price in ("1", "much")
    )

    catalogue.check_args(good, "file.yaml")
    with pytest.raises(ConfigError) as error:
        catalogue.check_args(bad, "file.yaml")
    assert str(error.value) == (
        'file.yaml:8:5: initializing plugin "Mine": args.price: expected `int`, got `str`'
    )
