"""The plugins, one file each. `IN_TREE` names them all: what to add when a plugin is added.

A factory takes the plugin's arguments (a record of `config/args.py`, or None) and the cluster it may read.
"""

from collections.abc import Callable
from typing import Any, Final

from asched.core.framework.points import Plugin
from asched.core.state.cluster import Cluster

Factory = Callable[[Any, Cluster], Plugin]

IN_TREE: Final[dict[str, Factory]] = {}
