"""Plays a scene: a small cluster, pods one after the other, and what became of each under one scheduler."""

import copy

from controlplane.cleaning import ignore_missing
from controlplane.client import Client
from controlplane.objects import condition, node, pod
from controlplane.waiting import eventually

KINDS = (
    "pods",
    "services",
    "poddisruptionbudgets",
    "persistentvolumeclaims",
    "resourceclaims",
    "events.events.k8s.io",
    "persistentvolumes",
    "nodes",
    "storageclasses",
    "csinodes",
    "csidrivers",
    "resourceslices",
    "deviceclasses",
)
NAMESPACED = KINDS[: KINDS.index("persistentvolumes")]


def tidy(client: Client) -> None:
    """Removes what scenes make; the schedulers and their rights stay."""
    for kind in KINDS:
        eventually(lambda kind=kind: empty(client, kind, "default" if kind in NAMESPACED else None))


def empty(client: Client, kind: str, namespace: str | None) -> bool:
    """Deletes what there is; was there nothing? Events may still be on their way."""
    found = client.list(kind, namespace)
    if found:
        client.delete_all(kind, namespace)
    for each in found:
        if each["metadata"].get("finalizers"):
            ignore_missing(client.patch, kind, each["metadata"]["name"], {"metadata": {"finalizers": None}}, namespace or "")
    return not found


def make_node(name: str, told):
    told = dict(told)
    images, without = told.pop("images", []), told.pop("without", [])
    made = node(name, **told)
    made["status"]["images"] = images
    for label in without:
        del made["metadata"]["labels"][label]
    return made


def make_pod(name: str, told, scheduler: str):
    told = copy.deepcopy(told)
    ports, limits = told.pop("ports", None), told.pop("limits", None)
    made = pod(name, schedulerName=scheduler, **told)
    [container] = made["spec"]["containers"]
    if ports:
        container["ports"] = ports
    if limits:
        container["resources"]["limits"] = limits
    return made


def set_up(client: Client, scene) -> None:
    """Nodes, objects and running pods. Volume controllers are needed where claims are `bound` or volumes `available`."""
    client.create_all([make_node(name, told) for name, told in scene["nodes"].items()])
    objects = scene.get("objects", ())
    client.create_all(
        sorted(objects, key=lambda each: each["kind"] == "PersistentVolume"), workers=1
    )  # claims before their volumes
    for name in scene.get("bound", ()):
        eventually(lambda name=name: client.get("persistentvolumeclaims", name)["status"]["phase"] == "Bound")
    for name in scene.get("available", ()):
        eventually(lambda name=name: client.get("persistentvolumes", name)["status"]["phase"] == "Available")
    client.create_all([make_pod(name, told, "nobody") for name, told in scene.get("running", {}).items()], workers=1)


def decided(client: Client, name: str):
    """The pod, once it is bound or is said to be held back."""

    def look():
        found = client.get("pods", name)
        return found if found["spec"].get("nodeName") or condition(found, "PodScheduled").get("status") == "False" else None

    return eventually(look)


def play(client: Client, scene, scheduler: str) -> dict[str, str]:
    """What became of each pod: `on NODE` or the message of its condition."""
    outcomes = {}
    for name, told in scene["pods"].items():
        client.create(make_pod(name, told, scheduler))
        found = decided(client, name)
        node_name = found["spec"].get("nodeName")
        outcomes[name] = f"on {node_name}" if node_name else condition(found, "PodScheduled")["message"]
    return outcomes


def told(client: Client, scheduler: str, pods=None) -> set[tuple]:
    """Events of a scheduler about those pods that exist now, as (pod, type, reason, action, note); counts are left out."""
    uids = {each["metadata"]["uid"] for each in (client.list("pods", "default") if pods is None else pods)}
    return {
        (each["regarding"]["name"], each["type"], each["reason"], each.get("action"), each["note"])
        for each in client.list("events.events.k8s.io", "default")
        if each["reportingController"] == scheduler and each["regarding"].get("uid") in uids
    }
