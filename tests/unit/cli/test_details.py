"""What explanations say beneath the reasons: which domain is to blame, which pods repel, and why."""

from __future__ import annotations

import json

import pytest

from stowplan.edge.notation import read_notation

TAINT = "node-role.kubernetes.io/control-plane:NoSchedule"


@pytest.fixture
def explained(stowplan, dump):
    """The lines about one plugin in the explanation of a pod."""

    def lines(text, pod, *options):
        answer = stowplan("explain", "--cluster", dump(*read_notation(text)), f"default/{pod}", *options)
        assert answer.code in (0, 1), answer.err
        marks = ("  PodTopologySpread: ", "  InterPodAffinity: ", "  nominated pods: ")
        return [line.partition(": ")[2] for line in answer.out.splitlines() if line.startswith(marks)]

    return lines


REPLICAS = f"""
node cp cpu=4 mem=8Gi taint={TAINT}
node w{{1..3}} cpu=4 mem=8Gi
pod web-1 cpu=1 labels=app=web on=w1
pod web-2 cpu=1 labels=app=web on=w2
pod web-3 cpu=1 labels=app=web on=w3
"""


def test_a_tainted_node_holds_the_minimum_and_the_remedy_is_named(explained):
    found = explained(REPLICAS + "pod web-4 cpu=1 labels=app=web spread=host:max=1", "web-4")
    assert found == [
        "hostname, maxSkew 1: with this pod w1 (1), w2 (1), w3 (1) would be too far above the minimum of 0",
        "hostname cp holds the minimum at 0: its node had untolerated taint(s); nodeTaintsPolicy: Honor would leave it out",
    ]
    assert explained(REPLICAS + "pod web-4 cpu=1 labels=app=web spread=host:max=1;taints=Honor", "web-4") == []


def test_a_tainted_node_that_is_tolerated_gets_no_remedy(explained):
    tolerant = "pod web-4 cpu=1 labels=app=web spread=host:max=1 toleration=*"
    assert explained(REPLICAS + tolerant, "web-4")[1] == "hostname cp holds the minimum at 0: it can take the pod"


def test_min_domains_is_named_as_the_cause(explained):
    text = """
    node a1 cpu=4 mem=8Gi zone=a
    node b1 cpu=4 mem=8Gi zone=b
    node c1 cpu=4 mem=8Gi zone=c taint=outage:NoExecute
    node d1 cpu=4 mem=8Gi zone=d labels=old=yes
    pod web-{1..3} labels=app=web on=a1
    pod web-{4..6} labels=app=web on=b1
    pod web-7 labels=app=web require=old!=yes spread=zone:max=1;min=3;taints=Honor
    """
    assert explained(text, "web-7") == [
        "zone, maxSkew 1: with this pod a (3), b (3) would be too far above the minimum of 0",
        "2 domains (a, b) < minDomains 3, so the minimum counts as 0",
        "zone c is left out: nodeTaintsPolicy: Honor",
        "zone d is left out: nodeAffinityPolicy: Honor",
    ]


ZONES = """
node a{1..3} cpu=1 mem=8Gi zone=a
node b{1..3} cpu=8 mem=8Gi zone=b
node c{1..3} cpu=8 mem=8Gi zone=c
pod web-1 labels=app=web on=b1
pod web-2 labels=app=web on=c1
"""


def test_a_full_zone_holds_the_minimum(explained):
    found = explained(ZONES + "pod web-3 cpu=2 labels=app=web spread=zone:max=1", "web-3")
    assert found[1:] == ["zone a holds the minimum at 0: Insufficient cpu on its 3 nodes"]
    mixed = ZONES.replace("node a{1..3} cpu=1", f"node a1 cpu=9 mem=8Gi zone=a taint={TAINT}\nnode a{{2..3}} cpu=1")
    found = explained(mixed + "pod web-3 cpu=2 labels=app=web spread=zone:max=1", "web-3")
    assert found[1:] == ["zone a holds the minimum at 0: 1 node had untolerated taint(s), 2 Insufficient cpu"]


def test_two_constraints_block_each_other(explained):
    both = "spread=zone:max=1 spread=host:max=1"
    text = """
    node a1 cpu=4 mem=8Gi zone=a
    node b1 cpu=4 mem=8Gi zone=b
    node b2 cpu=4 mem=8Gi zone=b
    pod web-1 labels=app=web on=a1
    pod web-2 labels=app=web on=a1
    pod web-3 labels=app=web on=b1
    pod web-4 labels=app=web on=b1
    pod web-5 labels=app=web on=b1
    """
    found = explained(text + f"pod p labels=app=web {both}", "p")
    assert "zone a holds the minimum at 2: refused for another of its constraints" in found
    assert "hostname b2 holds the minimum at 0: refused for another of its constraints" in found


def test_a_selector_that_misses_the_pod_itself_is_pointed_out(explained):
    found = explained(ZONES + "pod web-9 labels=app=web on=b2\npod p cpu=2 labels=app=else spread=zone:max=1;match=app=web", "p")
    assert found[0] == "zone, maxSkew 1: b (2) too far above the minimum of 0 (the selector does not match the pod itself)"


def test_nodes_without_the_label_are_counted(explained):
    found = explained("node n{1..2} cpu=4 mem=8Gi\npod p labels=app=web spread=zone:max=1", "p")
    assert found == ["2 of these nodes lack the label topology.kubernetes.io/zone"]


def test_domains_in_one_situation_are_named_together_and_many_are_counted(explained):
    text = """
    node f{1..9} cpu=1 mem=8Gi
    node w cpu=4 mem=8Gi
    pod web labels=app=web on=w
    pod p cpu=2 labels=app=web spread=host:max=1
    """
    assert explained(text, "p")[1:] == ["hostname f1, f2, f3 and 6 more hold the minimum at 0: Insufficient cpu"]


def test_length_is_bounded_and_wide_shows_more(explained):
    keys = [f"example.com/k{i}" for i in range(8)]
    full, empty = (" ".join(f"label.{key}={value}" for key in keys) for value in ("full", "empty"))
    text = f"""
    node w cpu=4 mem=8Gi {full}
    node x cpu=1 mem=8Gi {empty}
    pod r labels=app=web on=w
    pod p cpu=2 labels=app=web {" ".join(f"spread={key}:max=1" for key in keys)}
    """
    short = explained(text, "p")
    assert short[1] == "k0 empty holds the minimum at 0: Insufficient cpu"
    assert short[5:] == ["... and 11 more (-o wide)"]
    assert len(explained(text, "p", "-o", "wide")) == 16


def test_pods_that_repel_are_named_with_node_and_domain(explained):
    text = """
    node a{1..2} cpu=4 mem=8Gi zone=a
    node b1 cpu=4 mem=8Gi zone=b
    pod db labels=app=db apart=zone:match=app=web on=a2
    pod web-{1..5} labels=app=web on=b1
    pod web-9 labels=app=web apart=host:match=app=web
    """
    named = "default/web-1 (b1), default/web-2 (b1), default/web-3 (b1)"
    assert explained(text, "web-9") == [
        f"the pod's anti-affinity over hostname to app in (web) in namespace default meets {named} and 2 more",
        "anti-affinity over zone to app in (web) keeps it away from default/db (a2, zone a)",
    ]


def test_the_missing_match_is_named(explained):
    nodes = "node a1 cpu=4 mem=8Gi zone=a\nnode b1 cpu=1 mem=8Gi zone=b\nnode n cpu=4 mem=8Gi\n"
    wants = "pod p cpu=2 labels=app=web near=zone:match=app=cache"
    cache = "app in (cache) in namespace default"
    assert explained(nodes + wants, "p") == [
        "1 of these nodes lacks the label topology.kubernetes.io/zone",
        f"no pod with {cache} runs on a node with topology.kubernetes.io/zone, and the pod is none itself",
    ]
    elsewhere = nodes + "pod c{1..2} labels=app=cache on=b1\npod other/c labels=app=cache on=a1\n" + wants
    assert explained(elsewhere, "p")[1:] == [f"pods with {cache} are in zone b (2) only"]


def test_nominated_pods_are_named(explained):
    text = """
    node n cpu=2 mem=8Gi
    pod first cpu=2 priority=5 nominated=n
    pod p cpu=1
    """
    assert explained(text, "p") == ["n would do, but default/first, nominated to it, counts as running there"]


def test_documents_carry_the_details(stowplan, dump):
    cluster = dump(*read_notation(REPLICAS + "pod web-4 cpu=1 labels=app=web spread=host:max=1\npod q cpu=1"))
    content = json.loads(stowplan("explain", "--cluster", cluster, "web-4", "q", "-o", "json").out)
    blamed, plain = content["pods"]
    assert blamed["details"]["PodTopologySpread"][1].startswith("hostname cp holds the minimum at 0")
    assert "details" not in plain
