"""Objects by path, with versions and merge patches, behind the transport."""

import asyncio
import copy

import msgspec

from unit.edge.kube.rig import answer, refusal


class Shelf:
    """`before[path]` are functions that are called, one each, before a write there: others write in between."""

    def __init__(self):
        self.objects, self.version = {}, 10
        self.before = {}
        self.requests = []

    def put(self, path, item):
        self.version += 1
        stored = copy.deepcopy(item)
        stored.setdefault("metadata", {})["resourceVersion"] = str(self.version)
        stored["metadata"].setdefault("uid", f"uid-{path.rpartition('/')[2]}")
        self.objects[path] = stored

    async def request(self, request):
        await asyncio.sleep(0.001)
        self.requests.append(request)
        path = request.path.removesuffix("/status")
        if request.method != "GET" and self.before.get(path):
            found = self.before[path].pop(0)()
            if found is not None:
                return found
        if request.method == "POST":
            return self._create(path, msgspec.json.decode(request.body))
        if path not in self.objects:
            return refusal(404, "not found")
        if request.method == "PATCH":
            return self._patch(path, msgspec.json.decode(request.body))
        return answer(200, self.objects.pop(path) if request.method == "DELETE" else self.objects[path])

    def _create(self, folder, body):
        path = f"{folder}/{body['metadata']['name']}"
        if path in self.objects:
            return refusal(409)
        self.put(path, body)
        return answer(200, self.objects[path])

    def _patch(self, path, body):
        """The uid and the version that a patch names must be those of the object."""
        mine, theirs = self.objects[path]["metadata"], body.get("metadata", {})
        if any(theirs.get(name, mine[name]) != mine[name] for name in ("uid", "resourceVersion")):
            return refusal(409)
        self.put(path, merged(self.objects[path], body))
        return answer(200, self.objects[path])

    def writes(self):
        return [(request.method, request.path) for request in self.requests if request.method != "GET"]


def merged(item, patch):
    """A merge patch (RFC 7386), and of a strategic one that an entry of a list may be deleted by its uid."""
    if isinstance(patch, list) and patch and isinstance(patch[0], dict) and patch[0].get("$patch") == "delete":
        return [each for each in item or [] if each["uid"] != patch[0]["uid"]]
    if not isinstance(patch, dict):
        return patch
    made = dict(item) if isinstance(item, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key), value)
    return made
