"""An HTTP extender is asked, and what it says counts; and what PostFilter does beside preemption."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from controlplane.kubelet import Kubelet
from controlplane.objects import condition, node, nodes, pod
from controlplane.waiting import eventually
from e2e.running import policy
from e2e.test_preemption import priority

pytestmark = pytest.mark.slow


class Extender(BaseHTTPRequestHandler):
    """Lets pods on nodes with an odd number, and prefers the last of them; a pod named `nowhere` gets none.

    Of victims it leaves those on the last of the nodes.
    """

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, asked))
        names = asked.get("NodeNames")
        if self.path == "/preempt":
            answer = {"NodeNameToMetaVictims": last_victims(asked)}
        elif self.path == "/filter":
            odd = [] if asked["Pod"]["metadata"]["name"] == "nowhere" else [name for name in names if int(name[-1]) % 2]
            answer = {"NodeNames": odd, "FailedNodes": {name: "the extender says no" for name in names if name not in odd}}
        else:
            answer = [{"Host": name, "Score": 10 if name == max(names) else 0} for name in names]
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def last_victims(asked):
    """By identifiers, whichever way they were sent."""
    whole, identified = asked["NodeNameToVictims"], asked["NodeNameToMetaVictims"]
    node = max(whole or identified)
    pods = [{"UID": each["metadata"]["uid"]} for each in whole[node]["Pods"]] if whole else identified[node]["Pods"]
    return {node: {"Pods": pods, "NumPDBViolations": 0}}


@pytest.fixture
def extender():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Extender)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_extender_filters_and_scores(cluster, run, extender):
    client = cluster.admin
    client.create_all(nodes(6))
    url = f"http://127.0.0.1:{extender.server_port}"
    verbs = {"urlPrefix": url, "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 5, "nodeCacheCapable": True}
    run(policy(extenders=[verbs]))
    client.create(pod("web", schedulerName="stowplan"))
    assert eventually(lambda: client.get("pods", "web")["spec"].get("nodeName")) == "node-0005"
    client.create(pod("nowhere", schedulerName="stowplan"))
    said = eventually(lambda: condition(client.get("pods", "nowhere"), "PodScheduled").get("message"))
    assert said.startswith("0/6 nodes are available: 6 the extender says no.")
    assert {path for path, _ in extender.asked} == {"/filter", "/prioritize"}
    assert set(extender.asked[0][1]["NodeNames"]) == {f"node-{at:04}" for at in range(6)}


@pytest.mark.parametrize("knows", [True, False])
def test_an_extender_chooses_who_is_evicted(cluster, run, extender, knows):
    client = cluster.admin
    client.create_all([priority("urgent", 1000), node("a"), node("b"), node("c")])
    for at in "abc":
        client.create(pod(f"on-{at}", nodeName=at, requests={"cpu": "6"}))
    url = f"http://127.0.0.1:{extender.server_port}"
    with Kubelet(client, stop_seconds=1.0):
        eventually(lambda: all(client.get("pods", f"on-{at}")["status"].get("phase") == "Running" for at in "abc"))
        run(policy(extenders=[{"urlPrefix": url, "preemptVerb": "preempt", "nodeCacheCapable": knows}]))
        client.create(pod("comes", schedulerName="stowplan", priorityClassName="urgent", requests={"cpu": "6"}))
        assert eventually(lambda: client.get("pods", "comes")["spec"].get("nodeName")) == "c"
        assert [client.get("pods", f"on-{at}")["metadata"].get("deletionTimestamp") for at in "ab"] == [None, None]
    path, asked = extender.asked[0]
    assert path == "/preempt"
    assert set(asked["NodeNameToMetaVictims" if knows else "NodeNameToVictims"]) == {"a", "b", "c"}


def test_a_claim_that_no_node_reaches_is_given_up(cluster, run):
    """Its device is on a node that is not there any more; another node has one."""
    client = cluster.admin
    api = {"apiVersion": "resource.k8s.io/v1"}
    client.create_all([node("a"), {**api, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}])
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": "d.example.com", "nodeName": "a", "pool": pool, "devices": [{"name": "x"}]}
    client.create({**api, "kind": "ResourceSlice", "metadata": {"name": "on-a"}, "spec": devices})
    wanted = {
        "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1, "allocationMode": "ExactCount"}}]}
    }
    client.create({**api, "kind": "ResourceClaim", "metadata": {"name": "k"}, "spec": wanted})
    result = {"request": "r", "driver": "d.example.com", "pool": "gone", "device": "y"}
    gone = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}]}
    held = {"status": {"allocation": {"devices": {"results": [result]}, "nodeSelector": gone}}}
    client.patch("resourceclaims", "k", {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}})
    client.patch("resourceclaims", "k", held, subresource="status")
    run(policy())
    client.create(pod("uses", schedulerName="stowplan", resourceClaims=[{"name": "gpu", "resourceClaimName": "k"}]))
    assert eventually(lambda: client.get("pods", "uses")["spec"].get("nodeName")) == "a"
    assert client.get("resourceclaims", "k")["status"]["allocation"]["devices"]["results"][0]["device"] == "x"
