"""The parts of a profile that the queue uses."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from asched.core.framework.points import Registration
from asched.core.model.pod import Pod

if TYPE_CHECKING:
    from asched.core.framework.points import PreEnqueuePlugin


class QueueProfile(msgspec.Struct, frozen=True):
    """The parts of a profile that the queue uses; no plugin is known by name.

    The sort key of the first profile is used for all profiles. `extra_events`: further changes,
    which wake a pod only if it fits at that moment: `blame` returns the plugins that reject it
    then, None if it fits.
    """

    sort_key: Callable[[Pod, float], Any]
    registrations: Mapping[str, Sequence[Registration]]
    pre_enqueue: Sequence["PreEnqueuePlugin"] = ()
    extra_events: Mapping[str, Sequence[Registration]] = msgspec.field(default_factory=dict)
    blame: Callable[[Pod, str], frozenset[str] | None] = lambda _pod, _left: None
