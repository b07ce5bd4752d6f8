"""An API server that has a big cluster and much going on in it, made up as it is asked for: it keeps a few numbers a pod.

    python synthetic.py PORT NODES PODS

Speaks plain HTTP. Pods are bound evenly; from `POST /play?rate=R` on there are R watch events a second: statuses of pods and nodes
change, pods go and come, and every twentieth new pod waits for `stowplan` to bind it. `GET /state` counts what has happened.
"""

import asyncio
import contextlib
import itertools
import json
import sys
import time

from aiohttp import web

PAGE_KINDS = {"pods": ("v1", "PodList"), "nodes": ("v1", "NodeList")}
PART = "".join(f',"f:field-{at}":{{".":{{}},"f:value":{{}},"k:{{\\"name\\":\\"x{at}\\"}}":{{}}}}' for at in range(12))
FIELDS = (
    '[{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1",'
    f'"fieldsV1":{{"f:status":{{}}{PART}}}}}]'
)
ENV = ",".join(f'{{"name":"VARIABLE_{at}","value":"some value of variable {at}"}}' for at in range(12))


def pod_text(number: int, uid: int, version: int, node: int | None) -> str:
    """A pod as kubectl would show it, about 3 kB of JSON."""
    app = number % 200
    where = "" if node is None else f',"nodeName":"node-{node:05}"'
    phase, ready = (
        ("Pending", "")
        if node is None
        else ("Running", f',"startTime":"2026-01-01T00:00:00Z","podIP":"10.0.{version % 250}.{number % 250}"')
    )
    return (
        f'{{"metadata":{{"name":"pod-{number:06}","namespace":"team-{app % 40}","uid":"{uid:08x}-0000-4000-8000-{number:012}",'
        f'"resourceVersion":"{version}","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"app":"app-{app}","pod-template-hash":"{app:08x}"}},'
        f'"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"app-{app}","uid":"{app:08x}-1111-4000-8000-000000000000","controller":true}}],'
        f'"managedFields":{FIELDS}}},'
        f'"spec":{{"schedulerName":"stowplan","priority":0,"serviceAccountName":"default","terminationGracePeriodSeconds":30{where},'
        f'"containers":[{{"name":"main","image":"registry.example/app-{app}:1","env":[{ENV}],'
        f'"resources":{{"requests":{{"cpu":"{100 + app % 5 * 50}m","memory":"{128 + app % 7 * 64}Mi"}}}}}}],'
        f'"tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}]}},'
        f'"status":{{"phase":"{phase}"{ready},"conditions":[{{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}}]}}}}'
    )


def node_text(number: int, version: int) -> str:
    room = '{"cpu":"32","memory":"128Gi","pods":"110","ephemeral-storage":"200Gi"}'
    images = ",".join(
        f'{{"names":["registry.example/app-{(number * 7 + at) % 200}:1"],"sizeBytes":{10**8 + at}}}' for at in range(20)
    )
    return (
        f'{{"metadata":{{"name":"node-{number:05}","uid":"node-{number:05}","resourceVersion":"{version}",'
        f'"labels":{{"kubernetes.io/hostname":"node-{number:05}","topology.kubernetes.io/zone":"zone-{number % 3}"}},'
        f'"managedFields":{FIELDS}}},"spec":{{}},'
        f'"status":{{"capacity":{room},"allocatable":{room},"images":[{images}],"conditions":[{{"type":"Ready","status":"True",'
        f'"lastHeartbeatTime":"2026-01-01T00:{version // 60 % 60:02}:{version % 60:02}Z"}}]}}}}'
    )


class Server:
    """The cluster: of each pod its uid and node, by number."""

    def __init__(self, nodes: int, pods: int):
        self.nodes, self.version = nodes, 1000
        self.pods: dict[int, tuple[int, int | None]] = {number: (number, number % nodes) for number in range(pods)}
        self.fresh = itertools.count(pods)
        self.watchers: dict[str, set[asyncio.Queue]] = {"pods": set(), "nodes": set()}
        self.sent = self.pending = self.bound = 0
        self.playing: asyncio.Task | None = None

    # Answers

    async def handle(self, request):
        parts = request.path.strip("/").split("/")
        if parts == ["state"]:
            waiting = sum(node is None for _, node in self.pods.values())
            return web.json_response(
                {"sent": self.sent, "pending": self.pending, "bound": self.bound, "waiting": waiting, "pods": len(self.pods)}
            )
        if parts == ["play"]:
            if self.playing is not None:
                self.playing.cancel()
            self.playing = asyncio.create_task(self.play(float(request.query["rate"])))
            return web.json_response({})
        if request.method == "GET":
            return await (self.watch if "watch" in request.query else self.list)(request, parts[-1])
        body = await request.read()
        if parts[-1] == "binding":
            return self.bind(json.loads(body))
        return web.json_response({"metadata": {"name": "x", "resourceVersion": str(self.version)}}, status=201)

    async def list(self, request, resource):
        texts, start = [], int(request.query.get("continue") or 0)
        total = {"pods": len(self.pods), "nodes": self.nodes}.get(resource, 0)
        end = min(start + int(request.query.get("limit", 10**9)), total)
        if resource == "nodes":
            texts = [node_text(number, self.version) for number in range(start, end)]
        elif resource == "pods":
            texts = [pod_text(number, *self.about(number)) for number in itertools.islice(self.pods, start, end)]
        more = f',"continue":"{end}"' if end < total else ""
        text = f'{{"metadata":{{"resourceVersion":"{self.version}"{more}}},"items":[{",".join(texts)}]}}'
        return web.Response(text=text, content_type="application/json")

    def about(self, number):
        uid, node = self.pods[number]
        return uid, self.version, node

    async def watch(self, request, resource):
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        queue: asyncio.Queue = asyncio.Queue()
        watchers = self.watchers.setdefault(resource, set())
        watchers.add(queue)
        try:
            while True:
                try:
                    line = await asyncio.wait_for(queue.get(), 30)
                except TimeoutError:
                    line = f'{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{self.version}"}}}}}}'
                lines = [line]
                with contextlib.suppress(asyncio.QueueEmpty):
                    while len(lines) < 200:
                        lines.append(queue.get_nowait())
                await response.write(("\n".join(lines) + "\n").encode())
        finally:
            watchers.discard(queue)

    def bind(self, body):
        number = int(body["metadata"]["name"].removeprefix("pod-"))
        if number not in self.pods or self.pods[number][1] is not None:
            return web.json_response({"code": 409, "message": "gone or bound"}, status=409)
        self.pods[number] = (self.pods[number][0], int(body["target"]["name"].removeprefix("node-")))
        self.bound += 1
        self.tell_pod("MODIFIED", number)
        return web.json_response({}, status=201)

    # Events

    def tell(self, resource, event, text):
        self.sent += 1
        for queue in self.watchers[resource]:
            queue.put_nowait(f'{{"type":"{event}","object":{text}}}')

    def tell_pod(self, event, number):
        self.version += 1
        self.tell("pods", event, pod_text(number, *self.about(number)))

    def happen(self, turn: int) -> None:
        """One or two events."""
        if turn % 5 == 0:
            self.version += 1
            self.tell("nodes", "MODIFIED", node_text(turn // 5 % self.nodes, self.version))
        elif turn % 5 == 1:
            old = next(iter(self.pods))
            self.tell_pod("DELETED", old)
            del self.pods[old]
            new = next(self.fresh)
            waits = turn // 5 % 20 == 0
            self.pending += waits
            self.pods[new] = (new, None if waits else new * 7919 % self.nodes)
            self.tell_pod("ADDED", new)
        else:
            number = next(iter(self.pods)) + turn * 31 % (len(self.pods) - 1000)
            if number in self.pods:
                self.tell_pod("MODIFIED", number)

    async def play(self, rate: float) -> None:
        begun, first = time.monotonic(), self.sent
        for turn in itertools.count():
            self.happen(turn)
            ahead = (self.sent - first) / rate - (time.monotonic() - begun)
            if ahead > 0.01:
                await asyncio.sleep(ahead)
            elif turn % 20 == 0:
                await asyncio.sleep(0)


def main():
    port, nodes, pods = map(int, sys.argv[1:])
    server = Server(nodes, pods)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None)


if __name__ == "__main__":
    main()
