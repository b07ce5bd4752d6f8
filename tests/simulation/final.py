"""What must hold when nothing has happened for a while, and when all schedulers have stopped."""

from simulation.actors import PODS, unbound
from simulation.policies import compiled
from simulation.storage import BY_PLURAL
from simulation.stores import differs, inconsistent, truth
from stowplan.policy.attempt import attempt

LEASES, EVENTS = BY_PLURAL["leases"], BY_PLURAL["events"]


def leftovers(run) -> list[str]:
    alive, leader = [replica for replica in run.replicas if replica.machine is not None], run.leader
    found = [text for replica in alive for text in run.checks.reloads.leftovers(replica)]
    if leader is None:
        return found + ["nobody leads" for replica in alive if replica.drive is not None][:1]
    if len([replica for replica in run.replicas if replica.leads]) > 1:
        return ["two processes lead"]
    store = leader.loop.ledger.store
    flights = leader.loop.ledger.flights.by_uid.values()
    if flights:
        return [f"pod {each.pod.key} is still on its way to {each.node} ({each.stage})" for each in flights]
    found += [f"the leader knows otherwise than the server: {text}" for text in differs(store, run.storage)]
    found += [f"the store is not what a new one is: {text}" for text in [inconsistent(store)] if text]
    text = run.checks.reloads.course(leader.identity).in_force
    return (
        found
        + run.checks.reloads.unrecorded(leader)
        + run.checks.reloads.untold(leader)
        + waiting(run, compiled(text))
        + placed(run, leader.loop, text)
    )


def waiting(run, policy) -> list[str]:
    """Pods that fit, or could preempt, by a fresh attempt on what the server has, under the policy in force, but wait."""
    store, found = truth(run.storage), []
    for pod in list(store.pending.values()):
        if pod.spec.scheduler_name not in policy.profiles or pod.terminating:
            continue
        judged = attempt(policy, store, pod)
        if judged.skipped is None and len(judged.feasible):
            nodes = ", ".join(store.nodes[row].name for row in judged.feasible.tolist())
            found.append(f"pod {pod.key} waits, but fits on {nodes}")
        elif judged.preemption is not None and judged.preemption.node is not None:
            found.append(f"pod {pod.key} waits, but could preempt on {judged.preemption.node}")
    return found


def placed(run, loop, text) -> list[str]:
    """No pod is lost: every pod that waits is in a queue of the leader."""
    queue, found = loop.ledger.queue.pods, []
    for (space, name), pod in run.storage.objects[PODS].items():
        if unbound(pod) and pod["spec"]["schedulerName"] in text.profiles and "deletionTimestamp" not in pod["metadata"]:
            entry = queue.get(f"{space}/{name}")
            if entry is None or entry.pod.uid != pod["metadata"]["uid"]:
                found.append(f"pod {space}/{name} is neither bound nor in a queue")
            elif str(entry.place) == "out":
                found.append(f"pod {space}/{name} is nowhere in the queue though nothing happens to it")
    return found


def lost(run) -> list[str]:
    """After an orderly stop nobody holds the lease, and every bound pod had its Event."""
    found = [f"{replica.identity} does not stop" for replica in run.replicas if replica.machine is not None]
    holders = [lease["spec"].get("holderIdentity") for lease in run.storage.objects[LEASES].values()]
    return found + [f"{holder} has stopped and still holds the lease" for holder in holders if holder]
