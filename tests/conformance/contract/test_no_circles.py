"""A plugin of a former configuration goes with its profile: nothing that it made holds it.

The collector of garbage never looks at what is old, so whatever is in a circle with a plugin would
stay for good, with all that it knows.
"""

from weakref import ref

from asched.core.cluster.cluster import Cluster
from tests.conformance.contract.asking import MAKERS
from tests.support import uncollected


def test_a_plugin_goes_with_its_last_user() -> None:
    clusters = {name: Cluster() for name in MAKERS}
    for name, make in MAKERS.items():
        make(None, clusters[name])  # what it makes for the cluster stays
    stayed = []
    with uncollected() as left:
        for name, make in MAKERS.items():
            plugin = make(None, clusters[name])
            gone = ref(plugin)
            registered = (plugin.registrations(), plugin.extra_events())
            del registered, plugin
            if gone() is not None:
                stayed.append(name)
    assert stayed == []
    assert left == {}
