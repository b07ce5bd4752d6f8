"""The manifests in deploy/: what they grant against what is watched, and that they say what they should."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from stowplan.cli.run import command
from stowplan.edge.kube.kinds import RESOURCES
from stowplan.edge.load import load_policy
from stowplan.edge.policies.history import companion

DEPLOY = Path(__file__).parents[3] / "deploy"
LISTED = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())["resources"]
OBJECTS = [item for name in LISTED for item in yaml.safe_load_all((DEPLOY / name).read_text())]
ANYTHING = "*"


def objects(kind):
    return [item for item in OBJECTS if item["kind"] == kind]


def flags():
    """What the container's flags say."""
    (container,) = (item["spec"]["template"]["spec"]["containers"][0] for item in objects("Deployment"))
    return command.make_context("run", container["args"][1:]).params


def granted(kind):
    """(group, resource, verb) -> the names it is restricted to."""
    found = {}
    for rule in objects(kind)[0]["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    found[group, resource, verb] = rule.get("resourceNames")
    return found


def test_every_kind_that_is_watched_may_be_and_no_other():
    watched = set()
    for resource in RESOURCES:
        for path in resource.paths:
            parts = path.strip("/").split("/")
            watched |= {("" if parts[0] == "api" else parts[1], parts[-1], verb) for verb in ("list", "watch")}
    assert {grant for grant in granted("ClusterRole") if grant[2] in ("list", "watch")} == watched


def test_nothing_is_granted_wholesale():
    for kind in ("ClusterRole", "Role"):
        for grant in granted(kind):
            assert ANYTHING not in grant
        assert {resource for _, resource, _ in granted(kind)}.isdisjoint({"secrets", "pods/exec", "nodes/proxy"})
    assert "configmaps" not in {resource for _, resource, _ in granted("ClusterRole")}


def test_the_policys_configmaps_and_no_other_may_be_read_and_written():
    reference = flags()["configmap"]
    namespace = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())["namespace"]
    (generated,) = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())["configMapGenerator"]
    assert (reference.namespace, reference.name) == (namespace, generated["name"])
    mine, kept = [reference.name], [companion(reference).name]
    found = {verb: names for (_, resource, verb), names in granted("Role").items() if resource == "configmaps"}
    assert found == {"list": mine, "watch": mine, "create": None, "get": kept, "update": kept}


def test_the_lease_is_the_policys_and_no_other():
    policy = load_policy(DEPLOY / "policy.yaml")
    election = policy.configuration.leader_election
    namespace = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())["namespace"]
    assert election.leader_elect
    assert election.resource_namespace == namespace
    role = granted("Role")
    assert role["coordination.k8s.io", "leases", "create"] is None  # RBAC cannot restrict it: the name is not known yet
    leases = {(resource, verb): names for (_, resource, verb), names in role.items()}
    assert {verb: names for (resource, verb), names in leases.items() if resource == "leases" and verb != "create"} == {
        "get": [election.resource_name],
        "update": [election.resource_name],
    }


def test_it_leaves_kube_schedulers_pods_alone():
    (pods,) = (item["spec"]["template"]["spec"] for item in objects("Deployment"))
    profiles = load_policy(DEPLOY / "policy.yaml").profiles
    assert "default-scheduler" not in profiles
    assert pods["schedulerName"] not in profiles


def test_pods_are_confined():
    (pods,) = (item["spec"]["template"]["spec"] for item in objects("Deployment"))
    (container,) = pods["containers"]
    assert pods["securityContext"]["runAsNonRoot"]
    assert pods["securityContext"]["runAsUser"] > 0
    assert pods["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not pods.get("hostNetwork")


def test_replicas_and_the_budget_fit():
    (deployment,) = objects("Deployment")
    (budget,) = objects("PodDisruptionBudget")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["replicas"] == 2
    assert budget["spec"]["minAvailable"] == 1
    selectors = [deployment["spec"]["selector"], budget["spec"]["selector"]]
    selectors += [each["labelSelector"] for each in deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]]
    assert all(selector["matchLabels"].items() <= labels.items() for selector in selectors)


def test_flags_and_probes_are_what_the_command_has():
    (container,) = (item["spec"]["template"]["spec"]["containers"][0] for item in objects("Deployment"))
    assert container["args"][0] == command.name
    given = flags()
    (mount,) = container["volumeMounts"]
    assert given["last_good"] == f"{mount['mountPath']}/policy.yaml"
    assert given["policy"] is None
    assert given["port"] == container["ports"][0]["containerPort"]
    assert {container[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")} == {"/livez", "/readyz"}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_builds_it():
    built = subprocess.run(["kubectl", "kustomize", str(DEPLOY)], check=True, capture_output=True, text=True).stdout
    found = {(item["kind"], item["metadata"]["name"]): item for item in yaml.safe_load_all(built)}
    namespaced = {kind: item["metadata"].get("namespace") for (kind, _), item in found.items()}
    assert namespaced["Deployment"] == namespaced["ServiceAccount"] == namespaced["Role"] == "stowplan-system"
    assert found["ClusterRoleBinding", "stowplan"]["subjects"][0]["namespace"] == "stowplan-system"
    policy = found["ConfigMap", flags()["configmap"].name]["data"]["policy.yaml"]
    assert policy == (DEPLOY / "policy.yaml").read_text()
    assert not any("resourceVersion" in item["metadata"] for item in found.values())
