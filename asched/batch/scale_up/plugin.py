"""GroupScaleUp: request the new nodes that a gang lacks, all of them at once.

For a gang that does not fit, one ProvisioningRequest of the class best-effort-atomic-scale-up is
made (`batch/scale_up/cycle.py`). cluster-autoscaler then adds all nodes for it, or none.

Rejects   nothing, and runs at no point: it is listed at postFilter.
Retry     a gang is tried again when nodes come, as without this plugin.
Cost      for a pod without a group one test, when it fits nowhere.
Source    our own; the object is cluster-autoscaler's (pkg/provisioningrequest/besteffortatomic)
"""

from collections.abc import Sequence
from typing import ClassVar

from asched import names
from asched.core.config.args import GroupScaleUpArgs
from asched.core.framework.points import Plugin
from asched.core.framework.registrations import Registration
from asched.core.model.kinds import POD_TEMPLATE, PROVISIONING_REQUEST, Kind


class GroupScaleUp(Plugin):
    name = names.GROUP_SCALE_UP
    listed_at: ClassVar[frozenset[str]] = frozenset({"postFilter"})
    kinds: ClassVar[tuple[Kind, ...]] = (PROVISIONING_REQUEST, POD_TEMPLATE)

    def __init__(self, args: GroupScaleUpArgs | None) -> None:
        self.args = args or GroupScaleUpArgs()

    def registrations(self) -> Sequence[Registration]:
        return ()
