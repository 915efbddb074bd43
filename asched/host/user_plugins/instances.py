"""Create instances of users' plugins without blocking the scheduling loop.

An `__init__` that takes no cluster runs in a thread, with the deadline MAKE_S, while pods are
scheduled; one that takes `cluster` runs on the loop: no other thread may use the state. Its errors
are raised where the profile is built.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from asched.core.cluster.cluster import Cluster
from asched.core.config.merge import resolve
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.framework.points import Plugin
from asched.core.framework.profile import Factory
from asched.host.user_plugins.arguments import ArgsError, instance_of, takes_cluster
from asched.host.user_plugins.catalogue import Catalogue, UserPlugin
from asched.kube.tasks import in_thread

#: As for an import.
MAKE_S: Final = 30.0


async def factories(
    catalogue: Catalogue, configuration: SchedulerConfiguration, cluster: Cluster
) -> Mapping[str, Factory]:
    """Factories for the plugins of a configuration's profiles, in order; users' plugins are created
    already. Raises UnusableProfileError.
    """
    if not catalogue.plugins:
        return catalogue.factories
    made: defaultdict[str, deque[Any]] = defaultdict(deque)
    for index, profile in enumerate(configuration.profiles):
        resolved = resolve(profile, catalogue.known, index)
        args = {entry.name: entry.args for entry in resolved.profile.plugin_configs}
        for name in resolved.plugin_names:
            plugin = catalogue.plugins.get(name)
            if plugin is not None and not takes_cluster(plugin.own):
                made[name].append(await _made(plugin, args.get(name), cluster))
    return {
        **catalogue.factories,
        **{name: partial(_take, catalogue.plugins[name], ready) for name, ready in made.items()},
    }


async def _made(plugin: UserPlugin, args: Any, cluster: Cluster) -> Any:
    """The instance, or an ArgsError."""
    make = partial(instance_of, plugin.instance_class, args, cluster)
    try:
        async with asyncio.timeout(MAKE_S):
            return await in_thread("plugin", make)
    except TimeoutError:
        return ArgsError(f"__init__ did not end within {MAKE_S:g} s: it must not block")
    except ArgsError as error:
        return error


def _take(plugin: UserPlugin, ready: deque[Any], _args: Any, cluster: Cluster) -> Plugin:
    found = ready.popleft()
    if isinstance(found, ArgsError):
        raise found
    return plugin.adopt(found, cluster)
