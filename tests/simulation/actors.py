"""What else lives in the cluster: kubelets, pod garbage collector, volume controllers, disruption controller, another scheduler.

They see every change at once and answer after a while. They talk to the API server without faults: they are not under test.
"""

import msgspec

from controlplane.kubelet import running
from controlplane.volumes import BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONER, SELECTED, volume_for
from simulation.api import Api
from simulation.room import excess, finished, on_node
from simulation.storage import BY_PLURAL, Change, encode

STRATEGIC, MERGE = "application/strategic-merge-patch+json", "application/merge-patch+json"
PODS, NODES, CLAIMS, VOLUMES = (BY_PLURAL[name] for name in ("pods", "nodes", "persistentvolumeclaims", "persistentvolumes"))
BUDGETS, CLASSES = BY_PLURAL["poddisruptionbudgets"], BY_PLURAL["storageclasses"]
OTHER = "other"
"""schedulerName of the pods that another scheduler places"""
PASSING = (404, 409)
REFUSING = "example.com/no-volumes"
"""label of nodes on which no volume can be made"""


def path_of(kind, namespace: str = "", name: str = "", sub: str = "") -> str:
    head = f"/apis/{kind.group}/v1" if kind.group else "/api/v1"
    inside = f"/namespaces/{namespace}" if namespace else ""
    return head + inside + f"/{kind.plural}" + (f"/{name}" if name else "") + (f"/{sub}" if sub else "")


class Client:
    """Calls that nothing disturbs; refusals because something changed or went are passed over."""

    def __init__(self, api: Api):
        self.api = api

    def call(self, method: str, kind, key, body=None, *, sub: str = "", content_type: str = ""):
        text = None if body is None else encode(body)
        status, answer = self.api.call(method, path_of(kind, *key, sub), {}, text, content_type)
        assert status < 300 or status in PASSING, (method, kind.plural, key, answer)
        return msgspec.json.decode(answer) if status < 300 else None

    def create(self, kind, item):
        return self.call("POST", kind, (item["metadata"].get("namespace", "") if kind.namespaced else "", ""), item)

    def patch(self, kind, key, body, sub: str = "", content_type: str = MERGE):
        return self.call("PATCH", kind, key, body, sub=sub, content_type=content_type)

    def delete(self, kind, key, uid: str = "", grace: int | None = None):
        options = {} if grace is None else {"gracePeriodSeconds": grace}
        return self.call("DELETE", kind, key, options | ({"preconditions": {"uid": uid}} if uid else {}))

    def bind(self, key, node: str, uid: str):
        meta = {"namespace": key[0], "name": key[1], "uid": uid}
        return self.call("POST", PODS, key, {"metadata": meta, "target": {"kind": "Node", "name": node}}, sub="binding")


class Actors:
    def __init__(self, api: Api, clock, randomness):
        self.client, self.storage, self.clock, self.random = Client(api), api.storage, clock, randomness
        self.api = api
        self._counting = False
        self.storage.watchers.append(self.changed)

    def changed(self, change: Change) -> None:
        if change.kind is PODS:
            self._see_pod(change)
        elif change.kind is NODES and change.new is None:
            for pod in on_node(self.storage, PODS, change.key[1]):
                self._later(3, 10, self._remove, pod, False)
        elif change.kind is CLAIMS and change.new is not None:
            self._later(0.05, 2, self._provision, change.key, change.new["metadata"]["uid"])
        elif change.kind is VOLUMES and change.new is not None:
            self._later(0.05, 1, self._bind_volume, change.key)
        if change.kind in (PODS, BUDGETS) and not self._counting:
            self._counting = True
            self._later(0.05, 0.5, self._count)

    def _later(self, least: float, most: float, function, *arguments) -> None:
        self.clock.after(self.random.uniform(least, most), function, *arguments)

    # Pods

    def _see_pod(self, change: Change) -> None:
        pod, old = change.new, change.old
        if pod is None:
            return
        node = pod["spec"].get("nodeName")
        if node and not (old and old["spec"].get("nodeName")):
            if ("", node) in self.storage.objects[NODES]:
                self._later(0.05, 2, self._start, pod)
            else:
                self._later(3, 10, self._remove, pod, False)
        if node and "deletionTimestamp" in pod["metadata"] and not (old and "deletionTimestamp" in old["metadata"]):
            self._later(0.1, 3, self._remove, pod, True)
        if old is None and not node and pod["spec"]["schedulerName"] == OTHER:
            self._later(0.1, 2, self._place, change.key, pod["metadata"]["uid"], 10)

    def _current(self, pod):
        found = self.storage.objects[PODS].get((pod["metadata"]["namespace"], pod["metadata"]["name"]))
        return found if found and found["metadata"]["uid"] == pod["metadata"]["uid"] else None

    def _start(self, pod) -> None:
        found = self._current(pod)
        if found and found["status"]["phase"] == "Pending":
            body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": running(found, self.api.now)}
            self.client.patch(PODS, (pod["metadata"]["namespace"], pod["metadata"]["name"]), body, "status", STRATEGIC)

    def _remove(self, pod, _) -> None:
        if self._current(pod):
            meta = pod["metadata"]
            self.client.delete(PODS, (meta["namespace"], meta["name"]), meta["uid"], 0)

    def _place(self, key, uid: str, tries: int) -> None:
        pod = self.storage.objects[PODS].get(key)
        if pod is None or pod["metadata"]["uid"] != uid or pod["spec"].get("nodeName"):
            return
        nodes = self.storage.objects[NODES]
        fitting = [name for (_, name), node in nodes.items() if not excess(node, [*on_node(self.storage, PODS, name), pod], pod)]
        if fitting:
            self.client.bind(key, self.random.choice(fitting), uid)
        elif tries:
            self._later(2, 4, self._place, key, uid, tries - 1)

    # Disruption controller

    def _count(self) -> None:
        self._counting = False
        for key, budget in list(self.storage.objects[BUDGETS].items()):
            selector = budget["spec"]["selector"]["matchLabels"]
            pods = [pod for (space, _), pod in self.storage.objects[PODS].items() if space == key[0] and matches(selector, pod)]
            healthy = sum(pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"] for pod in pods)
            allowed = max(healthy - budget["spec"]["minAvailable"], 0)
            self.client.patch(BUDGETS, key, {"status": {"disruptionsAllowed": allowed, "currentHealthy": healthy}}, "status")

    # Volumes

    def _provision(self, key, uid: str) -> None:
        claim = self.storage.objects[CLAIMS].get(key)
        if claim is None or claim["metadata"]["uid"] != uid or claim["spec"].get("volumeName"):
            return
        found = self.storage.objects[CLASSES].get(("", claim["spec"]["storageClassName"]))
        if found is None or found["provisioner"] != PROVISIONER:
            return
        selected = claim["metadata"].get("annotations", {}).get(SELECTED)
        if selected is None and found["volumeBindingMode"] == "WaitForFirstConsumer":
            return
        node = self.storage.objects[NODES].get(("", selected)) if selected else None
        if selected and (node is None or REFUSING in node["metadata"]["labels"]):
            note = {"metadata": {"annotations": {SELECTED: None}, "resourceVersion": claim["metadata"]["resourceVersion"]}}
            self.client.patch(CLAIMS, key, note)
            return
        labels = node["metadata"]["labels"] if node else {}
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [selected]}]}
        volume = volume_for(claim, {"required": {"nodeSelectorTerms": [term]}} if labels else None)
        self.client.create(VOLUMES, volume | {"status": {"phase": "Pending"}})

    def _bind_volume(self, key) -> None:
        """The PersistentVolume controller: a volume without claim is available, one with a claim becomes the claim's."""
        volume = self.storage.objects[VOLUMES].get(key)
        if volume is None:
            return
        phase, ref = volume.get("status", {}).get("phase", "Pending"), volume["spec"].get("claimRef")
        if ref is None:
            if phase == "Pending":
                self.client.patch(VOLUMES, key, {"status": {"phase": "Available"}}, "status")
            return
        claim_key = (ref["namespace"], ref["name"])
        claim = self.storage.objects[CLAIMS].get(claim_key)
        if claim is None or ref.get("uid", claim["metadata"]["uid"]) != claim["metadata"]["uid"]:
            return
        if claim["spec"].get("volumeName", key[1]) != key[1] or BIND_COMPLETED in claim["metadata"].get("annotations", {}):
            return
        self.client.patch(VOLUMES, key, {"status": {"phase": "Bound"}}, "status")
        notes = {"annotations": {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}}
        self.client.patch(CLAIMS, claim_key, {"metadata": notes, "spec": {"volumeName": key[1]}})
        self.client.patch(CLAIMS, claim_key, {"status": {"phase": "Bound"}}, "status")


def matches(selector, item) -> bool:
    return all(item["metadata"].get("labels", {}).get(key) == value for key, value in selector.items())


def unbound(pod) -> bool:
    return not pod["spec"].get("nodeName") and not finished(pod)
