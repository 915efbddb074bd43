"""With none of the plugins enabled, nothing of them is there."""

import subprocess
import sys
from importlib.metadata import entry_points

OFF = """
import sys
from asched.testing import given, node, pod

world = given([node("n1")])
assert world.schedule(pod("web")).node == "n1"
theirs = ("asched.hardware", "scipy", "xxhash")
print(sorted(name for name in sys.modules if name.startswith(theirs)))
"""


def test_the_default_profile_imports_none_of_them() -> None:
    told = subprocess.run([sys.executable, "-c", OFF], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_every_entry_point_is_a_plugin_of_that_name() -> None:
    along = [one for one in entry_points(group="asched.plugins") if "asched.hardware" in one.value]
    assert along
    for one in along:
        assert one.load().name == one.name
