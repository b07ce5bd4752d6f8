"""A stand-in for an external provisioner and for the controller that binds volumes and claims to each other."""

from collections.abc import Container

from controlplane.client import Client
from controlplane.standin import StandIn

SELECTED = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONER = "volumes.example"


class VolumeControllers(StandIn):
    """Provisions claims of classes whose provisioner is `volumes.example`, and binds every volume with a claimRef to its claim.

    A claim of a WaitForFirstConsumer class is provisioned once a scheduler has selected a node, for that node alone (or, with
    `topology_key` a label other than the host's name, for the node's domain). A node that is in `refuses`, which the test may
    change, gets no volume: the claim loses its selection, as with an external provisioner, and the scheduler has to choose again.
    """

    def __init__(self, client: Client, refuses: Container[str] = (), topology_key: str = "kubernetes.io/hostname"):
        super().__init__(client)
        self.refuses, self.topology_key = refuses, topology_key
        self.refused: list[tuple[str, str]] = []  # (claim's name, node) in the order of refusals
        self.follow("persistentvolumes", self.see_volume)
        self.follow("persistentvolumeclaims", self.see_claim)

    def see_claim(self, event: str, claim) -> None:
        if event != "DELETED" and not claim["spec"].get("volumeName") and claim["spec"].get("storageClassName"):
            self.submit(self.provision, claim)

    def see_volume(self, event: str, volume) -> None:
        phase = volume["status"].get("phase", "Pending")
        if event == "DELETED" or phase == "Bound":
            return
        if "claimRef" in volume["spec"]:
            self.submit(self.bind, volume)
        elif phase == "Pending":
            self.submit(self.set_phase, volume, "Available")

    # External provisioner

    def provision(self, claim) -> None:
        storage_class = self.client.get("storageclasses", claim["spec"]["storageClassName"])
        if storage_class["provisioner"] != PROVISIONER:
            return
        meta = claim["metadata"]
        node = meta.get("annotations", {}).get(SELECTED)
        if storage_class.get("volumeBindingMode") == "WaitForFirstConsumer" and node is None:
            return
        if node in self.refuses:
            self.refused.append((meta["name"], node))
            patch = {"metadata": {"annotations": {SELECTED: None}, "resourceVersion": meta["resourceVersion"]}}
            self.client.patch("persistentvolumeclaims", meta["name"], patch, meta["namespace"])
            return
        self.client.create(volume_for(claim, self.affinity(node) if node else None))

    def affinity(self, node: str):
        value = self.client.get("nodes", node)["metadata"]["labels"][self.topology_key]
        term = {"matchExpressions": [{"key": self.topology_key, "operator": "In", "values": [value]}]}
        return {"required": {"nodeSelectorTerms": [term]}}

    # PersistentVolume controller

    def bind(self, volume) -> None:
        """Completes a binding that a provisioner, a scheduler or a user has begun by naming the claim in the volume."""
        ref, name = volume["spec"]["claimRef"], volume["metadata"]["name"]
        claim = self.client.get("persistentvolumeclaims", ref["name"], ref["namespace"])
        uid = claim["metadata"]["uid"]
        if ref.get("uid", uid) != uid or claim["spec"].get("volumeName", name) != name:
            return
        if "uid" not in ref:
            self.client.patch("persistentvolumes", name, {"spec": {"claimRef": {"uid": uid}}})
        self.set_phase(volume, "Bound")
        notes = {"annotations": {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}}
        self.client.patch(
            "persistentvolumeclaims", ref["name"], {"metadata": notes, "spec": {"volumeName": name}}, ref["namespace"]
        )
        spec = volume["spec"]
        status = {"phase": "Bound", "accessModes": spec["accessModes"], "capacity": spec["capacity"]}
        self.client.patch("persistentvolumeclaims", ref["name"], {"status": status}, ref["namespace"], subresource="status")

    def set_phase(self, volume, phase: str) -> None:
        self.client.patch("persistentvolumes", volume["metadata"]["name"], {"status": {"phase": phase}}, subresource="status")


def volume_for(claim, affinity):
    """The PersistentVolume that a provisioner makes for a claim, named after it: a second attempt finds it there."""
    meta, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{meta['uid']}"
    ref = {key: meta[key] for key in ("name", "namespace", "uid")} | {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": ref,
            "csi": {"driver": PROVISIONER, "volumeHandle": name},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec["storageClassName"],
            **({"nodeAffinity": affinity} if affinity else {}),
        },
    }
