"""An empty cluster again, much faster than a new control plane."""

from controlplane.client import ApiError, Client

SYSTEM = ("default", "kube-system", "kube-public", "kube-node-lease")
WORKLOAD = (
    "deployments",
    "replicasets",
    "statefulsets",
    "daemonsets",
    "jobs",
    "replicationcontrollers",
    "poddisruptionbudgets",
    "pods",
    "services",
    "persistentvolumeclaims",
    "resourceclaims",
    "resourceclaimtemplates",
    "csistoragecapacities",
    "events",
)
CLUSTER = (
    "nodes",
    "persistentvolumes",
    "storageclasses",
    "csinodes",
    "csidrivers",
    "resourceslices",
    "deviceclasses",
)
OURS = {
    "leases": "!apiserver.kubernetes.io/identity",
    "roles": "kubernetes.io/bootstrapping!=rbac-defaults",
    "rolebindings": "kubernetes.io/bootstrapping!=rbac-defaults",
}
OURS_IN_CLUSTER = {
    "clusterroles": "kubernetes.io/bootstrapping!=rbac-defaults",
    "clusterrolebindings": "kubernetes.io/bootstrapping!=rbac-defaults",
}


def clean(client: Client) -> None:
    """Removes nodes, pods, storage, devices, namespaces and whatever else tests make; what the API server makes itself stays."""
    namespaces = [each["metadata"]["name"] for each in client.list("namespaces")]
    for namespace in namespaces:
        for resource in WORKLOAD:
            empty(client, resource, namespace)
        for resource, selector in OURS.items():
            empty(client, resource, namespace, labelSelector=selector)
    for resource in CLUSTER:
        empty(client, resource)
    for resource, selector in OURS_IN_CLUSTER.items():
        empty(client, resource, labelSelector=selector)
    for each in client.list("priorityclasses"):
        if not each["metadata"]["name"].startswith("system-"):
            client.delete("priorityclasses", each["metadata"]["name"])
    for namespace in namespaces:
        if namespace not in SYSTEM:
            remove_namespace(client, namespace)


def empty(client: Client, resource: str, namespace: str | None = None, **query) -> None:
    """Deletes what there is of one kind, finalizers or not: nothing runs that would take them off."""
    path = client.resource(resource).path(namespace)
    if not client.request("GET", path, limit=1, **query)["items"]:
        return
    client.delete_all(resource, namespace, **query)
    for each in client.list(resource, namespace, **query):
        meta = each["metadata"]
        if meta.get("finalizers"):
            ignore_missing(client.patch, resource, meta["name"], {"metadata": {"finalizers": None}}, namespace)


def remove_namespace(client: Client, name: str) -> None:
    """What the namespace controller does once nothing is left in it."""
    for resource in ("configmaps", "secrets", "serviceaccounts"):
        empty(client, resource, name)
    ignore_missing(client.delete, "namespaces", name)
    final = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}
    ignore_missing(client.replace, final, "finalize")


def ignore_missing(function, *arguments) -> None:
    try:
        function(*arguments)
    except ApiError as error:
        if error.status != 404:
            raise
