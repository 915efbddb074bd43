"""A plugin of a former configuration goes with its profile: nothing that it made holds it.

The collector of garbage never looks at what is old, so whatever is in a circle with a plugin would
stay for good, with all that it knows.
"""

from weakref import ref

import pytest

from asched.core.framework.profile import Factory
from asched.core.state.cluster import Cluster
from tests.contract.asking import MAKERS
from tests.garbage import uncollected


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_plugin_goes_with_its_last_user(make: Factory) -> None:
    cluster = Cluster()
    make(None, cluster)  # what it makes for the cluster stays
    with uncollected() as left:
        plugin = make(None, cluster)
        gone = ref(plugin)
        registered = (plugin.registrations(), plugin.extra_events())
        del registered, plugin
        assert gone() is None
    assert left == {}
