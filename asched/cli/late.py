"""Modules that most starts need nothing of are loaded when something of them is asked for.

`LATE` names them, here and nowhere else. Whoever imports one as a module (`from asched.core.explain
import words`, and then `words.spelt`) loads it with the first thing he asks it for; whoever imports
a name out of it loads it at once, as always. So a module saves what it costs (half a millisecond)
only if all that is imported at each start imports it as a module, and wants nothing of it while it
is imported itself. `tests/cli/test_late.py` tells whom that is not true of.

Several threads may ask for the same module: one loads it, the others wait. Modules do not import
each other in circles, so nobody waits for who waits for him.

Written in modules that the interpreter has at hand frozen, as all that the door opens first.
`importlib.util.LazyLoader` loads a module when a second one imports it, and tells a second thread
before Python 3.13 that a module which is being loaded has no such name.
"""

import sys
from _thread import RLock
from importlib.machinery import ModuleSpec
from types import ModuleType

TYPE_CHECKING = False  # as type checkers read it; typing is none of those modules
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LATE = frozenset(
    {
        "asched.core.config.internal_text",
        "asched.core.config.qualified",
        "asched.core.config.text",
        "asched.core.cycle.group_board",
        "asched.core.cycle.group_cycle",
        "asched.core.cycle.group_problem",
        "asched.core.cycle.request_pods",
        "asched.core.cycle.request_trial",
        "asched.core.cycle.start_times",
        "asched.core.dra.allocator",
        "asched.core.dra.answers",
        "asched.core.dra.demand",
        "asched.core.dra.devices",
        "asched.core.dra.effort",
        "asched.core.dra.plan",
        "asched.core.dra.pools",
        "asched.core.dra.result",
        "asched.core.dra.taint_rules",
        "asched.core.explain.against",
        "asched.core.explain.changes",
        "asched.core.explain.groups",
        "asched.core.explain.shortfalls",
        "asched.core.explain.ways",
        "asched.core.explain.words",
        "asched.core.extender.binder",
        "asched.core.extender.wire",
        "asched.core.framework.choices",
        "asched.core.framework.per_node.adapter",
        "asched.core.framework.results.filter_errors",
        "asched.core.gang.bounds",
        "asched.core.gang.phases",
        "asched.core.plugins.coscheduling",
        "asched.core.plugins.devices.allocation",
        "asched.core.plugins.devices.deallocation",
        "asched.core.plugins.devices.unreserve",
        "asched.core.plugins.inter_pod_affinity.attraction",
        "asched.core.plugins.inter_pod_affinity.extra_events",
        "asched.core.plugins.inter_pod_affinity.hints",
        "asched.core.plugins.pod_topology_spread.balance",
        "asched.core.plugins.scoring.requested_to_capacity_ratio",
        "asched.core.plugins.volumes.alternatives",
        "asched.core.plugins.volumes.scoring",
        "asched.core.preemption.candidates",
        "asched.core.preemption.choice",
        "asched.core.preemption.eviction",
        "asched.core.preemption.sparing",
        "asched.core.preemption.victims",
        "asched.core.queue.guarded_key",
        "asched.core.state.audit",
        "asched.edge.client.heads",
        "asched.edge.host.configuration.policy_configmap",
        "asched.edge.host.shadowing",
        "asched.edge.host.status_patch",
        "asched.edge.host.user_plugins.arguments",
        "asched.edge.host.user_plugins.rights",
        "asched.edge.host.view.holds",
        "asched.edge.host.view.starts",
        "asched.edge.serve.listening",
        # Others' modules that others import as modules, for what they rarely do.
        "argparse",
        "ctypes",
        "difflib",
        "hashlib",
        "ipaddress",
        "locale",
        "numpy._core._add_newdocs",
        "numpy._core._add_newdocs_scalars",
        "numpy._typing",
        "numpy.typing",
        "pickle",
        "platform",
        "subprocess",
        "tempfile",
        "textwrap",
        "tokenize",
        "typing_extensions",
    }
)


class Array:
    """`NDArray[...]` in an annotation."""

    def __class_getitem__(cls, _: object) -> type:
        return cls


def _typing() -> "dict[str, Any]":
    import typing

    return {name: getattr(typing, name) for name in ("get_type_hints", "NotRequired", "Required")}


def _streams() -> "dict[str, Any]":
    return {"PIPE": -1, "STDOUT": -2, "DEVNULL": -3}


def _system() -> "dict[str, Any]":
    import posix

    return {"system": lambda: posix.uname().sysname}


#: What is asked of a late module at each start, and can be answered without its source.
AT_HAND: "dict[str, Callable[[], dict[str, Any]]]" = {
    "numpy._typing": lambda: {"NDArray": Array},  # NumPy annotates its results
    "numpy.typing": lambda: {"NDArray": Array},
    "platform": _system,  # uuid asks, which msgspec imports
    "subprocess": _streams,  # asyncio has the same names
    "typing_extensions": _typing,  # msgspec asks there first
}


class LateModule(ModuleType):
    """A module whose source runs when it is asked for something."""

    def __getattr__(self, name: str) -> object:
        if not name.startswith("__"):
            assert self.__spec__ is not None
            self.__spec__.loader_state.load(self)
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class LateLoader:
    """Has another loader do it, later."""

    def __init__(self, loader: "Any") -> None:
        self._loader = loader
        self._lock = RLock()
        self._is_loading = False

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        spec.loader_state = self
        module = LateModule(spec.name)
        if spec.name in AT_HAND:
            module.__dict__.update(AT_HAND[spec.name]())
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Not yet."""

    def load(self, module: ModuleType) -> None:
        """Once. Raises what running its source raises, and will try again then."""
        with self._lock:
            if self._is_loading or not isinstance(module, LateModule):
                return  # asked for by what it imports itself; or somebody was faster
            self._is_loading = True
            try:
                self._loader.exec_module(module)
                module.__class__ = ModuleType  # type: ignore[assignment]
            finally:
                self._is_loading = False


class LateFinder:
    """Goes before all other finders, and asks them."""

    @staticmethod
    def find_spec(
        name: str, path: "Any" = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in LATE:
            return None
        for finder in sys.meta_path:
            if finder is not LateFinder:
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    spec.loader = LateLoader(spec.loader)  # type: ignore[assignment]
                    return spec
        return None


def use() -> None:
    """From now on."""
    sys.meta_path.insert(0, LateFinder)
