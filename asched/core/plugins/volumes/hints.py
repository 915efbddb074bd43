"""Which changes are worth another attempt for a pod that the volume binder rejected.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/volumebinding/volume_binding.go
"""

from typing import Final

from asched.core.framework.registrations import Concerns, Hint
from asched.core.model.migration import MIGRATED_PLUGINS
from asched.core.model.pod import Pod
from asched.core.model.storage import claim_use, storage_of, uses_claim
from asched.core.model.volume import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from asched.core.plugins.volumes.topology import volume_limit_bytes


def after_class_changed(pod: Pod, old: StorageClass | None, new: StorageClass) -> Hint:  # noqa: ARG001
    """New classes, and new topologies in which volumes may be provisioned."""
    moved = old is None or (old.allowed_topologies or ()) != (new.allowed_topologies or ())
    return Hint.QUEUE if moved else Hint.SKIP


def after_claim_changed(
    pod: Pod,
    old: PersistentVolumeClaim | None,  # noqa: ARG001
    new: PersistentVolumeClaim,
) -> Hint:
    """Claims that the pod names, and those that are made for it."""
    return Hint.QUEUE if uses_claim(pod, new, ephemeral=True) else Hint.SKIP


def after_named_claim_changed(
    pod: Pod,
    old: PersistentVolumeClaim | None,  # noqa: ARG001
    new: PersistentVolumeClaim,
) -> Hint:
    return Hint.QUEUE if uses_claim(pod, new, ephemeral=False) else Hint.SKIP


def after_csi_node_changed(pod: Pod, old: CsiNode | None, new: CsiNode) -> Hint:  # noqa: ARG001
    """In-tree plugins that move to CSI read the zones of their volumes differently."""
    moved = old is None or _moved(old) != _moved(new)
    return Hint.QUEUE if moved else Hint.SKIP


def after_csi_driver_changed(pod: Pod, old: CsiDriver, new: CsiDriver) -> Hint:
    """Capacity is no longer checked; upstream only considers drivers of inline volumes."""
    lifted = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    inline = any(
        volume.csi is not None and volume.csi.driver == new.metadata.name
        for volume in pod.spec.volumes or ()
    )
    return Hint.QUEUE if lifted and inline else Hint.SKIP


def after_capacity_changed(
    pod: Pod,  # noqa: ARG001
    old: CsiStorageCapacity | None,
    new: CsiStorageCapacity,
) -> Hint:
    grew = old is None or volume_limit_bytes(new) > volume_limit_bytes(old)
    return Hint.QUEUE if grew else Hint.SKIP


def volumes_are_free(pod: Pod, old: Pod, new: None) -> Hint:  # noqa: ARG001
    """A pod with claims is deleted, or its binding failed: its reserved volumes are free again."""
    return Hint.QUEUE if storage_of(old).claims else Hint.SKIP


_ANY: Final = ("any",)
#: The same as keys, independent of a waiting pod.
OF_CLAIMS: Final = Concerns(lambda _: _ANY, lambda old, _: _ANY if storage_of(old).claims else ())


def _claims_sought(pod: Pod) -> list[str]:
    """Keys of the claims that its volumes name, and of those that are made for it."""
    uses = [claim_use(pod, volume) for volume in pod.spec.volumes or ()]
    return [use.key for use in uses if use is not None]


#: A claim concerns the pods that name it: thousands of pods may each wait for their own.
OF_OWN_CLAIMS: Final = Concerns(_claims_sought, lambda _, new: (new.metadata.key,))


def _moved(csi_node: CsiNode) -> str:
    return (csi_node.metadata.annotations or {}).get(MIGRATED_PLUGINS, "")
