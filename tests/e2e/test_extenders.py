"""An HTTP extender is asked, and what it says counts."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from controlplane.objects import condition, nodes, pod
from controlplane.waiting import eventually
from e2e.running import policy

pytestmark = pytest.mark.slow


class Extender(BaseHTTPRequestHandler):
    """Lets pods on nodes with an odd number, and prefers the last of them; a pod named `nowhere` gets none."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, asked))
        names = asked["NodeNames"]
        if self.path == "/filter":
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
