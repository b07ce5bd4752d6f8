"""A small client of the API server: raw JSON objects, for any number of threads, every kind that discovery names.

Resources are named by their plural, `pods`, or as kubectl does where that is not enough, `events.events.k8s.io`.
"""

import collections
import http.client
import select
import ssl
import urllib.parse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import msgspec

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
WORKERS = 16


class ApiError(Exception):
    """The API server answered with a status of 400 or more; `reason` and the text are those of its Status object."""

    def __init__(self, status: int, body: bytes):
        self.status = status
        try:
            told = msgspec.json.decode(body)
        except msgspec.DecodeError:
            told = {"message": body.decode(errors="replace")}
        self.reason = told.get("reason", "")
        super().__init__(f"{status} {self.reason}: {told.get('message', '')}")


@dataclass(frozen=True, slots=True)
class Resource:
    """Where the objects of one kind are."""

    prefix: str
    plural: str
    kind: str
    namespaced: bool

    def path(self, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        scope = f"namespaces/{namespace}/" if self.namespaced and namespace else ""
        return "/".join(part for part in (f"{self.prefix}/{scope}{self.plural}", name, subresource) if part)


class Client:
    """`server` is `https://host:port`; `token` a bearer token, None for anonymous requests; `timeout` in seconds."""

    def __init__(self, server: str, ca_file, token: str | None, timeout: float = 60.0):
        self.server, self.ca_file, self.token, self.timeout = server, ca_file, token, timeout
        self.address = urllib.parse.urlsplit(server)
        self.idle, self.resources, self.tls = collections.deque(), {}, None

    # Requests

    def connect(self, timeout: float | None = None) -> http.client.HTTPSConnection:
        if self.tls is None:
            self.tls = ssl.create_default_context(cafile=str(self.ca_file))
        timeout = self.timeout if timeout is None else timeout
        return http.client.HTTPSConnection(self.address.hostname, self.address.port, timeout=timeout, context=self.tls)

    def headers(self, **more: str) -> dict[str, str]:
        token = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return {"Accept": "application/json", "User-Agent": "stowplan-tests", **token, **more}

    def send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        """Never sent twice: OSError and HTTPException leave open what became of the request."""
        connection = self.idle_connection() or self.connect()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = response.status, response.read()
        except BaseException:
            connection.close()
            raise
        self.idle.append(connection)
        return answer

    def idle_connection(self) -> http.client.HTTPSConnection | None:
        """The one used last that the server has not closed meanwhile."""
        while True:
            try:
                connection = self.idle.pop()
            except IndexError:  # another thread has taken the last one
                return None
            if connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()

    def close(self) -> None:
        """Closes idle connections; the client can be used again."""
        while self.idle:
            self.idle.pop().close()

    def request(self, method: str, path: str, body=None, content_type: str = "application/json", **query):
        """The decoded answer. Raises `ApiError`, and OSError or HTTPException when there is no answer at all."""
        data = None if body is None else msgspec.json.encode(body)
        status, answer = self.send(method, with_query(path, query), data, self.headers(**{"Content-Type": content_type}))
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise ApiError(status, answer)
        return msgspec.json.decode(answer) if answer[:1] in (b"{", b"[") else answer.decode()

    # Discovery

    def resource(self, name: str, api_version: str | None = None) -> Resource:
        """By plural (`pods`, `leases.coordination.k8s.io`) or, with `api_version`, by kind."""
        key = (api_version, name)
        if key not in self.resources:
            self.resources = self.discover()
        if key not in self.resources:
            raise LookupError(f"the API server has no {name} of {api_version or 'any group'}")
        return self.resources[key]

    def discover(self) -> dict[tuple[str | None, str], Resource]:
        found = {}
        for root in ("/api", "/apis"):
            status, body = self.send("GET", root, None, self.headers(Accept=DISCOVERY))
            if status != http.HTTPStatus.OK:
                raise ApiError(status, body)
            for group in msgspec.json.decode(body)["items"]:
                add_group(found, root, group)
        return found

    # Objects

    def create(self, obj, namespace: str | None = None):
        resource = self.resource(obj["kind"], obj["apiVersion"])
        return self.request("POST", resource.path(namespace_of(obj, namespace)), obj)

    def get(self, resource: str, name: str, namespace: str = "default", subresource: str = ""):
        return self.request("GET", self.resource(resource).path(namespace, name, subresource))

    def exists(self, resource: str, name: str, namespace: str = "default") -> bool:
        try:
            self.get(resource, name, namespace)
        except ApiError as error:
            if error.status == http.HTTPStatus.NOT_FOUND:
                return False
            raise
        return True

    def list(self, resource: str, namespace: str | None = None, **query) -> list[dict]:
        """The items, of all namespaces if none is named; pages are followed. `query`: labelSelector, fieldSelector, ..."""
        items, path = [], self.resource(resource).path(namespace)
        page = {"metadata": {"continue": ""}}
        while page is not None:
            page = self.request("GET", path, **{"limit": 2000, **query, "continue": page["metadata"]["continue"]})
            items += page["items"]
            page = page if page["metadata"].get("continue") else None
        return items

    def replace(self, obj, subresource: str = ""):
        resource = self.resource(obj["kind"], obj["apiVersion"])
        return self.request("PUT", resource.path(namespace_of(obj), obj["metadata"]["name"], subresource), obj)

    def patch(
        self, resource: str, name: str, patch, namespace: str = "default", *, subresource: str = "", kind: str = "merge", **query
    ):
        """`kind`: merge, strategic, json or apply."""
        path = self.resource(resource).path(namespace, name, subresource)
        return self.request("PATCH", path, patch, PATCHES[kind], **query)

    def delete(self, resource: str, name: str, namespace: str = "default", grace: int | None = None, uid: str | None = None):
        """`grace` in seconds, None for the object's own; with `uid` only that very object."""
        options = {} if grace is None else {"gracePeriodSeconds": grace}
        options |= {"preconditions": {"uid": uid}} if uid else {}
        return self.request("DELETE", self.resource(resource).path(namespace, name), options)

    def delete_all(self, resource: str, namespace: str | None = None, **query):
        """All objects of a kind, or of a kind and namespace, with no grace. `query`: labelSelector, fieldSelector."""
        return self.request("DELETE", self.resource(resource).path(namespace), {"gracePeriodSeconds": 0}, **query)

    def bind(self, pod, node: str):
        """Binds a pod to a node as a scheduler does."""
        meta = {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": meta,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        return self.request("POST", self.resource("pods").path(meta["namespace"], meta["name"], "binding"), body)

    # Many at once

    def create_all(self, objects, workers: int = WORKERS) -> Sequence[dict]:
        """Creates them at the same time, `workers` requests in flight; the answers in order. The first error is raised."""
        return self.each(self.create, objects, workers)

    def each(self, function, items, workers: int = WORKERS) -> Sequence:
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(function, items))


def add_group(found, root: str, group) -> None:
    """Names of a plural belong to the first group and version that has it; kinds are told apart by version."""
    name = group["metadata"].get("name", "")
    for version in group["versions"]:
        api_version = f"{name}/{version['version']}" if name else version["version"]
        for each in version["resources"]:
            kind = each.get("responseKind", {}).get("kind", "")
            resource = Resource(f"{root}/{api_version}", each["resource"], kind, each["scope"] == "Namespaced")
            found[api_version, kind] = resource
            found.setdefault((None, each["resource"]), resource)
            found.setdefault((None, f"{each['resource']}.{name}"), resource)


def namespace_of(obj, namespace: str | None = None) -> str:
    return namespace or obj["metadata"].get("namespace", "default")


def with_query(path: str, query) -> str:
    told = {key: value for key, value in query.items() if value not in (None, "")}
    return f"{path}?{urllib.parse.urlencode(told)}" if told else path
