"""Volumes in use: disks, claims and CSI volumes by row, and the number of volumes of each driver.

    pod on a row ──uses──> claim ──PVC, PV, class──> (driver, handle)    counted once per row
    VolumeAttachment ─────────────────PV───────────> (driver, handle)    counted without a pod, too
    CSINode ──> the limit of a driver on a row; in-tree plugins migrated to CSI on it

Nothing is recounted: a pod that comes or goes changes the counts of its volumes; an object that
changes renames the volumes that depend on it, and logs the rows (`Aspect.PODS`), so that cached
results are updated. An unbound claim counts as a volume of its own of its class's provisioner.
Claims that cannot be resolved do not count.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/nodevolumelimits
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from asched.core.cluster.nodes import PODS_MOVED, NodeTable
from asched.core.cluster.pods import PodInfo
from asched.core.model.arrays import I64, Mask
from asched.core.model.kinds import (
    CSI_NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    Kind,
)
from asched.core.model.migration import (
    BY_PLUGIN,
    UNCOUNTED_PLUGINS,
    CsiVolume,
    migrated_plugins,
    volume_source,
)
from asched.core.model.quantity import INT64_MAX
from asched.core.model.storage import ClaimUse, Disk, claim_class, is_owned

#: A driver without a limit, or a node without a CSINode.
UNLIMITED: Final = INT64_MAX

K = TypeVar("K")

#: The newest version of an object from the API, or None.
Lookup = Callable[[Kind, str], Any]
Rows = dict[int, int]  # row -> number of pods (or attachments)

_NOWHERE: Final[Mapping[int, int]] = {}


class VolumeIndex:
    """Only `core/cluster` calls the methods that change something."""

    def __init__(self, nodes: NodeTable, lookup: Lookup) -> None:
        self._nodes = nodes
        self._lookup = lookup
        #: disk identity -> row -> (pods that use it, pods that use it exclusively)
        self.disks: dict[tuple[str, ...], dict[int, tuple[int, int]]] = {}
        #: claim names (of any namespace) changed by the running trial
        self.on_trial: dict[str, int] = {}
        self._uses: dict[ClaimUse, Rows] = {}
        self._volume_of: dict[ClaimUse, CsiVolume | None] = {}
        self._names_of: dict[ClaimUse, tuple[tuple[str, str], ...]] = {}
        self._named_by: dict[tuple[str, str], set[ClaimUse]] = defaultdict(set)
        self._held: dict[CsiVolume, Rows] = {}
        self._attached: dict[CsiVolume, Rows] = {}
        self._attachments: dict[str, tuple[str, CsiVolume]] = {}  # attachment -> (node, volume)
        self._attachments_on: dict[str, set[str]] = defaultdict(set)
        self._attachments_of: dict[str, set[str]] = defaultdict(set)  # volume name -> attachments
        self._attached_name: dict[str, str] = {}  # attachment -> volume name
        self._counts: dict[str, I64] = {}
        self._limits: dict[str, I64] = {}
        self._moved: dict[str, Mask] = {}
        self._installed: dict[str, Mask] = {}
        #: sums of a driver's columns: at 0 the columns are dropped
        self._counted: dict[str, int] = {}
        self._installs: dict[str, int] = {}
        self._drivers_of: dict[int, tuple[str, ...]] = {}
        self._plugins_of: dict[int, frozenset[str]] = {}
        #: grows when in-tree plugins of a node migrate to CSI, or back
        self.moved_generation = 0

    # --- for readers -----------------------------------------------------------------------------

    def rows_of(self, volume: CsiVolume) -> Mapping[int, int]:
        """Row -> number of pods there that use the volume."""
        return self._held.get(volume, _NOWHERE)

    def counts(self, driver: str) -> I64:
        """int64[N]: distinct volumes of a driver on each row."""
        if driver not in self._counts:
            return np.zeros(self._nodes.columns.capacity, dtype=np.int64)
        counts: I64 = _shown(self._column(self._counts, driver, 0))
        return counts

    def limits(self, driver: str) -> I64 | None:
        """int64[N]: limits by row (UNLIMITED without one); None if no row has a limit."""
        if driver not in self._limits:
            return None
        limits: I64 = _shown(self._column(self._limits, driver, UNLIMITED))
        return limits

    def moved(self, plugin: str) -> Mask | None:
        """bool[N]: rows on which an in-tree plugin has migrated to CSI; None without any."""
        if plugin not in self._moved:
            return None
        moved: Mask = _shown(self._column(self._moved, plugin, fill=False))
        return moved

    def has_driver(self, driver: str) -> Mask:
        """bool[N]: rows whose CSINode lists the driver."""
        if driver not in self._installed:
            return np.zeros(self._nodes.columns.capacity, dtype=np.bool_)
        installed: Mask = _shown(self._column(self._installed, driver, fill=False))
        return installed

    def has_csi_node(self) -> Mask:
        """bool[N]: rows whose node has a CSINode."""
        found = np.zeros(self._nodes.height, dtype=np.bool_)
        found[list(self._drivers_of)] = True
        return found

    def volume_of(self, use: ClaimUse) -> CsiVolume | None:
        """The volume as which a claim counts; None if it does not, or cannot be resolved."""
        claim = self._lookup(PERSISTENT_VOLUME_CLAIM, use.key)
        if claim is None or (use.owner and not is_owned(claim, use.owner)):
            return None
        if claim.spec.volume_name:
            volume = self._lookup(PERSISTENT_VOLUME, claim.spec.volume_name)
            if volume is not None:
                return _counted(volume_source(volume))
        storage_class = self._lookup(STORAGE_CLASS, claim_class(claim))
        if storage_class is None:
            return None
        driver = storage_class.provisioner
        if driver in BY_PLUGIN:
            driver = BY_PLUGIN[driver].driver
        elif driver in UNCOUNTED_PLUGINS:
            return None
        # No driver uses such a handle, so an unbound claim never equals a volume.
        return _counted(CsiVolume(driver, f"\0{use.key}"))

    def names_of(self, use: ClaimUse) -> tuple[tuple[str, str], ...]:
        """(resource, key) of the objects that determine the volume of a claim."""
        return self._names(use)

    def is_named(self, kind: Kind, key: str) -> bool:
        """Whether an object determines the volume of a claim of some placed pod."""
        return (kind.resource, key) in self._named_by

    # --- pods ------------------------------------------------------------------------------------

    def move(self, info: PodInfo, row: int, sign: int, *, on_trial: bool) -> None:
        """A pod was added to (+1) or left (-1) a row."""
        storage = info.cls.storage
        for disk in storage.disks:
            self._move_disk(disk, row, sign)
        for use in storage.claims:
            if on_trial and not use.owner:
                _move(self.on_trial, use.name, sign)
            self._use(use, row, sign)
        changes: Counter[str] = Counter()
        for volume in storage.migrated:
            changes[volume.driver] += self._referred(self._held, self._attached, volume, row, sign)
        for driver, change in changes.items():
            self._count(driver, row, change)

    def _move_disk(self, disk: Disk, row: int, sign: int) -> None:
        for identity in disk.identities:
            rows = self.disks.setdefault(identity, {})
            users, owners = rows.get(row, (0, 0))
            users += sign
            if users:
                rows[row] = (users, owners if disk.shares else owners + sign)
            else:
                del rows[row]
                if not rows:
                    del self.disks[identity]

    def _use(self, use: ClaimUse, row: int, sign: int) -> None:
        rows = self._uses.get(use)
        if rows is None:
            rows = self._uses[use] = {}
            self._volume_of[use] = self.volume_of(use)
            self._rename(use, self._names(use))
        volume = self._volume_of[use]
        _move(rows, row, sign)
        if volume is not None:
            self._hold(volume, row, sign)
        if not rows:
            self._rename(use, ())
            del self._uses[use], self._volume_of[use], self._names_of[use]

    def _names(self, use: ClaimUse) -> tuple[tuple[str, str], ...]:
        """(resource, key) of the objects that determine the volume of a claim."""
        named = (PERSISTENT_VOLUME_CLAIM.resource, use.key)
        claim = self._lookup(PERSISTENT_VOLUME_CLAIM, use.key)
        if claim is None:
            return (named,)
        volume = (PERSISTENT_VOLUME.resource, claim.spec.volume_name)
        return (named, volume, (STORAGE_CLASS.resource, claim_class(claim)))

    def _rename(self, use: ClaimUse, names: tuple[tuple[str, str], ...]) -> None:
        for name in self._names_of.get(use, ()):
            uses = self._named_by[name]
            uses.discard(use)
            if not uses:
                del self._named_by[name]
        for name in names:
            self._named_by[name].add(use)
        self._names_of[use] = names

    def _hold(self, volume: CsiVolume, row: int, amount: int) -> None:
        change = self._referred(self._held, self._attached, volume, row, amount)
        self._count(volume.driver, row, change)

    def _count(self, driver: str, row: int, change: int) -> None:
        if not change:
            return
        self._column(self._counts, driver, 0)[row] += change
        _move(self._counted, driver, change)
        if driver not in self._counted:
            del self._counts[driver]

    def _referred(
        self,
        by_own_source: dict[CsiVolume, Rows],
        by_other_source: dict[CsiVolume, Rows],
        volume: CsiVolume,
        row: int,
        amount: int,
    ) -> int:
        """The change of the row's number of volumes."""
        rows = by_own_source.setdefault(volume, {})
        before = row in rows
        _move(rows, row, amount)
        after = row in rows
        if not rows:
            del by_own_source[volume]
        if before != after and row not in by_other_source.get(volume, _NOWHERE):
            return 1 if after else -1
        return 0

    # --- other objects ---------------------------------------------------------------------------

    def touch(self, kind: Kind, key: str) -> None:
        """An object was added, changed or deleted; `lookup` returns its present state."""
        if kind is CSI_NODE:
            row = self._nodes.row_of.get(key)
            if row is not None:
                self._read_csi_node(row, key)
            return
        if kind is VOLUME_ATTACHMENT:
            self._read_attachment(key)
            return
        if kind is PERSISTENT_VOLUME:
            for attachment in tuple(self._attachments_of.get(key, ())):
                self._read_attachment(attachment)
        if kind in _NAMING:
            for use in tuple(self._named_by.get((kind.resource, key), ())):
                self._name_anew(use)

    def _name_anew(self, use: ClaimUse) -> None:
        self._rename(use, self._names(use))
        old, new = self._volume_of[use], self.volume_of(use)
        if old == new:
            return
        self._volume_of[use] = new
        for row, pods in self._uses[use].items():
            if old is not None:
                self._hold(old, row, -pods)
            if new is not None:
                self._hold(new, row, pods)
            self._nodes.log.add(row, PODS_MOVED)

    def _read_attachment(self, key: str) -> None:
        attachment = self._lookup(VOLUME_ATTACHMENT, key)
        known = self._attachments.pop(key, None)
        if known is not None:
            self._attachments_on[known[0]].discard(key)
            if not self._attachments_on[known[0]]:
                del self._attachments_on[known[0]]
            self._attach(*known, -1)
        self._name_attachment(key, None)
        name = attachment.spec.source.persistent_volume_name if attachment is not None else None
        if name is None:
            return
        self._name_attachment(key, name)
        volume = self._lookup(PERSISTENT_VOLUME, name)
        if not attachment.spec.attacher or volume is None or volume.spec.csi is None:
            return
        found = CsiVolume(attachment.spec.attacher, volume.spec.csi.volume_handle)
        self._attachments[key] = (attachment.spec.node_name, found)
        self._attachments_on[attachment.spec.node_name].add(key)
        self._attach(attachment.spec.node_name, found, 1)

    def _name_attachment(self, key: str, name: str | None) -> None:
        """Store, or drop, the persistent volume of an attachment."""
        known = self._attached_name.pop(key, None)
        if known is not None:
            self._attachments_of[known].discard(key)
            if not self._attachments_of[known]:
                del self._attachments_of[known]
        if name is not None:
            self._attached_name[key] = name
            self._attachments_of[name].add(key)

    def _attach(self, node: str, volume: CsiVolume, amount: int) -> None:
        row = self._nodes.row_of.get(node)
        if row is not None:
            change = self._referred(self._attached, self._held, volume, row, amount)
            self._count(volume.driver, row, change)
            self._nodes.log.add(row, PODS_MOVED)

    # --- nodes -----------------------------------------------------------------------------------

    def node_came(self, name: str, row: int) -> None:
        """A node has a row now: stored data about it counts from here."""
        self._read_csi_node(row, name)
        for key in self._attachments_on.get(name, ()):
            self._attach(name, self._attachments[key][1], 1)

    def node_goes(self, name: str, row: int) -> None:
        """A node is about to lose its row; its pods have left it."""
        for key in self._attachments_on.get(name, ()):
            self._attach(name, self._attachments[key][1], -1)
        self._write_csi_node(row, None)

    def _read_csi_node(self, row: int, name: str) -> None:
        self._write_csi_node(row, self._lookup(CSI_NODE, name))
        self._nodes.log.add(row, PODS_MOVED)

    def _write_csi_node(self, row: int, csi_node: Any) -> None:
        for driver in self._drivers_of.pop(row, ()):
            self._column(self._installed, driver, fill=False)[row] = False
            if driver in self._limits:
                self._column(self._limits, driver, UNLIMITED)[row] = UNLIMITED
            _move(self._installs, driver, -1)
            if driver not in self._installs:
                del self._installed[driver]
                self._limits.pop(driver, None)
        before = self._plugins_of.pop(row, frozenset())
        after: frozenset[str] = frozenset()
        if csi_node is not None:
            drivers = csi_node.spec.drivers or ()
            for driver in drivers:
                _move(self._installs, driver.name, 1)
                self._column(self._installed, driver.name, fill=False)[row] = True
                if driver.allocatable is not None and driver.allocatable.count is not None:
                    limits = self._column(self._limits, driver.name, UNLIMITED)
                    limits[row] = driver.allocatable.count
            self._drivers_of[row] = tuple(driver.name for driver in drivers)
            after = migrated_plugins(csi_node.metadata.annotations)
        if after:
            self._plugins_of[row] = after
        for plugin in before ^ after:
            self._column(self._moved, plugin, fill=False)[row] = plugin in after
            self.moved_generation += 1

    def _column(self, columns: dict[str, Any], name: str, fill: int | bool) -> Any:
        """A column by row, created or extended on demand."""
        column = columns.get(name)
        capacity = self._nodes.columns.capacity
        if column is None or len(column) < capacity:
            grown: npt.NDArray[Any] = np.full(
                capacity, fill, dtype=np.bool_ if isinstance(fill, bool) else np.int64
            )
            if column is not None:
                grown[: len(column)] = column
            column = columns[name] = grown
        return column


_NAMING: Final = (PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME, STORAGE_CLASS)


def _counted(volume: CsiVolume | None) -> CsiVolume | None:
    return volume if volume is not None and volume.driver and volume.handle else None


def _shown(column: Any) -> Any:
    """A read-only view of the column."""
    shown = column.view()
    shown.flags.writeable = False
    return shown


def _move(counts: dict[K, int], key: K, amount: int) -> None:
    count = counts.get(key, 0) + amount
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)
