"""Plugins of users: find and load them.

    entry points of the group `asched.plugins`      loaded when a profile names them
    --plugin module:Class, or file.py[:Class]       loaded at once
    --plugin-dir DIR                                every *.py in it (not _*.py, test_*.py)

A `Catalogue` has them by name. Its `known` maps plugins to extension points for the configuration,
its `factories` create instances for a profile. Names are unique, also among in-tree plugins. A
module that exits the process or never finishes is refused.

Bounds  IMPORT_S for the import of one module.
"""

import hashlib
import importlib
import linecache
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from asched.core.cluster.cluster import Cluster
from asched.core.config.across_pools import OF_ANY_NAMESPACE
from asched.core.config.problem import Problem, did_you_mean
from asched.core.framework.per_node import adapter
from asched.core.framework.points import Plugin
from asched.core.framework.profile import Factory, points_of
from asched.core.plugins import IN_TREE, IN_TREE_POINTS
from asched.core.plugins.node_pools import concerns_all_pods
from asched.host.configuration.file import ConfigError, LoadedConfig, located
from asched.host.user_plugins.arguments import ArgsError, arguments, instance_of
from asched.kube import tasks
from asched.kube.files import file_content
from asched.kube.tasks import begin_thread
from asched.ops.doctor import permissions
from asched.ops.doctor.permissions import Right

GROUP: Final = "asched.plugins"
#: Ten times what the largest libraries take on a busy machine; a module that takes longer hangs.
IMPORT_S: Final = 30.0
#: Files whose lines do not help to find an error in a user's file.
OURS: Final = (__file__, importlib.__file__, tasks.__file__)
#: Modules of files have this prefix, followed by the file and a digest of its content.
MODULE_PREFIX: Final = "asched_user_plugins_"


class PluginLoadError(Exception):
    """A plugin that cannot be loaded: one line; the cause has the traceback."""


class UserPlugin(msgspec.Struct, frozen=True, dict=True):
    """A plugin of a user. `origin` says where it was found, `given` whether by flag."""

    name: str
    origin: str
    load: Callable[[], type[Any]]
    given: bool = True

    @cached_property
    def own(self) -> type[Any]:
        return self.load()

    @cached_property
    def adapted(self) -> type[Plugin]:
        """The class for the framework. Raises PluginLoadError."""
        own = self.own
        _ = self.rights  # refuse invalid declarations here, not in the doctor
        if issubclass(own, Plugin):
            if not points_of(own):
                text = "a subclass of Plugin must be one of FilterPlugin, ScorePlugin, ..., too"
                raise PluginLoadError(f"plugin {self.name} of {self.origin}: {text}")
            return type(own.__name__, (own,), {"name": self.name})
        try:
            return adapter.adapt(own, self.name)
        except adapter.UnusablePluginError as error:
            raise PluginLoadError(f"plugin {self.name} of {self.origin}: {error}") from error

    @cached_property
    def rights(self) -> tuple[Right, ...]:
        """The rights that it declares. Raises PluginLoadError."""
        try:
            return permissions.rights_of(self.own)
        except permissions.RulesError as error:
            raise PluginLoadError(f"plugin {self.name} of {self.origin}: {error}") from error

    @cached_property
    def points(self) -> frozenset[str]:
        """The extension points it implements, as spelled in configurations."""
        return points_of(self.adapted)

    def make(self, args: Any, cluster: Cluster) -> Plugin:
        """An instance. Raises ValueError with one line."""
        return self.adopt(instance_of(self.instance_class, args, cluster), cluster)

    @property
    def instance_class(self) -> type[Any]:
        """The class that is instantiated: for a Plugin subclass the adapted class."""
        return self.adapted if issubclass(self.own, Plugin) else self.own

    def adopt(self, instance: Any, cluster: Cluster) -> Plugin:
        """The object for the framework, made from an instance."""
        adapted: Any = self.adapted
        served: Plugin = instance if issubclass(self.own, Plugin) else adapted(instance, cluster)
        return served


class _Known(Mapping[str, frozenset[str]]):
    """In-tree and users' plugins with their points; an entry point is loaded on access."""

    def __init__(self, catalogue: "Catalogue") -> None:
        self._plugins = catalogue.plugins

    def __getitem__(self, name: str) -> frozenset[str]:
        in_tree = IN_TREE_POINTS.get(name)
        return self._plugins[name].points if in_tree is None else in_tree

    def __contains__(self, name: object) -> bool:
        return name in IN_TREE_POINTS or name in self._plugins

    def __iter__(self) -> Iterator[str]:
        yield from IN_TREE_POINTS
        yield from self._plugins

    def __len__(self) -> int:
        return len(IN_TREE_POINTS) + len(self._plugins)


class Catalogue:
    """All plugins that a configuration may name."""

    def __init__(self, plugins: Sequence[UserPlugin] = ()) -> None:
        self.plugins: dict[str, UserPlugin] = {}
        for plugin in plugins:
            self.add(plugin)

    def add(self, plugin: UserPlugin) -> None:
        """Add a plugin. Raises PluginLoadError if the name is in use."""
        if plugin.name in IN_TREE_POINTS:
            raise PluginLoadError(
                f"plugin {plugin.name} of {plugin.origin} has the name of an in-tree plugin;"
                " give its class another `name`"
            )
        other = self.plugins.get(plugin.name)
        if other is not None:
            raise PluginLoadError(
                f"two plugins are called {plugin.name}: one of {other.origin}, one of"
                f" {plugin.origin}; give one of the classes another `name`"
            )
        self.plugins[plugin.name] = plugin

    @property
    def known(self) -> Mapping[str, frozenset[str]]:
        """Plugin name -> extension points, including in-tree plugins."""
        return _Known(self)

    @property
    def factories(self) -> Mapping[str, Factory]:
        """Plugin name -> factory, including in-tree plugins."""
        return {**IN_TREE, **{name: plugin.make for name, plugin in self.plugins.items()}}

    def check_args(self, loaded: LoadedConfig, name: str) -> None:
        """Raises ConfigError for invalid args of these plugins; `name` is the file's."""
        problems = []
        for number, resolved in enumerate(loaded.profiles):
            written = {entry.name: entry.args for entry in resolved.profile.plugin_configs}
            for plugin in filter(None, map(self.plugins.get, resolved.plugin_names)):
                try:
                    arguments(plugin.own, written.get(plugin.name))
                except ArgsError as error:
                    text = f'initializing plugin "{plugin.name}": {error}'
                    path = ("profiles", number, "pluginConfig", plugin.name, "args")
                    problems.append(Problem(text, path))
        if problems:
            raise ConfigError(located(name, loaded.source, problems))

    def pool_warnings(self, loaded: LoadedConfig, name: str) -> tuple[str, ...]:
        """Plugins whose pods wait while there are pools, since they declare no narrower scope."""
        if not loaded.configuration.pools:
            return ()
        waits = "while there are pools, the pods of this profile wait"
        text = f"has the scope cluster: it {OF_ANY_NAMESPACE}; {waits}"
        problems = [
            Problem(f"profiles[{number}]: plugin {plugin.name} {text}", ("profiles", number))
            for number, resolved in enumerate(loaded.profiles)
            for plugin in filter(None, map(self.plugins.get, resolved.plugin_names))
            if concerns_all_pods(plugin.adapted)
        ]
        return tuple(map(str, located(name, loaded.source, problems)))

    def rights_of(self, name: str) -> tuple[Right, ...]:
        """The rights that a user's plugin declares; empty for in-tree plugins."""
        plugin = self.plugins.get(name)
        return plugin.rights if plugin is not None else ()

    @property
    def edition(self) -> frozenset[tuple[str, str, str]]:
        """Equal for two scans that found the same plugins in files of the same content."""
        return frozenset(
            (name, plugin.origin, plugin.own.__module__ if plugin.given else "")
            for name, plugin in self.plugins.items()
        )

    @property
    def contents(self) -> tuple[tuple[str, str, str], ...]:
        """As `edition`, sorted; a file is identified by a digest of its content."""
        return tuple(
            sorted(
                (name, origin, module.rpartition("_")[2])
                if module.startswith(MODULE_PREFIX)
                else (name, origin, module)
                for name, origin, module in self.edition
            )
        )

    @property
    def given(self) -> tuple[str, ...]:
        """Names of the plugins given by flag."""
        return tuple(name for name, plugin in self.plugins.items() if plugin.given)


def discover(plugins: Sequence[str] = (), plugin_dir: str = "") -> Catalogue:
    """Find all plugins; changed files are read again. Raises PluginLoadError."""
    try:
        points = entry_points(group=GROUP)
    except Exception as error:
        text = f"the entry points of an installed package cannot be read: {error}; reinstall it"
        raise PluginLoadError(text) from error
    catalogue = Catalogue([_of_entry_point(point) for point in points])
    for reference in plugins:
        for plugin in _of_reference(reference):
            catalogue.add(plugin)
    if plugin_dir:
        for plugin in _of_directory(Path(plugin_dir)):
            catalogue.add(plugin)
    return catalogue


def plugin_files(plugins: Sequence[str] = (), plugin_dir: str = "") -> tuple[str, ...]:
    """The files that `discover` would read now."""
    named = (reference.rpartition(":")[0] or reference for reference in plugins)
    files = [name for name in named if name.endswith(".py")]
    try:
        found = _plugin_files(Path(plugin_dir)) if plugin_dir else []
    except PluginLoadError:
        found = []  # reported when they are read
    return (*files, *map(str, found))


def drop_old_modules(catalogue: Catalogue) -> None:
    """Remove modules of former contents of files; those of the catalogue stay."""
    used = {plugin.own.__module__ for plugin in catalogue.plugins.values() if plugin.given}
    for name in [name for name in sys.modules if name.startswith(MODULE_PREFIX)]:
        if name not in used:
            del sys.modules[name]


def _of_entry_point(point: EntryPoint) -> UserPlugin:
    package = point.dist
    origin = f"{package.name} {package.version}" if package is not None else "a package"

    def load() -> type[Any]:
        found = _guarded(point.load, f"plugin {point.name} of {origin} ({point.value})")
        return _class(found, f"{point.value} of {origin}")

    return UserPlugin(point.name, origin, load, given=False)


def _of_reference(reference: str) -> list[UserPlugin]:
    """`module:Class`, `file.py:Class`, or `file.py` for all plugins in it."""
    where, _, attribute = reference.rpartition(":")
    if reference.endswith(".py"):
        where, attribute = reference, ""
    if where.endswith(".py"):
        module = _module_of_file(Path(where))
        if not attribute:
            return _of_module(module, where)
    elif not where or not attribute:
        raise PluginLoadError(f"--plugin {reference}: use module:Class or file.py[:Class]")
    else:
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))
        module = _guarded(lambda: importlib.import_module(where), f"--plugin {reference}")
    cls: Any = module
    for part in attribute.split("."):
        if not hasattr(cls, part):
            present = [name for name in vars(cls) if not name.startswith("_")]
            hint = did_you_mean(part, present)
            text = f"--plugin {reference}: {where} has no {part}"
            raise PluginLoadError(text + (f" ({hint})" if hint else ""))
        cls = getattr(cls, part)
    return [of_class(_class(cls, reference), reference)]


def of_class(cls: type[Any], origin: str) -> UserPlugin:
    name = getattr(cls, "name", "")
    name = name if isinstance(name, str) and name else cls.__name__
    plugin = UserPlugin(name, origin, lambda: cls)
    assert plugin.points, f"{name} has no extension point"
    return plugin


def _of_module(module: ModuleType, origin: str) -> list[UserPlugin]:
    classes = dict.fromkeys(  # a class with two names is one plugin
        cls
        for name, cls in vars(module).items()
        if isinstance(cls, type) and cls.__module__ == module.__name__ and _is_plugin(name, cls)
    )
    if not classes:
        raise PluginLoadError(
            f"{origin} contains no plugin: no public class has a method named after an extension"
            " point, such as filter or score"
        )
    return [of_class(cls, f"{origin}:{cls.__name__}") for cls in classes]


def _is_plugin(name: str, cls: type[Any]) -> bool:
    if name.startswith("_"):
        return False
    return issubclass(cls, Plugin) or bool(adapter.methods_of(cls))


def _of_directory(folder: Path) -> Iterator[UserPlugin]:
    if not folder.is_dir():
        raise PluginLoadError(f"--plugin-dir {folder}: is not a directory")
    for path in _plugin_files(folder):
        yield from _of_module(_module_of_file(path), str(path))


def _plugin_files(folder: Path) -> list[Path]:
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".py")
    except OSError as error:
        raise PluginLoadError(f"--plugin-dir {folder}: {error.strerror}") from error
    return [path for path in files if not path.name.startswith((".", "_", "test_"))]


def _module_of_file(path: Path) -> ModuleType:
    """A module for each content of a file; objects of the old one keep working."""
    what = f"plugin file {path}"
    try:
        content = file_content(path)
    except FileNotFoundError as error:
        raise PluginLoadError(f"{what}: there is no such file") from error
    except OSError as error:
        raise PluginLoadError(f"{what} cannot be read: {error.strerror}") from error
    version = hashlib.sha256(content).hexdigest()[:16]
    place = re.sub(r"\W", "_", str(path.absolute()))
    name = f"{MODULE_PREFIX}{place}_{version}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses look up their module
    try:
        _guarded(lambda: exec(compile(content, str(path), "exec"), vars(module)), what)  # noqa: S102
    except PluginLoadError:
        del sys.modules[name]
        raise
    linecache.checkcache(str(path))  # else tracebacks show lines of the old content
    return module


def _guarded(load: Callable[[], Any], what: str) -> Any:
    """Import in a thread: the module may call sys.exit, which ends only the thread, or hang."""
    loading = begin_thread("plugin import", load)
    try:
        error = loading.exception(IMPORT_S)
    except TimeoutError:
        text = f"{what} was not imported within {IMPORT_S:g} s: importing a module must not block"
        raise PluginLoadError(text) from None
    if error is not None:
        raise PluginLoadError(_not_imported(what, error)) from error
    return loading.result()


def _not_imported(what: str, error: BaseException) -> str:
    where = _line_of(error)
    if isinstance(error, ModuleNotFoundError) and not where:
        where = "; install its package, set PYTHONPATH, or name a file.py"
    text = f"{what} cannot be imported: {type(error).__name__}: {error}{where}"
    return " ".join(text.split())


def _line_of(error: BaseException) -> str:
    """The line of the user's file: the last frame outside of the import system."""
    trace, found = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith("<frozen") and file not in OURS:
            found = f" ({file}:{trace.tb_lineno})"
        trace = trace.tb_next
    return found


def _class(cls: Any, origin: str) -> type[Any]:
    if not isinstance(cls, type):
        raise PluginLoadError(f"{origin} is a {type(cls).__name__}, a plugin is a class")
    return cls
