"""The verbs of a scenario's steps. What they are about may be gone, or never have been there: then nothing happens."""

from simulation.actors import CLAIMS, MERGE, NODES, PODS, Client
from simulation.patches import clone
from simulation.policies import CONFIGMAPS, KEY, TEXTS, configmap
from simulation.storage import BY_PLURAL, KINDS

NAMESPACES = BY_PLURAL["namespaces"]
BY_KIND = {(kind.group, kind.name): kind for kind in KINDS}


def grown(pod):
    """A pod of the same name that asks for more."""
    meta = {key: value for key, value in pod["metadata"].items() if key in ("name", "namespace", "labels")}
    made = clone({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod["spec"]})
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1800m", "memory": "3Gi"}}
    return made


class World:
    def __init__(self, run):
        self.run = run
        self.client = Client(run.server.api)
        self.objects = run.storage.objects
        run.server.meddle = self.meddle

    def do(self, step) -> None:
        self.run.clock.say(f"world: {str(step).strip()}")
        getattr(self, step.do)(**step.arguments)

    def create(self, item) -> None:
        group = item["apiVersion"].rpartition("/")[0]
        self.client.create(BY_KIND[group, item["kind"]], clone(item))

    # Pods

    def delete_pod(self, key, grace: int | None = None) -> None:
        self.client.delete(PODS, tuple(key), grace=grace)

    def recreate_pod(self, item) -> None:
        """At once under the same name, as after a forced deletion."""
        key = (item["metadata"]["namespace"], item["metadata"]["name"])
        if key in self.objects[PODS]:
            self.client.delete(PODS, key, grace=0)
            self.create(item)

    def bind_elsewhere(self, key, node: str) -> None:
        """Somebody else binds a pod that waits."""
        pod = self.objects[PODS].get(tuple(key))
        if pod is not None and ("", node) in self.objects[NODES]:
            self.client.bind(tuple(key), node, pod["metadata"]["uid"])

    def finish_pod(self, key) -> None:
        pod = self.objects[PODS].get(tuple(key))
        if pod is not None and pod["spec"].get("nodeName"):
            self.client.patch(PODS, tuple(key), {"status": {"phase": "Succeeded"}}, "status")

    def relabel_pod(self, key, app: str) -> None:
        self.client.patch(PODS, tuple(key), {"metadata": {"labels": {"app": app}}})

    def lift_gates(self, key) -> None:
        pod = self.objects[PODS].get(tuple(key))
        if pod is not None and pod["spec"].get("schedulingGates"):
            self.client.patch(PODS, tuple(key), {"spec": {"schedulingGates": None}}, content_type=MERGE)

    def meddle(self, how: str, place) -> None:
        """Something happens to a pod at the worst moment. A recreated pod wants more than the old one did."""
        pod = self.objects[PODS].get(place.key)
        if pod is None or pod["spec"].get("nodeName"):
            return
        self.run.clock.say(f"world: {how} {place.key}")
        if how == "vanish":
            self.delete_pod(place.key)
        elif how == "snatch":
            nodes = [name for _, name in self.objects[NODES]]
            self.bind_elsewhere(place.key, nodes[len(nodes) // 2])
        else:
            self.recreate_pod(grown(pod))

    # Nodes and others

    def remove_node(self, name: str) -> None:
        self.client.delete(NODES, ("", name))

    def cordon(self, name: str, on: bool) -> None:
        self.client.patch(NODES, ("", name), {"spec": {"unschedulable": on or None}})

    def taint(self, name: str, on: bool) -> None:
        taints = [{"key": "team", "value": "x", "effect": "NoSchedule"}] if on else None
        self.client.patch(NODES, ("", name), {"spec": {"taints": taints}})

    def relabel_node(self, name: str, key: str, value: str) -> None:
        self.client.patch(NODES, ("", name), {"metadata": {"labels": {key: value}}})

    def resize_node(self, name: str, amounts) -> None:
        self.client.patch(NODES, ("", name), {"status": {"allocatable": amounts, "capacity": amounts}}, "status")

    def relabel_namespace(self, name: str, team: str) -> None:
        self.client.patch(NAMESPACES, ("", name), {"metadata": {"labels": {"team": team}}})

    def delete_claim(self, key) -> None:
        self.client.delete(CLAIMS, tuple(key))

    def edit_policy(self, text: str, share: float = 0.0, pause: float = 0.0) -> None:
        """The ConfigMap says this from now on; a file that is written in steps has a share of it, and after a pause all."""
        if self.run.mount is not None:
            self.run.mount.put(TEXTS[text].text, share, pause)
            return
        item = configmap(TEXTS[text].text)
        if KEY in self.objects[CONFIGMAPS]:
            self.client.patch(CONFIGMAPS, KEY, {"data": item["data"]})
        else:
            self.create(item)

    def delete_policy(self) -> None:
        if self.run.mount is not None:
            self.run.mount.put(None)
            return
        self.client.delete(CONFIGMAPS, KEY)

    def mend_policy(self) -> None:
        """A good policy; processes for which it is a change that takes a restart get that."""
        self.edit_policy("plain")
        for replica in self.run.replicas:
            started = self.run.checks.reloads.course(replica.identity).started
            if started is not None and not TEXTS["plain"].admitted(started):
                replica.crash()

    # What goes wrong

    def disturb(self, how: str, plural: str = "", process: int | None = None) -> None:
        self.run.server.disturb(how, process, plural)

    def compact(self, keep: int) -> None:
        self.run.storage.compact(keep)

    def server_down(self) -> None:
        self.run.server.fall()

    def server_up(self) -> None:
        self.run.server.rise()

    def freeze(self, process: int, seconds: float) -> None:
        self.run.replica(process).freeze(seconds)

    def crash(self, process: int) -> None:
        self.run.replica(process).crash()
