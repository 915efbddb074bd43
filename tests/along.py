"""The plugins that come along with asched, found as the command finds them: by entry points."""

from functools import cache
from importlib.metadata import entry_points

from asched.host.user_plugins.catalogue import GROUP, Catalogue, of_class


@cache
def plugins_along() -> Catalogue:
    """Those of `asched.hardware`, whatever else is installed."""
    offered = [one for one in entry_points(group=GROUP) if one.value.startswith("asched.hardware.")]
    return Catalogue([of_class(one.load(), one.value) for one in offered])
