"""How long tests wait for what must come.

A test that waits so long hangs, on whatever machine and beside whatever else: what comes sooner
costs nothing, so there is no reason to be less patient. Nothing is said about speed.
"""

from typing import Final

#: Seconds.
HANG_S: Final = 300.0
