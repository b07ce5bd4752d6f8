"""Situations from public bug reports about live schedulers, scripted on the model. Each names the report it comes from."""

import shutil

import pytest

from controlplane.objects import claim, node, pod, storage_class
from controlplane.volumes import BIND_COMPLETED, PROVISIONER, SELECTED
from simulation.actors import CLAIMS, NODES, PODS, REFUSING, VOLUMES
from simulation.faults import Fault
from simulation.generate import local_volume
from simulation.run import Run
from simulation.scenario import Scenario, Step
from simulation.storage import BY_PLURAL
from stowplan.edge.kube import reflector

EVENTS = BY_PLURAL["events"]


class Stage:
    """A run whose steps are written down one by one."""

    def __init__(self, *items, faults=(), replicas: int = 1, seed: int = 0, mounted: str = ""):
        steps = tuple(Step(0.0, "create", {"item": item}) for item in items)
        self.run = Run(Scenario(seed, steps, tuple(faults), replicas, mounted=mounted))
        self.world, self.clock, self.storage = self.run.world, self.run.clock, self.run.storage

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for replica in self.run.replicas:
            replica.kill()
        shutil.rmtree(self.run.folder, ignore_errors=True)

    def at(self, when: float, do: str, **arguments) -> None:
        self.clock.at(when, self.world.do, Step(when, do, arguments))

    def until(self, seconds: float) -> None:
        assert self.run.until(seconds), self.run.checks.violation

    def settled(self, seconds: float) -> None:
        """Everything is as it should be by then."""
        self.until(seconds)
        assert self.run.judge("in the end"), self.run.checks.violation

    def staleness(self) -> float:
        replica = self.run.replicas[0]
        return max(replica.machine.inside(replica.drive.staleness).values())

    def pod(self, name: str):
        return self.storage.objects[PODS]["default", name]

    def node_of(self, name: str) -> str:
        return self.pod(name)["spec"].get("nodeName", "")

    def events(self, name: str) -> list[str]:
        found = self.storage.objects[EVENTS].values()
        return [event["reason"] for event in found if event["regarding"]["name"] == name]

    def said(self, *words: str) -> list[float]:
        """When something was said that holds all of these words."""
        return [when for when, text in self.clock.trace if all(word in text for word in words)]

    def changes(self, kind, name: str):
        return [change for change in self.storage.history if change.kind is kind and change.key[1] == name]


def mine(name: str, requests=None, **spec):
    return pod(name, labels={"app": name}, requests=requests, **({"schedulerName": "stow"} | spec))


def using(*names: str):
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]}


def small(name: str, cpu: str = "2", **labels):
    made = node(name, "z0", {"cpu": cpu})
    made["metadata"]["labels"] |= labels
    return made


# 43, kubernetes#86262: a claim that waits for its first consumer


def test_a_claim_is_bound_before_its_pod():
    items = [storage_class("late", PROVISIONER), claim("data", "late"), small("n1"), small("n2"), mine("p", **using("data"))]
    with Stage(*items) as stage:
        stage.settled(30)
        assert stage.node_of("p")
        changes = stage.changes(CLAIMS, "data")
        selected = [each.version for each in changes if SELECTED in each.new["metadata"].get("annotations", {})]
        complete = [each.version for each in changes if BIND_COMPLETED in each.new["metadata"].get("annotations", {})]
        bound = [change.version for change in stage.changes(PODS, "p") if change.new["spec"].get("nodeName")]
        assert selected[0] < complete[0] < bound[0]
        assert stage.storage.objects[CLAIMS]["default", "data"]["metadata"]["annotations"][SELECTED] == stage.node_of("p")


def test_where_no_volume_can_be_made_another_node_is_chosen():
    refusing = [small(f"n{number}", **{REFUSING: "yes"}) for number in range(2)]
    with Stage(storage_class("late", PROVISIONER), claim("data", "late"), *refusing, mine("p", **using("data"))) as stage:
        stage.until(20)
        assert not stage.node_of("p")
        assert "FailedScheduling" in stage.events("p")
        stage.at(21, "create", item=small("n2", "4"))
        stage.at(21, "cordon", name="n0", on=True)
        stage.at(21, "cordon", name="n1", on=True)
        stage.settled(80)
        assert stage.node_of("p") == "n2"


# 44, kubernetes#65131, #108560: anti-affinity and local volumes


@pytest.mark.parametrize("how", ["none", "500", "unanswered", "409"])
def test_three_pods_that_keep_apart_get_volumes_on_three_racks(how):
    items = [storage_class("local", "kubernetes.io/no-provisioner")]
    for number, rack in enumerate(("r1", "r1", "r2", "r3")):
        items += [small(f"n{number}", rack=rack), local_volume(f"disk{number}", f"n{number}")]
    term = [{"topologyKey": "rack", "labelSelector": {"matchLabels": {"set": "db"}}}]
    apart = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}}
    for number in range(3):
        made = mine(f"db-{number}", **using(f"data-{number}"), **apart)
        made["metadata"]["labels"]["set"] = "db"
        items += [claim(f"data-{number}", "local"), made]
    faults = [] if how == "none" else [Fault(how, "volume", count=2)]
    with Stage(*items, faults=faults) as stage:
        stage.settled(90)
        nodes = [stage.node_of(f"db-{number}") for number in range(3)]
        racks = {stage.storage.objects[NODES]["", name]["metadata"]["labels"]["rack"] for name in nodes}
        assert racks == {"r1", "r2", "r3"}
        volumes = [stage.storage.objects[CLAIMS]["default", f"data-{number}"]["spec"]["volumeName"] for number in range(3)]
        assert volumes == [f"disk{name[1:]}" for name in nodes]
        claimed = [volume for volume in stage.storage.objects[VOLUMES].values() if volume["spec"].get("claimRef")]
        assert len(claimed) == 3


# 46, kubernetes-client/python#728, #124, #2223, python-base#57: watches that end, and 410 in all its forms


def listed(stage, plural: str) -> int:
    return sum(1 for _, text in stage.clock.trace if text.endswith(f"/{plural}: 200") or f"/{plural}?" in text)


@pytest.mark.parametrize(("how", "keep"), [("gone", 0), ("close", 0), ("reset", 0), ("close", 100)])
@pytest.mark.parametrize("seed", range(4))
def test_what_happened_between_two_watches_is_not_missed(how, keep, seed):
    full = [mine(f"old{number}", {"cpu": "1"}) for number in range(4)]
    with Stage(small("n1"), small("n2"), *full, seed=seed) as stage:
        stage.until(10)
        before = listed(stage, "pods")
        stage.clock.at(20.0, stage.run.server.disturb, how, None, "pods")
        stage.at(20.0, "delete_pod", key=("default", "old0"), grace=0)
        stage.at(20.0, "delete_pod", key=("default", "old1"), grace=0)
        stage.at(20.0, "create", item=mine("new", {"cpu": "2"}))
        stage.at(20.0, "compact", keep=keep)
        stage.settled(60)
        assert (listed(stage, "pods") > before) is (keep == 0)
        assert stage.node_of("new") if stage.node_of("old2") == stage.node_of("old3") else True


def test_bookmarks_spare_a_quiet_kind_a_new_list():
    with Stage(small("n1")) as stage:
        for number in range(40):
            stage.at(5.0 + number, "create", item=mine(f"p{number}", {}))
        stage.until(130)
        stage.at(131, "compact", keep=30)  # the bookmark of 120 s is known still, the first list is not
        stage.at(131, "disturb", how="close", plural="nodes")
        before = listed(stage, "nodes")
        stage.settled(160)
        assert listed(stage, "nodes") == before


def test_nothing_is_decided_on_half_a_list(monkeypatch):
    monkeypatch.setattr(reflector, "PAGE", 3)
    running = [mine(f"old{number}", {"cpu": "500m"}) for number in range(11)]
    faults = [Fault("slow", "list", begin=20.0, seconds=4.0)]
    with Stage(*(small(f"n{number}") for number in range(3)), *running, faults=faults) as stage:
        stage.until(15)
        stage.at(20, "compact", keep=0)
        stage.at(20, "disturb", how="gone", plural="pods")
        for number in range(6):
            stage.at(20.5 + number, "create", item=mine(f"new{number}", {"cpu": "500m"}))
        stage.settled(90)
        assert sum(bool(stage.node_of(f"new{number}")) for number in range(6)) == 1


# 47, kopf#996, #698, #1276: a watch that is dead without an error


def test_a_silent_watch_is_noticed_and_opened_anew():
    with Stage(small("n1")) as stage:
        stage.until(10)
        stage.at(10, "disturb", how="silence", plural="")
        stage.at(12, "create", item=mine("p"))
        stage.until(78)
        assert not stage.node_of("p")
        assert stage.staleness() > 70
        stage.settled(100)
        assert stage.node_of("p") == "n1"
        assert stage.staleness() < 30


def test_a_watch_task_that_fails_ends_the_process(monkeypatch):
    def broken(*_):
        raise KeyError("a bug")

    with Stage(small("n1")) as stage:
        stage.until(10)
        monkeypatch.setattr(reflector.Reflector, "_tell", broken)
        stage.at(11, "create", item=mine("p"))
        assert not stage.run.until(12)
        assert "died of KeyError('a bug')" in stage.run.checks.violation


# 49, kubernetes#102761: recreated under the same name between decision and binding


def test_a_recreated_pod_is_not_bound_by_the_decision_for_the_old_one():
    with Stage(small("n1", "2"), small("n2", "1"), mine("web-0", {"cpu": "900m"}), faults=[Fault("recreate", "bind")]) as stage:
        stage.settled(60)
        assert stage.said("binding: 409")
        assert stage.node_of("web-0") == "n1"  # which has room for what the new one asks for
        assert stage.events("web-0") == ["Scheduled"]
        about = [event["regarding"] for event in stage.storage.objects[EVENTS].values()]
        uids = {each["uid"] for each in about if each["kind"] == "Pod"}
        assert uids == {stage.pod("web-0")["metadata"]["uid"]}


# 50, keptn#2881, rke#350: a binding that took effect though nobody said so


@pytest.mark.parametrize("how", ["unanswered", "reset"])
def test_a_binding_that_took_effect_unheard_is_a_success(how):
    with Stage(small("n1"), mine("p"), faults=[Fault(how, "bind")]) as stage:
        stage.settled(90)
        assert stage.node_of("p") == "n1"
        assert stage.events("p") == ["Scheduled"]
        assert len(stage.said("POST", "/p/binding: 201")) == 1


def test_a_pod_that_somebody_else_bound_is_his():
    picky = mine("p", {"cpu": "600m"}, nodeSelector={"kubernetes.io/hostname": "n1"})
    with Stage(small("n1", "1"), small("n2", "1"), picky, faults=[Fault("snatch", "bind")]) as stage:
        stage.until(10)
        stage.at(10, "create", item=mine("q", {"cpu": "600m"}))
        stage.settled(60)
        assert (stage.node_of("p"), stage.node_of("q")) == ("n2", "n1")
        assert "FailedScheduling" not in stage.events("p")


@pytest.mark.parametrize("how", ["lost", "500", "409", "refused"])
def test_a_binding_that_did_nothing_is_tried_again(how):
    with Stage(small("n1"), mine("p"), faults=[Fault(how, "bind", count=6)]) as stage:
        stage.settled(200)
        assert stage.node_of("p") == "n1"
        assert stage.events("p").count("Scheduled") == 1
        assert len(stage.said("POST", "/p/binding: FAULT")) >= 2


def test_a_binding_that_nobody_can_look_up_keeps_its_place():
    """As long as nobody can tell, the node's room is taken."""
    faults = [Fault("unanswered", "bind", end=3.0), Fault("500", "look", end=40.0, count=10**6)]
    with Stage(small("n1", "1"), mine("p", {"cpu": "600m"}), faults=faults) as stage:
        stage.at(0.2, "disturb", how="silence", plural="pods")
        stage.at(30, "create", item=mine("q", {"cpu": "600m"}))
        stage.settled(200)
        assert stage.node_of("p") == "n1"
        assert not stage.node_of("q")


# 52, kubernetes#65966, #81306, #41428: the lease is lost


def acting(stage, number: int, after: float) -> list[float]:
    """When a replica wrote something about pods."""
    wrote = [(when, text) for when, text in stage.clock.trace if when > after and text.startswith(f"replica {number}: P")]
    return [when for when, text in wrote if text.endswith(("binding: 201", "status: 200"))]


@pytest.mark.parametrize("how", ["refused", "lost", "unanswered", "500"])
@pytest.mark.parametrize("seed", range(2))
def test_who_cannot_renew_stops_before_another_takes_over(how, seed):
    with Stage(small("n1", "64"), replicas=2, seed=seed) as stage:
        stage.until(20)
        first = stage.run.leader
        other = stage.run.replicas[1 - first.number]
        life, lost = first.identity, stage.clock.now
        fault = Fault(how, "lease", lost, lost + 60, 10**6, process=first.number)
        stage.run.server.faults.faults += (fault,)
        for number in range(100):
            stage.at(20 + number / 2, "create", item=mine(f"p{number}", {"cpu": "10m"}))
        stage.settled(200)
        takeover = min(acting(stage, other.number, lost))
        ended = stage.said(life, "ended: LeaseLost")[0]
        last = max(acting(stage, first.number, lost), default=lost)
        assert last <= ended < takeover
        assert 8 < ended - lost < 15
        assert takeover - lost < 15 + 2 * 2.2 * 2 + 5
        assert all(stage.node_of(f"p{number}") for number in range(100))


@pytest.mark.parametrize("seconds", [12.0, 17.0, 40.0])
def test_who_was_paused_past_its_time_writes_nothing_afterwards(seconds):
    with Stage(small("n1", "64"), replicas=2) as stage:
        stage.until(20)
        first = stage.run.leader.number
        stage.at(20.0, "freeze", process=first, seconds=seconds)
        for number in range(80):
            stage.at(19.5 + number / 2, "create", item=mine(f"p{number}", {"cpu": "10m"}))
        stage.settled(200)  # writes of a process that does not lead are what the checks look for
        assert all(stage.node_of(f"p{number}") for number in range(80))
        taken = stage.run.leader.number != first  # else nobody noticed, and it may go on
        assert bool(stage.said("ended: LeaseLost")) is taken
        assert taken or seconds < 20
