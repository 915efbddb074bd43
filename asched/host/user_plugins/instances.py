"""Create instances of users' plugins without blocking the scheduling loop.

    __init__ takes no cluster     it runs in a thread, with a deadline, while pods are scheduled
    it takes `cluster`            it runs on the loop: no other thread may use the state

Its errors are raised where the profile is built.

Bounds  MAKE_S for one instance.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from asched.core.cluster.cluster import Cluster
from asched.core.config.merge import resolve
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.framework.points import Plugin
from asched.core.framework.profile import Factory
from asched.host.user_plugins import arguments
from asched.host.user_plugins.catalogue import Catalogue, UserPlugin
from asched.host.user_plugins.patience import NotInTimeError, within
from asched.kube.tasks import in_thread

#: As for an import.
MAKE_S: Final = 30.0

#: Returns the instance, or raises the error.
Made = Callable[[], Any]


async def factories(
    catalogue: Catalogue, configuration: SchedulerConfiguration, cluster: Cluster
) -> Mapping[str, Factory]:
    """Factories for the plugins of a configuration's profiles, in order; users' plugins are created
    already. Raises UnusableProfileError.
    """
    if not catalogue.plugins:
        return catalogue.factories
    made: defaultdict[str, deque[Made]] = defaultdict(deque)
    for index, profile in enumerate(configuration.profiles):
        resolved = resolve(profile, catalogue.known, index)
        args = {entry.name: entry.args for entry in resolved.profile.plugin_configs}
        for name in resolved.plugin_names:
            plugin = catalogue.plugins.get(name)
            if plugin is not None and not arguments.takes_cluster(plugin.own):
                work = partial(_made, plugin, args.get(name), cluster)
                made[name].append(await in_thread("plugin", work))
    return {
        **catalogue.factories,
        **{name: partial(_take, catalogue.plugins[name], ready) for name, ready in made.items()},
    }


def _made(plugin: UserPlugin, args: Any, cluster: Cluster) -> Made:
    try:
        instance = within(
            MAKE_S, lambda: arguments.instance_of(plugin.instance_class, args, cluster)
        )
    except NotInTimeError:
        text = f"__init__ did not end within {MAKE_S:g} s: it must not block"
        return partial(_refuse, arguments.ArgsError(text))
    except arguments.ArgsError as error:
        return partial(_refuse, error)
    return lambda: instance


def _refuse(error: Exception) -> None:
    raise error


def _take(plugin: UserPlugin, ready: deque[Made], _args: Any, cluster: Cluster) -> Plugin:
    return plugin.adopt(ready.popleft()(), cluster)
