"""In-tree volumes translated to their CSI drivers: names, handles and topology.

Five kinds have moved permanently: AWS EBS, GCE PD, Azure disk, OpenStack Cinder, Portworx. Volume
limits count their volumes under the driver's name. Where a node says that it has moved (an
annotation of its CSINode), a volume's zone is evaluated by the driver's own topology key instead of
the zone label.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/csi-translation-lib
"""

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from asched import names
from asched.core.model.meta import LabelSelectorRequirement
from asched.core.model.pod import AwsElasticBlockStore, Volume
from asched.core.model.selector import NodeSelector, NodeSelectorTerm

if TYPE_CHECKING:
    from asched.core.model.volume import PersistentVolume, PersistentVolumeSpec

#: On CSINode: comma-separated in-tree plugins that have moved to CSI on that node.
MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"

_ZONE_DELIMITER: Final = "__"
_UNSPECIFIED: Final = "UNSPECIFIED"
_EBS_ID: Final = re.compile(r"vol-[^/]*")


class MigrationError(ValueError):
    """An in-tree volume that its CSI driver could not name."""


class CsiVolume(NamedTuple):
    """Driver and handle under which an attached volume is counted."""

    driver: str
    handle: str


class MigratedPlugin(NamedTuple):
    """One in-tree plugin and its successor. `topology_key` is "" where zones are not translated."""

    plugin: str
    driver: str
    topology_key: str


EBS: Final = MigratedPlugin(
    "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"
)
GCE: Final = MigratedPlugin("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone")
AZURE: Final = MigratedPlugin("kubernetes.io/azure-disk", "disk.csi.azure.com", "")
CINDER: Final = MigratedPlugin(
    "kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
)
PORTWORX: Final = MigratedPlugin("kubernetes.io/portworx-volume", "pxd.portworx.com", "")

BY_PLUGIN: Final = {moved.plugin: moved for moved in (EBS, GCE, AZURE, CINDER, PORTWORX)}
#: Can be translated, but are not counted: vSphere and Azure file.
UNCOUNTED_PLUGINS: Final = frozenset({"kubernetes.io/vsphere-volume", "kubernetes.io/azure-file"})


def is_inline_migratable(volume: Volume) -> bool:
    """Whether an inline volume is of a kind that has moved to CSI, counted or not."""
    return (
        volume.aws_elastic_block_store is not None
        or volume.gce_persistent_disk is not None
        or volume.azure_disk is not None
        or volume.cinder is not None
        or volume.portworx_volume is not None
        or volume.azure_file is not None
        or volume.vsphere_volume is not None
    )


def inline_volume(volume: Volume) -> CsiVolume | None:
    """The counted identity of an inline in-tree disk of a pod, or None. Raises MigrationError."""
    moved = _plugin(volume)
    return None if moved is None else CsiVolume(moved.driver, _handle(volume, {}))


def volume_source(volume: "PersistentVolume") -> CsiVolume | None:
    """The counted identity of a persistent volume; None if no CSI driver attaches it."""
    spec = volume.spec
    if spec.csi is not None:
        return CsiVolume(spec.csi.driver, spec.csi.volume_handle)
    moved = plugin_of(volume)
    if moved is None:
        return None
    try:
        return CsiVolume(moved.driver, _handle(spec, volume.metadata.labels or {}))
    except MigrationError:
        return None


def plugin_of(volume: "PersistentVolume") -> MigratedPlugin | None:
    """The in-tree plugin of a persistent volume, if it has moved to CSI."""
    return _plugin(volume.spec)


def _plugin(source: "Volume | PersistentVolumeSpec") -> MigratedPlugin | None:
    if source.aws_elastic_block_store is not None:
        return EBS
    if source.gce_persistent_disk is not None:
        return GCE
    if source.azure_disk is not None:
        return AZURE
    if source.cinder is not None:
        return CINDER
    return PORTWORX if source.portworx_volume is not None else None


def migrated_plugins(annotations: dict[str, str] | None) -> frozenset[str]:
    """The in-tree plugins that have moved to CSI on the node of a CSINode."""
    text = (annotations or {}).get(MIGRATED_PLUGINS, "")
    return frozenset(text.split(",")) if text else frozenset()


def translated_affinity(volume: "PersistentVolume", moved: MigratedPlugin) -> NodeSelector | None:
    """The node affinity of a volume once its plugin has moved; unchanged where zones are not
    translated.
    """
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    if not moved.topology_key:
        return required
    zone_key, region_key = _topology_keys(volume, required)
    if _values(required, zone_key):
        required = _renamed(required, zone_key, moved.topology_key)
    else:
        zones = _zones((volume.metadata.labels or {}).get(zone_key, ""))
        if zones:
            required = _narrowed(required, moved.topology_key, zones)
    if _values(required, region_key):
        required = _renamed(required, region_key, names.LABEL_REGION)
    return required


def _topology_keys(volume: "PersistentVolume", required: NodeSelector | None) -> tuple[str, str]:
    """(zone, region) labels in use: the affinity's before the volume's own, GA before beta."""
    ga = (names.LABEL_ZONE, names.LABEL_REGION)
    beta = (names.LABEL_BETA_ZONE, names.LABEL_BETA_REGION)
    keys = {
        expression.key
        for term in (required.node_selector_terms if required else None) or ()
        for expression in term.match_expressions or ()
    }
    for zone_key, region_key in (ga, beta):
        if zone_key in keys:
            return zone_key, region_key
    labels = volume.metadata.labels or {}
    return beta if ga[0] not in labels and beta[0] in labels else ga


def _values(required: NodeSelector | None, key: str) -> bool:
    return any(
        expression.key == key and expression.values
        for term in (required.node_selector_terms if required else None) or ()
        for expression in term.match_expressions or ()
    )


def _renamed(required: NodeSelector | None, old_key: str, new_key: str) -> NodeSelector | None:
    terms = (required.node_selector_terms if required else None) or ()
    return NodeSelector(
        tuple(
            NodeSelectorTerm(
                tuple(
                    LabelSelectorRequirement(
                        new_key if e.key == old_key else e.key, e.operator, e.values
                    )
                    for e in term.match_expressions or ()
                ),
                term.match_fields,
            )
            for term in terms
        )
    )


def _narrowed(required: NodeSelector | None, key: str, zones: tuple[str, ...]) -> NodeSelector:
    terms = (required.node_selector_terms if required else None) or (NodeSelectorTerm(),)
    zone = LabelSelectorRequirement(key, "In", zones)
    return NodeSelector(
        tuple(
            NodeSelectorTerm((*(term.match_expressions or ()), zone), term.match_fields)
            for term in terms
        )
    )


def _zones(label: str) -> tuple[str, ...]:
    return tuple(sorted({zone.strip() for zone in label.split(_ZONE_DELIMITER)} - {""}))


def _handle(source: "Volume | PersistentVolumeSpec", labels: dict[str, str]) -> str:
    if source.aws_elastic_block_store is not None:
        return _ebs_id(source.aws_elastic_block_store)
    if source.gce_persistent_disk is not None:
        return _gce_handle(source.gce_persistent_disk.pd_name, labels)
    if source.azure_disk is not None:
        return source.azure_disk.disk_uri
    if source.cinder is not None:
        return source.cinder.volume_id
    return source.portworx_volume.volume_id if source.portworx_volume is not None else ""


def _ebs_id(source: AwsElasticBlockStore) -> str:
    """`aws://<zone>/<id>`, `aws:///<id>` or the bare id."""
    text = source.volume_id
    if not text.startswith("aws://"):
        return text
    try:
        found = urlsplit(text).path.strip("/")
    except ValueError as error:
        raise MigrationError(f"invalid disk name ({text}): {error}") from error
    if _EBS_ID.fullmatch(found) is None:
        raise MigrationError(f"invalid format for AWS volume ({text})")
    return found


def _gce_handle(name: str, labels: dict[str, str]) -> str:
    label = labels.get(names.LABEL_ZONE) or labels.get(names.LABEL_BETA_ZONE) or ""
    zones = label.split(_ZONE_DELIMITER)
    if len(zones) == 1:
        return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{name}"
    regions = {"-".join(zone.split("-")[:2]) for zone in zones}
    if len(regions) != 1 or any(zone.count("-") != 2 for zone in zones):
        raise MigrationError(f"multiple or no regions in zones {label}")
    return f"projects/{_UNSPECIFIED}/regions/{regions.pop()}/disks/{name}"
