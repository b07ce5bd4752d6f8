"""How full nodes are, reckoned from plain objects and independently of the scheduler: whole and milli numbers, Ki to Gi."""

from collections import Counter

UNITS = {"m": 1, "Ki": 1000 << 10, "Mi": 1000 << 20, "Gi": 1000 << 30}


def thousandths(quantity: str) -> int:
    for unit, factor in UNITS.items():
        if quantity.endswith(unit):
            return int(quantity[: -len(unit)]) * factor
    return int(quantity) * 1000


def wants(pod) -> Counter:
    """What a pod takes of its node, in thousandths; itself as `pods`, and its host ports, of which there is one each."""
    found = Counter(pods=1000)
    for container in pod["spec"]["containers"]:
        for name, quantity in container.get("resources", {}).get("requests", {}).items():
            found[name] += thousandths(quantity)
        for port in container.get("ports", ()):
            if port.get("hostPort"):
                found[f"port {port['hostPort']}"] += 1000
    return found


def offers(node) -> Counter:
    found = Counter()
    for name, quantity in node["status"]["allocatable"].items():
        found[name] = thousandths(quantity)
    return found


def excess(node, pods, newcomer) -> list[str]:
    """What a node would be short of with these pods on it, of what the newcomer among them wants: it may have shrunk since."""
    has, total, asked = offers(node), Counter(), wants(newcomer)
    for pod in pods:
        total.update(wants(pod))
    limits = {name: 1000 if name.startswith("port ") else has[name] for name, amount in asked.items() if amount}
    return [f"{name}: {total[name]} of {limit}" for name, limit in limits.items() if total[name] > limit]


def finished(pod) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def on_node(storage, kind, name: str) -> list:
    """Pods that take room on a node, as the server knows them."""
    return [pod for pod in storage.objects[kind].values() if pod["spec"].get("nodeName") == name and not finished(pod)]
