"""The words of the cluster notation: what each adds to the API object of its line.

A kind of line is a table of words, and a word is a function that writes its value into the object; a `WordError` says what is
wrong with the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from stowplan.edge.notation.values import (
    EFFECTS,
    RESOURCES,
    TOPOLOGY,
    Object,
    WordError,
    amounts,
    details_of,
    expression,
    inside,
    label_key,
    labels,
    number,
    one_of,
    pairs,
    quantity,
    selector,
)
from stowplan.objects import parse, whole

Handler = Callable[[Object, str], None]
Details = dict[str, Callable[[str], Any]]


class Kind(NamedTuple):
    """How a line of one kind becomes an object."""

    blank: Callable[[str], Object]
    words: Mapping[str, Handler]
    flags: Mapping[str, Handler]
    resource: Handler | None = None
    """takes `name=amount` words whose name has a slash"""

    def take(self, item: Object, text: str) -> None:
        """Add what a word says; raises WordError."""
        key, equals, value = text.partition("=")
        if not equals:
            if key not in self.flags:
                raise WordError(self._unknown(key))
            self.flags[key](item, "")
        elif key in self.words:
            self.words[key](item, value)
        elif key.startswith("label."):
            labels(item)[label_key(key.removeprefix("label."))] = value
        elif self.resource is not None and ("/" in key or key.startswith("hugepages-")):
            self.resource(item, text)
        else:
            raise WordError(self._unknown(key))

    def _unknown(self, key: str) -> str:
        known = ", ".join([*(f"{word}=" for word in self.words), "label.KEY=", *self.flags])
        return f"there is no word {key} here; words are {known}"


def _set_labels(item: Object, value: str) -> None:
    labels(item).update(pairs(value))


def _spec(name: str, read: Callable[[str], Any] = str) -> Handler:
    """A word that is one member of the spec."""

    def handle(item: Object, value: str) -> None:
        inside(item, "spec")[name] = read(value)

    return handle


def _status(name: str, read: Callable[[str], Any] = str) -> Handler:
    def handle(item: Object, value: str) -> None:
        inside(item, "status")[name] = read(value)

    return handle


def _listed(name: str, read: Callable[[str], list[Any]]) -> Handler:
    """A word that adds to one list of the spec."""

    def handle(item: Object, value: str) -> None:
        inside(item, "spec").setdefault(name, []).extend(read(value))

    return handle


# Nodes


def _node(name: str) -> Object:
    metadata = {"name": name, "labels": {TOPOLOGY["host"]: name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": {"pods": "110"}}}


def _allocatable(item: Object, text: str) -> None:
    name, _, amount = text.partition("=")
    item["status"]["allocatable"][RESOURCES.get(name, name)] = quantity(amount)


def _label_word(key: str) -> Handler:
    def handle(item: Object, value: str) -> None:
        labels(item)[TOPOLOGY[key]] = value

    return handle


def _resource_word(name: str, handler: Handler) -> Handler:
    return lambda item, value: handler(item, f"{name}={value}")


def _taint(text: str) -> list[Object]:
    head, _, effect = text.rpartition(":")
    key, _, value = head.partition("=")
    return [{"key": key, "value": value, "effect": one_of(effect, EFFECTS)}]


def _node_image(item: Object, text: str) -> None:
    name, _, size = text.rpartition(":")
    if not name:
        raise WordError(f"{text} is not image:size")
    tagged = name if ":" in name.rpartition("/")[2] or "@" in name else f"{name}:latest"
    image = {"names": [tagged], "sizeBytes": whole(parse(quantity(size)))}
    item["status"].setdefault("images", []).append(image)


# Pods


def _pod(name: str) -> Object:
    namespace, slash, own = name.rpartition("/")
    metadata = {"name": own, "namespace": namespace if slash else "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "main", "image": "main"}]}}


def _main(item: Object) -> Object:
    main: Object = item["spec"]["containers"][0]
    return main


def _request(item: Object, text: str) -> None:
    name, _, amount = text.partition("=")
    inside(_main(item), "resources", "requests")[RESOURCES.get(name, name)] = quantity(amount)


def _container(member: str, **more: str) -> Handler:
    """Another container, with its requests as details."""

    def handle(item: Object, text: str) -> None:
        name, requests = amounts(text)
        container = {"name": name, "image": name, "resources": {"requests": requests}, **more}
        item["spec"].setdefault(member, []).append(container)

    return handle


def _image(item: Object, value: str) -> None:
    _main(item)["image"] = value


def _port(item: Object, text: str) -> None:
    written, slash, protocol = text.partition("/")
    protocol = one_of(protocol, ("TCP", "UDP", "SCTP")) if slash else "TCP"
    port = {"containerPort": number(written), "hostPort": number(written), "protocol": protocol}
    _main(item).setdefault("ports", []).append(port)


def _toleration(text: str) -> list[Object]:
    head, colon, effect = text.partition(":")
    found: Object = {"effect": one_of(effect, EFFECTS)} if colon else {}
    key, equals, value = head.partition("=")
    if head == "*":
        return [found | {"operator": "Exists"}]
    return [found | {"key": key} | ({"operator": "Equal", "value": value} if equals else {"operator": "Exists"})]


def _select(item: Object, value: str) -> None:
    inside(item, "spec", "nodeSelector").update(pairs(value))


REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"


def _require(item: Object, value: str) -> None:
    """Expressions with commas between them must all hold; of several such words one must."""
    term = {"matchExpressions": [expression(part) for part in value.split(",")]}
    inside(item, "spec", "affinity", "nodeAffinity", REQUIRED).setdefault("nodeSelectorTerms", []).append(term)


def _pin(item: Object, value: str) -> None:
    """The way a DaemonSet ties its pods to their nodes."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [value]}]}
    inside(item, "spec", "affinity", "nodeAffinity", REQUIRED).setdefault("nodeSelectorTerms", []).append(term)


def _prefer(item: Object, value: str) -> None:
    expressions, colon, weight = value.rpartition(":")
    if not colon:
        raise WordError(f"{value or 'nothing'} is not expression:weight")
    preference = {"matchExpressions": [expression(part) for part in expressions.split(",")]}
    terms = inside(item, "spec", "affinity", "nodeAffinity").setdefault(PREFERRED, [])
    terms.append({"weight": number(weight), "preference": preference})


def _names_of(text: str) -> list[str]:
    return text.split(",")


def _term(side: str) -> Handler:
    """A term of pod affinity (`near`) or anti-affinity (`apart`); it is preferred if it has a weight."""
    known: Details = {"match": selector, "weight": number, "namespaces": _names_of, "everywhere": bool}

    def handle(item: Object, value: str) -> None:
        head, details = details_of(value, known)
        term: Object = {"topologyKey": label_key(head), "labelSelector": details.get("match", {})}
        if "namespaces" in details:
            term["namespaces"] = details["namespaces"]
        if "everywhere" in details:
            term["namespaceSelector"] = {}
        terms = inside(item, "spec", "affinity", side)
        if "weight" in details:
            terms.setdefault(PREFERRED, []).append({"weight": details["weight"], "podAffinityTerm": term})
        else:
            terms.setdefault(REQUIRED, []).append(term)

    return handle


def _flag(*path: str, value: Any = True) -> Handler:
    """A word without a value that sets one member."""

    def handle(item: Object, _: str) -> None:
        inside(item, *path[:-1])[path[-1]] = value

    return handle


def _spread(item: Object, text: str) -> None:
    """A spread constraint; without `match` it counts the pods that have the labels of this one."""
    known: Details = {
        "max": number,
        "soft": bool,
        "match": selector,
        "min": number,
        "taints": lambda value: one_of(value, ("Honor", "Ignore")),
        "affinity": lambda value: one_of(value, ("Honor", "Ignore")),
        "keys": _names_of,
    }
    names = {"min": "minDomains", "taints": "nodeTaintsPolicy", "affinity": "nodeAffinityPolicy", "keys": "matchLabelKeys"}
    head, details = details_of(text, known)
    constraint = {
        "topologyKey": label_key(head),
        "maxSkew": details.get("max", 1),
        "whenUnsatisfiable": "ScheduleAnyway" if "soft" in details else "DoNotSchedule",
        "labelSelector": details.get("match", {"matchLabels": labels(item)}),
    }
    constraint |= {name: details[key] for key, name in names.items() if key in details}
    item["spec"].setdefault("topologySpreadConstraints", []).append(constraint)


def _owner(item: Object, text: str) -> None:
    kind, slash, name = text.partition("/")
    if not slash:
        raise WordError(f"{text or 'nothing'} is not Kind/name")
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": text, "controller": True}
    item["metadata"]["ownerReferences"] = [owner]


def _gates(text: str) -> list[Object]:
    return [{"name": name} for name in text.split(",")]


# Other kinds


def _other(version: str, kind: str) -> Callable[[str], Object]:
    """A blank object of a namespaced kind."""

    def blank(name: str) -> Object:
        namespace, slash, own = name.rpartition("/")
        metadata = {"name": own, "namespace": namespace if slash else "default"}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {}}

    return blank


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


_AMOUNTS = RESOURCES.items()
NODE_WORDS: dict[str, Handler] = {
    **{word: _resource_word(name, _allocatable) for word, name in _AMOUNTS},
    "zone": _label_word("zone"),
    "region": _label_word("region"),
    "labels": _set_labels,
    "taint": _listed("taints", _taint),
    "image": _node_image,
}
POD_WORDS: dict[str, Handler] = {
    **{word: _resource_word(name, _request) for word, name in _AMOUNTS if name != "pods"},
    "on": _spec("nodeName"),
    "nominated": _status("nominatedNodeName"),
    "labels": _set_labels,
    "image": _image,
    "port": _port,
    "container": _container("containers"),
    "init": _container("initContainers"),
    "sidecar": _container("initContainers", restartPolicy="Always"),
    "toleration": _listed("tolerations", _toleration),
    "select": _select,
    "require": _require,
    "prefer": _prefer,
    "pin": _pin,
    "near": _term("podAffinity"),
    "apart": _term("podAntiAffinity"),
    "spread": _spread,
    "priority": _spec("priority", number),
    "class": _spec("priorityClassName"),
    "scheduler": _spec("schedulerName"),
    "gates": _listed("schedulingGates", _gates),
    "owner": _owner,
}
SELECTED = _spec("selector", selector)
KINDS: dict[str, Kind] = {
    "node": Kind(_node, NODE_WORDS, {"unschedulable": _flag("spec", "unschedulable")}, _allocatable),
    "pod": Kind(
        _pod,
        POD_WORDS,
        {
            "terminating": _flag("metadata", "deletionTimestamp", value="1970-01-01T00:00:00Z"),
            "finished": _flag("status", "phase", value="Succeeded"),
            "patient": _flag("spec", "preemptionPolicy", value="Never"),
        },
        _request,
    ),
    "namespace": Kind(_namespace, {"labels": _set_labels}, {}),
    "service": Kind(_other("v1", "Service"), {"match": _spec("selector", pairs)}, {}),
    "replicaset": Kind(_other("apps/v1", "ReplicaSet"), {"match": SELECTED}, {}),
    "statefulset": Kind(_other("apps/v1", "StatefulSet"), {"match": SELECTED}, {}),
    "budget": Kind(
        _other("policy/v1", "PodDisruptionBudget"), {"match": SELECTED, "allowed": _status("disruptionsAllowed", number)}, {}
    ),
}
"""Kinds of line by their first word; a budget is a PodDisruptionBudget."""
