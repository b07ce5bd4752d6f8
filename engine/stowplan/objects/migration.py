"""In-tree volumes as the CSI volumes that have replaced them.

Upstream: k8s.io/csi-translation-lib (`TranslateInTreePVToCSI`, `TranslateInTreeInlineVolumeToCSI`), as far as scheduling
can tell: driver, volume handle, and what becomes of the node affinity.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from stowplan.objects import wire, wire_storage

BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
ZONE_DELIMITER = "__"
_UNSPECIFIED = "UNSPECIFIED"
_EBS_ID = re.compile(r"vol-[^/]*", re.DOTALL)


class InTree(NamedTuple):
    """An in-tree plugin. `on`: its volumes count as CSI volumes wherever a node has CSI drivers at all."""

    name: str
    driver: str
    on: bool
    topology: str = ""
    """label key that takes the place of the zone label in a volume's node affinity; "": affinity stays as it is"""


EBS = InTree("kubernetes.io/aws-ebs", "ebs.csi.aws.com", True, "topology.ebs.csi.aws.com/zone")
GCE_PD = InTree("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", True, "topology.gke.io/zone")
CINDER = InTree("kubernetes.io/cinder", "cinder.csi.openstack.org", True, "topology.cinder.csi.openstack.org/zone")
AZURE_DISK = InTree("kubernetes.io/azure-disk", "disk.csi.azure.com", True)
PORTWORX = InTree("kubernetes.io/portworx-volume", "pxd.portworx.com", True)
AZURE_FILE = InTree("kubernetes.io/azure-file", "file.csi.azure.com", False)
VSPHERE = InTree("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", False)
IN_TREE: Mapping[str, InTree] = {p.name: p for p in (EBS, GCE_PD, CINDER, AZURE_DISK, PORTWORX, AZURE_FILE, VSPHERE)}


class Disk(NamedTuple):
    """The CSI volume behind a persistent or inline volume.

    `plugin` is the in-tree plugin it was translated from, None for a CSI volume as such; `fault` says why the translation
    fails, in upstream's words.
    """

    driver: str
    handle: str
    plugin: InTree | None = None
    fault: str | None = None


def disk_of(source: wire.Volume | wire_storage.Source, labels: Mapping[str, str] | None = None) -> Disk | None:
    """The CSI volume of a pod's volume (`labels` is None) or of a persistent volume with these labels; None if there is none."""
    if source.aws_elastic_block_store is not None:
        return _ebs(source.aws_elastic_block_store.volume_id or "")
    if source.gce_persistent_disk is not None:
        return _gce(source.gce_persistent_disk.pd_name or "", labels or {})
    if source.azure_disk is not None:
        return _azure(source.azure_disk)
    for simple, plugin in ((source.cinder, CINDER), (source.portworx_volume, PORTWORX)):
        if simple is not None:
            return Disk(plugin.driver, simple.volume_id or "", plugin)
    for other, plugin in ((source.azure_file, AZURE_FILE), (source.vsphere_volume, VSPHERE)):
        if other is not None:
            return Disk(plugin.driver, "", plugin)  # never counted, so any handle will do
    return None


def _azure(disk: wire.AzureDisk) -> Disk:
    unmanaged = disk.kind is not None and disk.kind.lower() != "managed"
    fault = f"kind({disk.kind}) is not supported in csi migration" if unmanaged else None
    return Disk(AZURE_DISK.driver, disk.disk_uri or "", AZURE_DISK, fault)


def _ebs(written: str) -> Disk:
    """`vol-1`, `aws://zone/vol-1` and `aws:///vol-1` are the same volume."""
    if not written.startswith("aws://"):
        return Disk(EBS.driver, written, EBS)
    path = re.split(r"[?#]", written.removeprefix("aws://"), maxsplit=1)[0].partition("/")[2].strip("/")
    if _EBS_ID.fullmatch(path):
        return Disk(EBS.driver, path, EBS)
    fault = f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({written})"
    return Disk(EBS.driver, "", EBS, fault)


def _gce(name: str, labels: Mapping[str, str]) -> Disk:
    """A disk of one zone, or of the region that its zones are in."""
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE) or "").split(ZONE_DELIMITER)
    if len(zones) == 1:
        return Disk(GCE_PD.driver, f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{name}", GCE_PD)
    odd = next((zone for zone in zones if zone.count("-") != 2), None)
    regions = sorted({zone.rpartition("-")[0] for zone in zones})
    if odd is not None:
        fault = f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {odd}"
    elif len(regions) > 1:
        fault = f"multiple or no regions gotten from zones, got: map[{' '.join(region + ':{}' for region in regions)}]"
    else:
        return Disk(GCE_PD.driver, f"projects/{_UNSPECIFIED}/regions/{regions[0]}/disks/{name}", GCE_PD)
    return Disk(GCE_PD.driver, "", GCE_PD, f"failed to get region from zones: {fault}")


def migrated_affinity(affinity: wire.NodeSelector | None, labels: Mapping[str, str], key: str) -> wire.NodeSelector | None:
    """Node affinity of a persistent volume where its plugin has been migrated (upstream: `translateTopologyFromInTreeToCSI`).

    `key` takes the place of the zone label; without one in the affinity, the zones in the volume's labels are added.
    """
    terms = affinity.node_selector_terms or () if affinity is not None else ()
    used = {expression.key for term in terms for expression in term.match_expressions or () if expression.values}
    named = {expression.key for term in terms for expression in term.match_expressions or ()}
    beta = ZONE not in named and (BETA_ZONE in named or (ZONE not in labels and BETA_ZONE in labels))
    zone = BETA_ZONE if beta else ZONE
    renamed: dict[str | None, str] = {BETA_REGION: REGION} if beta and BETA_REGION in used else {}
    if zone in used:
        renamed[zone] = key
        return _renamed(terms, renamed, ())
    zones = sorted({part.strip() for part in labels.get(zone, "").split(ZONE_DELIMITER)} - {""})
    if not zones:
        return affinity if not renamed else _renamed(terms, renamed, ())
    return _renamed(terms or (wire.NodeTerm(),), renamed, (wire.Expression(key, "In", tuple(zones)),))


def _renamed(
    terms: tuple[wire.NodeTerm, ...], keys: Mapping[str | None, str], added: tuple[wire.Expression, ...]
) -> wire.NodeSelector:
    """The terms with some label keys replaced and expressions added to each."""
    return wire.NodeSelector(
        tuple(
            wire.NodeTerm((*(replace(e, key=keys.get(e.key, e.key)) for e in t.match_expressions or ()), *added), t.match_fields)
            for t in terms
        )
    )
