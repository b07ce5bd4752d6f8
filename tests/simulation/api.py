"""The API server's verbs on the storage, in memory and at once: what a request means and what it answers.

As kube-apiserver 1.37 does it, for what a scheduler and its surroundings use. Anything else raises UnmodelledError.
"""

import datetime as dt
from dataclasses import dataclass

import msgspec

from simulation.patches import UnmodelledError, clone, merge, strategic
from simulation.selection import Selection
from simulation.storage import BY_PLACE, Kind, Storage, encode, whole

REASONS = {
    400: "BadRequest",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}
SYSTEM = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "name", "namespace", "generation")
"""metadata that an update cannot change"""
CONTINUE_SEPARATOR = ":"


def status_object(code: int, message: str, reason: str = "") -> dict:
    """A `Status` as the API server answers it when something is wrong."""
    answer = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return answer | {"reason": reason or REASONS[code], "code": code}


class Refused(Exception):  # noqa: N818 - it is an answer
    def __init__(self, code: int, message: str, reason: str = ""):
        super().__init__(message)
        self.code, self.body = code, encode(status_object(code, message, reason))


@dataclass(frozen=True)
class Place:
    """What a path names; `name` is empty for a collection."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    sub: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace, self.name)


def place_of(path: str) -> Place:
    parts = path.strip("/").split("/")
    if parts[:2] == ["api", "v1"]:
        group, rest = "", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    else:
        raise Refused(404, f"the server could not find the requested resource: {path}")
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and (group, rest[2]) in BY_PLACE:
        namespace, rest = rest[1], rest[2:]
    kind = BY_PLACE.get((group, rest[0]))
    if kind is None:
        raise Refused(404, f"the server could not find the requested resource: {path}")
    name, sub = (*rest[1:], "", "")[:2]
    if name and kind.namespaced != bool(namespace):
        raise Refused(404, f"the server could not find the requested resource: {path}")
    return Place(kind, namespace, name, sub)


class Api:
    """One API server. `absent`: plurals that this cluster does not serve."""

    def __init__(self, storage: Storage, clock, absent=frozenset()):
        self.storage, self.clock, self.absent = storage, clock, absent
        self._pages: dict[str, tuple[int, list]] = {}

    @property
    def now(self) -> str:
        return stamp(self.clock.wall)

    def call(self, method: str, path: str, query=None, body: bytes | None = None, content_type: str = "") -> tuple[int, bytes]:
        """Status and body; the write has taken effect when this returns."""
        try:
            place = self.place(path)
            return self._call(method, place, dict(query or {}), msgspec.json.decode(body) if body else None, content_type)
        except Refused as refusal:
            return refusal.code, refusal.body

    def place(self, path: str) -> Place:
        place = place_of(path)
        if place.kind.plural in self.absent:
            raise Refused(404, "the server could not find the requested resource")
        return place

    def _call(self, method, place, query, body, content_type):
        kind = place.kind
        if method == "GET":
            return (200, whole(kind, self.get(place))) if place.name else (200, self.list(place, query))
        if method == "POST" and place.sub == "binding":
            self.bind(place, body)
            return 201, encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
        if method == "POST" and not place.name:
            return 201, whole(kind, self.create(place, body))
        if method == "PUT":
            return 200, whole(kind, self.update(place, body))
        if method == "PATCH":
            return 200, whole(kind, self.patch(place, body, content_type))
        if method == "DELETE" and place.name:
            return 200, whole(kind, self.delete(place, body or {}, query))
        raise UnmodelledError(f"{method} {place}")

    # Reading

    def get(self, place: Place) -> dict:
        found = self.storage.objects[place.kind].get(place.key)
        if found is None:
            raise Refused(404, f'{place.kind.plural} "{place.name}" not found')
        return found

    def list(self, place: Place, query) -> bytes:
        """One page. Later pages show the state that the first one showed, unless that is forgotten meanwhile."""
        kind, selection = place.kind, Selection.of(place, query)
        version, token = self.storage.version, query.get("continue", "")
        if token:
            version, items = self._pages.get(token, (0, []))
            if version < self.storage.compacted:
                raise Refused(410, "The provided continue parameter is too old to display a consistent list result.")
        else:
            items = [item for _, item in sorted(self.storage.objects[kind].items()) if selection.shows(item)]
        limit = int(query.get("limit") or 0) or len(items)
        meta = {"resourceVersion": str(version)}
        if len(items) > limit:
            meta |= {"continue": self._remember(version, items[limit:]), "remainingItemCount": len(items) - limit}
        head = {"kind": f"{kind.name}List", "apiVersion": kind.api_version, "metadata": meta}
        return encode(head | {"items": items[:limit]})  # items of a typed list do not say their kind

    def _remember(self, version: int, items) -> str:
        token = f"page{CONTINUE_SEPARATOR}{version}{CONTINUE_SEPARATOR}{len(self._pages)}"
        self._pages[token] = (version, items)
        return token

    # Writing

    def create(self, place: Place, body) -> dict:
        kind, new = place.kind, clone(body)
        meta = new.setdefault("metadata", {})
        new = {key: value for key, value in new.items() if key not in ("kind", "apiVersion")}
        uid = self.storage.new_uid()
        if not meta.get("name"):
            meta["name"] = meta["generateName"] + uid[-5:]
        if kind.namespaced:
            meta["namespace"] = meta.get("namespace") or place.namespace
            if place.namespace and meta["namespace"] != place.namespace:
                raise Refused(400, "the namespace of the provided object does not match the namespace sent on the request")
        key = (meta.get("namespace", "") if kind.namespaced else "", meta["name"])
        if key in self.storage.objects[kind]:
            raise Refused(409, f'{kind.plural} "{meta["name"]}" already exists', "AlreadyExists")
        new["metadata"] = meta | {"uid": uid, "creationTimestamp": self.now, "generation": 1}
        if kind.name == "Pod":
            self._admit(new)
        return self.storage.write(kind, key, new)

    def _admit(self, pod) -> None:
        """Upstream: `podStrategy.PrepareForCreate`, and what defaulting and admission fill in."""
        spec = pod["spec"]
        spec.setdefault("schedulerName", "default-scheduler")
        spec.setdefault("priority", 0)
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
        spec.setdefault("terminationGracePeriodSeconds", 30)
        pod["status"] = {"phase": "Pending", "qosClass": "Burstable"}
        if spec.get("schedulingGates"):
            gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "lastTransitionTime": self.now}
            pod["status"]["conditions"] = [gated | {"message": "Scheduling is blocked due to non-empty scheduling gates"}]

    def update(self, place: Place, body) -> dict:
        old = self.get(place)
        new = {key: value for key, value in clone(body).items() if key not in ("kind", "apiVersion")}
        return self._replace(place, old, new)

    def patch(self, place: Place, body, content_type: str) -> dict:
        how = {"application/merge-patch+json": merge, "application/strategic-merge-patch+json": strategic}.get(content_type)
        if how is None:
            raise UnmodelledError(f"patch of type {content_type}")
        old = self.get(place)
        new = how(old, {key: value for key, value in body.items() if key not in ("kind", "apiVersion")})
        return self._replace(place, old, new)

    def _replace(self, place: Place, old, new) -> dict:
        """An update, if its preconditions hold: system metadata stays, and of spec and status what the path is about counts."""
        self._precondition(place, old, new["metadata"])
        kept = {key: old["metadata"][key] for key in SYSTEM if key in old["metadata"]}
        meta = {key: value for key, value in new["metadata"].items() if key not in SYSTEM} | kept
        if place.sub == "status":
            new = old | {"status": new.get("status", {}), "metadata": meta}
        elif place.sub:
            raise UnmodelledError(f"update of {place}")
        elif place.kind.status:
            new = {key: value for key, value in new.items() if key != "status"} | {"metadata": meta}
            new |= {"status": old["status"]} if "status" in old else {}
        new["metadata"] = meta | {"resourceVersion": old["metadata"]["resourceVersion"]}
        if new == old:
            return old
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        return self.storage.write(place.kind, place.key, new)

    def _precondition(self, place: Place, old, wanted) -> None:
        for field in ("uid", "resourceVersion"):
            if wanted.get(field) and wanted[field] != old["metadata"][field]:
                why = f"{field} in precondition: {wanted[field]}, in object: {old['metadata'][field]}"
                what = f'Operation cannot be fulfilled on {place.kind.plural} "{place.name}"'
                raise Refused(409, f"{what}: Precondition failed: {why}")

    def bind(self, place: Place, body) -> dict:
        """Upstream: `BindingREST.Create`. Every refusal but that of an unknown pod is a conflict."""
        pod, meta = self.get(place), body.get("metadata", {})
        node, name = body["target"]["name"], place.name
        if meta.get("name") != name:
            raise Refused(400, "name in URL does not match name in Binding object")
        self._precondition(place, pod, {key: value for key, value in meta.items() if key in ("uid", "resourceVersion")})
        trouble = None
        if "deletionTimestamp" in pod["metadata"]:
            trouble = f"pod {name} is being deleted, cannot be assigned to a host"
        elif pod["spec"].get("nodeName"):
            trouble = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        elif pod["spec"].get("schedulingGates"):
            trouble = f"pod {name} has non-empty .spec.schedulingGates"
        if trouble:
            raise Refused(409, f'Operation cannot be fulfilled on pods/binding "{name}": {trouble}')
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": self.now}
        status = {key: value for key, value in pod["status"].items() if key != "nominatedNodeName"}
        others = [condition for condition in status.get("conditions", ()) if condition["type"] != "PodScheduled"]
        new = pod | {"spec": pod["spec"] | {"nodeName": node}, "status": status | {"conditions": [*others, scheduled]}}
        return self.storage.write(place.kind, place.key, new)

    def delete(self, place: Place, options, query) -> dict:
        """A pod that has a node is marked first, and goes when its kubelet says so (grace 0) or nobody needs to be asked."""
        found = self.get(place)
        wanted = options.get("preconditions") or {}
        self._precondition(place, found, wanted)
        if place.kind.name == "Pod" and found["spec"].get("nodeName") and found["status"]["phase"] not in ("Succeeded", "Failed"):
            grace = options.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
            grace = found["spec"]["terminationGracePeriodSeconds"] if grace is None else int(grace)
            if grace > 0:
                if "deletionTimestamp" in found["metadata"]:
                    return found
                leaving = {"deletionTimestamp": stamp(self.clock.wall + grace), "deletionGracePeriodSeconds": grace}
                generation = found["metadata"]["generation"] + 1
                meta = found["metadata"] | leaving | {"generation": generation}
                return self.storage.write(place.kind, place.key, found | {"metadata": meta})
        return self.storage.write(place.kind, place.key, None)


def stamp(wall: float) -> str:
    return dt.datetime.fromtimestamp(wall, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
