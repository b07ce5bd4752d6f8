"""A seed becomes a scenario: a small cluster, what happens to it in a minute, and what goes wrong meanwhile."""

from controlplane.objects import claim, namespace, node, pod, storage_class
from controlplane.volumes import PROVISIONER
from simulation.actors import OTHER, REFUSING
from simulation.faults import CALLS, MEDDLING, WRITES, Fault
from simulation.machine import chance
from simulation.policies import BAD, FIXED, GOOD
from simulation.scenario import CALM, Scenario, Step

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NAMESPACES = ("default", "web")
APPS = ("a", "b", "c")
LATE, LOCAL = "late", "local"
CAPACITIES = (
    {"cpu": "2", "memory": "4Gi", "pods": "110"},
    {"cpu": "4", "memory": "8Gi", "pods": "110"},
    {"cpu": "4", "memory": "8Gi", "pods": "4"},
    {"cpu": "1", "memory": "2Gi", "pods": "10"},
)
KINDS = ("plain", "plain", "big", "tiny", "spread", "soft", "anti", "near", "high", "higher", "never", "gated", "late", "late2")
KINDS += ("local", "port", "ssd", "tolerant", "pack", OTHER, "nobody")
LARGE = 0.08
"""share of worlds that are three times as large"""
LINES = ("close", "close", "reset", "silence", "gone")
PLURALS = ("", "pods", "pods", "nodes", "persistentvolumeclaims", "persistentvolumes", "configmaps")


def generate(seed: int) -> Scenario:
    return _Maker(seed).make()


def local_volume(name: str, where: str):
    """A disk of a node."""
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [where]}]}
    spec = {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": LOCAL, "local": {"path": "/d"}}
    spec |= {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}, "persistentVolumeReclaimPolicy": "Retain"}
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


class _Maker:
    def __init__(self, seed: int):
        self.seed, self.random, self.edits = seed, chance(seed, "scenario"), chance(seed, "policies")
        self.writing = chance(seed, "mounts")
        self.mounted = self.writing.choice(("", "", "volume", "file"))
        self.steps: list[Step] = []
        self.faults: list[Fault] = []
        self.nodes: list[str] = []
        self.pods: list[tuple[str, str]] = []
        self.kinds = self.random.sample(KINDS, self.random.randint(3, 8))
        self.replicas = self.random.choice((1, 1, 2))
        self.scale = 3 if self.random.random() < LARGE else 1

    def make(self) -> Scenario:
        for name in NAMESPACES:
            self.step(0.0, "create", item=namespace(name) | {"metadata": {"name": name, "labels": {"team": name}}})
        self.step(0.0, "create", item=storage_class(LATE, PROVISIONER))
        self.step(0.0, "create", item=storage_class(LOCAL, "kubernetes.io/no-provisioner"))
        for _ in range(self.scale * self.random.randint(2, 9)):
            self.add_node(0.0)
        for _ in range(self.scale * self.random.randint(2, 16)):
            self.add_pod(0.0)
        if self.random.random() < 0.3:
            self.add_budget(0.0)
        for _ in range(self.scale * self.random.randint(8, 40)):
            at = round(self.random.uniform(0.5, CALM - 2), 2)
            getattr(self, self.random.choice(CHURN))(at)
        if self.random.random() < 0.85:
            for _ in range(self.random.randint(1, 10)):
                at = round(self.random.uniform(0.0, CALM - 2), 2)
                getattr(self, self.random.choice(TROUBLES))(at)
        if self.edits.random() < EDITED:
            for _ in range(self.edits.randint(1, 5)):
                self.edit_policy(round(self.edits.uniform(0.0, CALM - 2), 2))
        first = "plain" if self.edits.random() < 0.8 else self.edits.choice(("", *GOOD, *BAD, *FIXED))
        absent = frozenset({"devicetaintrules"} if self.random.random() < 0.5 else ())
        self.steps.sort(key=lambda step: step.at)
        return Scenario(
            self.seed, tuple(self.steps), tuple(self.faults), self.replicas, absent, first, self.edits.random() < 0.25, self.mounted
        )

    def step(self, at: float, do: str, **arguments) -> None:
        self.steps.append(Step(at, do, arguments))

    # Objects

    def add_node(self, at: float) -> None:
        name = f"n{len(self.nodes)}"
        self.nodes.append(name)
        self.step(at, "create", item=self.node(name))

    def node(self, name: str):
        made = node(name, f"z{self.random.randint(0, 2)}")
        made["status"]["allocatable"] = made["status"]["capacity"] = dict(self.random.choice(CAPACITIES))
        if self.random.random() < 0.4:
            made["metadata"]["labels"]["disk"] = "ssd"
        if self.random.random() < 0.1:
            made["metadata"]["labels"][REFUSING] = "yes"
        if self.random.random() < 0.1:
            made["spec"]["taints"] = [{"key": "team", "value": "x", "effect": "NoSchedule"}]
        return made

    def add_pod(self, at: float) -> None:
        name, space = f"p{len(self.pods)}", self.random.choice(NAMESPACES)
        self.pods.append((space, name))
        self.step(at, "create", item=self.pod(at, space, name, self.random.choice(self.kinds)))

    def pod(self, at: float, space: str, name: str, kind: str):
        app = self.random.choice(APPS)
        requests = {"cpu": self.random.choice(("100m", "250m", "500m", "900m")), "memory": self.random.choice(("64Mi", "512Mi"))}
        if kind in ("big", "tiny"):
            requests = {"cpu": "1500m", "memory": "2Gi"} if kind == "big" else {}
        spec = {"schedulerName": "stow", "priority": 0} | self.spec(at, space, name, kind, app)
        if self.random.random() < 0.25:
            spec |= self.spec(at, space, name, self.random.choice(self.kinds), app)
        made = pod(name, space, {"app": app}, requests, **spec)
        if kind == "port":
            made["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": self.random.choice((80, 81))}]
        return made

    def spec(self, at: float, space: str, name: str, kind: str, app: str):
        selector = {"matchLabels": {"app": app}}
        if kind in ("late", "late2", "local"):
            names = [f"{name}-{place}" for place in range(2 if kind == "late2" else 1)]
            for each in names:
                self.step(at, "create", item=claim(each, LOCAL if kind == "local" else LATE, space))
            return {"volumes": [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in names]}
        hard = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        soft = hard | {"topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway"}
        term = [{"topologyKey": self.random.choice((HOST, ZONE)), "labelSelector": selector}]
        if self.random.random() < 0.3:
            term[0]["namespaceSelector"] = {"matchLabels": {"team": self.random.choice(("red", "web"))}}
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        return {
            "spread": {"topologySpreadConstraints": [hard]},
            "soft": {"topologySpreadConstraints": [soft]},
            "anti": {"affinity": {"podAntiAffinity": {required: term}}},
            "near": {"affinity": {"podAffinity": {required: term}}},
            "high": {"priority": 100},
            "higher": {"priority": 1000},
            "never": {"priority": 500, "preemptionPolicy": "Never"},
            "gated": {"schedulingGates": [{"name": "example.com/quota"}]},
            "ssd": {"nodeSelector": {"disk": "ssd"}},
            "tolerant": {"tolerations": [{"key": "team", "operator": "Exists"}]},
            "pack": {"schedulerName": "pack"},
            OTHER: {"schedulerName": OTHER},
            "nobody": {"schedulerName": "nobody"},
        }.get(kind, {})

    def add_budget(self, at: float) -> None:
        app, space = self.random.choice(APPS), self.random.choice(NAMESPACES)
        meta = {"name": f"budget-{app}", "namespace": space}
        spec = {"minAvailable": self.random.randint(0, 2), "selector": {"matchLabels": {"app": app}}}
        made = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec, "status": {}}
        self.step(at, "create", item=made)

    def add_volume(self, at: float) -> None:
        self.step(at, "create", item=local_volume(f"disk-{len(self.steps)}", self.random.choice(self.nodes)))

    # What happens

    def some_pod(self):
        return self.random.choice(self.pods) if self.pods else ("default", "p0")

    def some_node(self) -> str:
        return self.random.choice(self.nodes)

    def delete_pod(self, at: float) -> None:
        self.step(at, "delete_pod", key=self.some_pod())

    def recreate_pod(self, at: float) -> None:
        space, name = self.some_pod()
        self.step(at, "recreate_pod", item=self.pod(at, space, name, self.random.choice(self.kinds)))

    def burst(self, at: float) -> None:
        for _ in range(self.random.randint(2, 6)):
            self.add_pod(at)

    def bind_elsewhere(self, at: float) -> None:
        self.step(at, "bind_elsewhere", key=self.some_pod(), node=self.some_node())

    def finish_pod(self, at: float) -> None:
        self.step(at, "finish_pod", key=self.some_pod())

    def relabel_pod(self, at: float) -> None:
        self.step(at, "relabel_pod", key=self.some_pod(), app=self.random.choice(APPS))

    def lift_gates(self, at: float) -> None:
        self.step(at, "lift_gates", key=self.some_pod())

    def remove_node(self, at: float) -> None:
        self.step(at, "remove_node", name=self.some_node())

    def cordon(self, at: float) -> None:
        self.step(at, "cordon", name=self.some_node(), on=self.random.random() < 0.5)

    def taint(self, at: float) -> None:
        self.step(at, "taint", name=self.some_node(), on=self.random.random() < 0.5)

    def edit_policy(self, at: float) -> None:
        """One edit; or several that come faster than a text is looked at; or one that meets a start."""
        sort = self.edits.choice(EDITS)
        if sort == "delete":
            self.step(at, "delete_policy")
            at = round(at + self.edits.choice((0.01, 0.5, 10.0)), 2)
        for _ in range(self.edits.randint(2, 6) if sort == "burst" else 1):
            text = self.edits.choice(self.edits.choice((GOOD, GOOD, BAD, BAD, FIXED)))
            self.step(min(at, CALM), "edit_policy", text=text, **self.steps_of_a_writer())
            at = round(at + self.edits.choice((0.0, 0.01, 0.1, 0.7)), 2)
        if sort == "restart":
            bad = self.edits.choice((*BAD, *FIXED))
            self.step(min(at, CALM), "edit_policy", text=bad)
            for process in range(self.replicas):
                self.step(min(round(at + self.edits.uniform(0.0, 3.0), 2), CALM), "crash", process=process)

    def steps_of_a_writer(self):
        """How a file is written, if the policy is one."""
        if self.mounted != "file" or self.writing.random() < 0.3:
            return {}
        return {"share": round(self.writing.random(), 2), "pause": self.writing.choice((0.02, 0.1, 0.2))}

    def remove_policy(self, at: float) -> None:
        self.step(at, "delete_policy")

    def relabel_node(self, at: float) -> None:
        label = self.random.choice((ZONE, "disk"))
        self.step(at, "relabel_node", name=self.some_node(), key=label, value=self.random.choice(("z0", "z1", "ssd")))

    def resize_node(self, at: float) -> None:
        self.step(at, "resize_node", name=self.some_node(), amounts=dict(self.random.choice(CAPACITIES)))

    def return_node(self, at: float) -> None:
        self.step(at, "create", item=self.node(self.some_node()))

    def relabel_namespace(self, at: float) -> None:
        self.step(at, "relabel_namespace", name=self.random.choice(NAMESPACES), team=self.random.choice(("red", "blue")))

    # What goes wrong

    def window(self, at: float) -> tuple[float, float]:
        return at, min(round(at + self.random.choice((0.5, 3.0, 15.0)), 2), CALM)

    def fail_calls(self, at: float) -> None:
        begin, end = self.window(at)
        how = self.random.choice(("refused", "lost", "unanswered", "reset", "409", "429", "500", "503", "404"))
        what = self.random.choice(WRITES)
        if what == "list" and how in ("409", "404"):
            how = "503"
        self.faults.append(Fault(how, what, begin, end, self.random.randint(1, 4), seconds=self.random.choice((1.0, 2.0))))

    def fail_binds(self, at: float) -> None:
        how = self.random.choice(("unanswered", "reset", "lost", "409", "404", "500", "crash-before", "crash-after"))
        what = self.random.choice(("bind", "bind", "status", "volume"))
        self.faults.append(Fault(how, what, at, CALM, self.random.randint(1, 2)))

    def meddle(self, at: float) -> None:
        self.faults.append(Fault(self.random.choice(MEDDLING), "bind", at, CALM, self.random.randint(1, 2)))

    def fail_watches(self, at: float) -> None:
        begin, end = self.window(at)
        how = self.random.choice(("refused", "lost", "429", "500", "410"))
        self.faults.append(Fault(how, "watch", begin, end, self.random.randint(1, 5), self.random.choice(PLURALS)))
        self.step(at, "disturb", how="close", plural=self.random.choice(PLURALS))

    def disturb(self, at: float) -> None:
        self.step(at, "disturb", how=self.random.choice(LINES), plural=self.random.choice(PLURALS))

    def slow(self, at: float) -> None:
        begin, end = self.window(at)
        what = self.random.choice(("watch", "watch", "bind", "list", "lease", "volume"))
        plural = self.random.choice(PLURALS) if what == "watch" else ""
        self.faults.append(Fault("slow", what, begin, end, plural=plural, seconds=self.random.choice((0.3, 1.0, 3.0))))

    def lasting(self, at: float) -> None:
        begin, end = self.window(at)
        self.faults.append(Fault(self.random.choice(("mute", "repeat")), "watch", begin, end))
        self.step(begin, "disturb", how="close", plural="")

    def forget_history(self, at: float) -> None:
        self.step(at, "compact", keep=self.random.choice((0, 3)))
        self.step(at, "disturb", how=self.random.choice(("close", "reset")), plural=self.random.choice(PLURALS))

    def server_down(self, at: float) -> None:
        self.step(at, "server_down")
        self.step(min(round(at + self.random.choice((0.5, 5.0, 20.0)), 2), CALM), "server_up")

    def fail_lease(self, at: float) -> None:
        how = self.random.choice(("refused", "lost", "unanswered", "409", "500"))
        end = min(at + self.random.choice((4.0, 14.0, 25.0)), CALM)
        self.faults.append(Fault(how, "lease", at, end, 30, process=self.random.choice((0, 1, None))))

    def freeze(self, at: float) -> None:
        seconds = min(self.random.choice((1.0, 12.0, 20.0, 40.0)), CALM - at)
        self.step(at, "freeze", process=self.random.randrange(self.replicas), seconds=seconds)

    def crash(self, at: float) -> None:
        if self.random.random() < 0.5:
            self.step(at, "crash", process=self.random.randrange(self.replicas))
        else:
            how, what = self.random.choice(("crash-before", "crash-after")), self.random.choice(CALLS)
            self.faults.append(Fault(how, what, at, CALM))


CHURN = ("add_pod", "add_pod", "add_pod", "burst", "add_node", "delete_pod", "delete_pod", "recreate_pod", "bind_elsewhere")
CHURN += ("finish_pod", "relabel_pod", "lift_gates", "lift_gates", "remove_node", "cordon", "relabel_node", "resize_node")
CHURN += ("return_node", "relabel_namespace", "taint", "edit_policy", "add_volume", "add_budget")
EDITS = ("one", "one", "one", "burst", "delete", "restart")
EDITED = 0.5
"""share of worlds whose policy is edited more often than anything else happens"""
TROUBLES = ("fail_calls", "fail_calls", "fail_binds", "fail_binds", "meddle", "meddle", "fail_watches", "disturb", "disturb")
TROUBLES += ("slow", "lasting", "forget_history", "server_down", "fail_lease", "freeze", "crash")
