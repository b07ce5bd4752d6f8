"""Nodes, pods and storage as plain API objects, for the admin client to create."""

GiB = 1024**3
CAPACITY = {"cpu": "8", "memory": f"{32 * GiB}", "pods": "110", "ephemeral-storage": f"{100 * GiB}"}


def node(name: str, zone: str = "zone-a", capacity=None, **spec):
    """A Ready node; `capacity` in Kubernetes quantities adds to 8 CPUs, 32 GiB and 110 pods, `spec` is the node's spec.

    Status counts when a node is created, as kubelet creates its own; later it is written through the subresource only.
    """
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    labels |= {"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "region"}
    room = CAPACITY | (capacity or {})
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def nodes(count: int, zones: int = 3, prefix: str = "node", capacity=None) -> list[dict]:
    """Nodes `node-0000` and on, zones `zone-a`, `zone-b`, ... in turn."""
    return [node(f"{prefix}-{at:04}", f"zone-{chr(ord('a') + at % zones)}", capacity) for at in range(count)]


def pod(name: str, namespace: str = "default", labels=None, requests=None, **spec):
    """A pod of one container that requests 100m CPU and 128 MiB unless told otherwise; `spec` adds to the pod's spec."""
    container = {"name": "main", "image": "registry.example/main:1"}
    container["resources"] = {"requests": {"cpu": "100m", "memory": "128Mi"} if requests is None else requests}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


def pods(count: int, prefix: str = "pod", **rest) -> list[dict]:
    return [pod(f"{prefix}-{at:05}", **rest) for at in range(count)]


def storage_class(name: str, provisioner: str, mode: str = "WaitForFirstConsumer"):
    meta = {"name": name}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": meta,
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


def claim(name: str, storage_class_name: str, namespace: str = "default", size: str = "1Gi"):
    """A PersistentVolumeClaim."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class_name,
            "resources": {"requests": {"storage": size}},
        },
    }


def namespace(name: str):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def condition(obj, name: str):
    """A condition of the object's status; an empty one if it has none of that type."""
    found = [each for each in obj["status"].get("conditions", ()) if each["type"] == name]
    return found[0] if found else {}
