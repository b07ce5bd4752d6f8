"""The schemas are those of the code, say something of every field, and refuse nothing that the compiler accepts."""

import gzip
import json
import os
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from stowplan.policy.compile import examine
from stowplan.policy.releases import plugins_of
from stowplan.policy.schema_texts import FIELDS
from stowplan.policy.schemas import DRAFTS, KINDS, schema

ROOT = Path(__file__).parents[3]
PROFILES = ROOT / "profiles"
GOLDENS = ROOT / "tests" / "goldens" / "configs.jsonl.gz"
VALIDATORS = {"2020-12": jsonschema.Draft202012Validator, "07": jsonschema.Draft7Validator}
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
CASES = [(kind, draft) for kind in KINDS for draft in DRAFTS]


def file_of(kind, draft):
    return ROOT / "schemas" / (f"{kind}.json" if draft == "2020-12" else f"{kind}.draft-{draft}.json")


def validator(kind="KubeSchedulerConfiguration", draft="2020-12"):
    return VALIDATORS[draft](schema(kind, draft))


@pytest.mark.parametrize(("kind", "draft"), CASES)
def test_the_files_are_up_to_date(kind, draft):
    text = json.dumps(schema(kind, draft), indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("STOWPLAN_UPDATE_SPECS") == "1":
        file_of(kind, draft).write_text(text)
    assert file_of(kind, draft).read_text() == text


@pytest.mark.parametrize(("kind", "draft"), CASES)
def test_they_are_schemas(kind, draft):
    VALIDATORS[draft].check_schema(schema(kind, draft))


@pytest.mark.parametrize(("kind", "draft"), CASES)
def test_every_property_is_described(kind, draft):
    def bare(node, path):
        if isinstance(node, dict):
            for name, child in node.get("properties", {}).items():
                if path[-1:] not in (("if",), ("then",)) and name not in ("apiVersion", "shape"):
                    yield from () if child.get("description") or name == "kind" else [(*path, name)]
            for name, child in node.items():
                yield from bare(child, (*path, name))
        elif isinstance(node, list):
            for child in node:
                yield from bare(child, path)

    assert list(bare(schema(kind, draft), ())) == []


def test_no_text_is_left_over():
    made = json.dumps(schema("SchedulerPolicy"))
    for text in FIELDS.values():
        assert json.dumps(text if isinstance(text, str) else text[0]) in made


@pytest.mark.parametrize("draft", DRAFTS)
def test_what_kube_scheduler_accepts_is_valid(draft):
    checker, seen = validator(draft=draft), 0
    with gzip.open(GOLDENS, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            if "error" not in row["golden"] and row["case"].get("config"):
                seen += 1
                assert list(checker.iter_errors(row["case"]["config"])) == []
    assert seen > 40


@pytest.mark.parametrize(
    "body",
    [
        {"paralellism": 1},
        {"parallelism": 0},
        {"parallelism": "16"},
        {"percentageOfNodesToScore": 101},
        {"leaderElection": {"leaseDuration": "1 minute"}},
        {"profiles": [{"plugins": {"scores": {}}}]},
        {"profiles": [{"plugins": {"score": {"enabled": ["NodeResourcesFit"]}}}]},
        {"profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Most"}}}]}]},
        {"profiles": [{"pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}]}]},
        {"profiles": [{"rules": []}]},
        {"extenders": [{"enableHttps": True}]},
    ],
)
def test_both_refuse(body):
    assert not validator().is_valid(HEAD | body)
    assert any(finding.is_error for finding in examine(HEAD | body, plugins_of(37)).diagnostics)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"profiles": None, "leaderElection": {"leaderElect": None, "resourceLock": ""}},
        {"clientConnection": {"qps": 0, "burst": 0}},
        {"profiles": [{"pluginConfig": [{"name": "Other", "args": [1]}, {"name": "NodeName"}]}]},
        {"profiles": [{"plugins": {"score": {"disabled": [{"name": "*"}, {"name": "Foreign"}]}}}]},
        {"profiles": [{"pluginConfig": [{"name": "PodTopologySpread", "args": {"defaultingType": ""}}]}]},
    ],
)
def test_both_accept(body):
    assert list(validator().iter_errors(HEAD | body)) == []
    assert not any(finding.is_error for finding in examine(HEAD | body, plugins_of(37)).diagnostics)


def test_only_a_policy_has_rules():
    policy = {"apiVersion": "stowplan.io/v1alpha1", "kind": "SchedulerPolicy"}
    body = {"profiles": [{"rules": [{"name": "a", "filter": "true"}], "variables": [{"name": "b", "expression": "1"}]}]}
    assert validator("SchedulerPolicy").is_valid(policy | body)
    assert not validator("SchedulerPolicy").is_valid(policy | {"profiles": [{"rules": [{"nome": "a"}]}]})


SAMPLES = [path for path in sorted(PROFILES.glob("*.yaml")) if not path.name.endswith(".stowtest.yaml")]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_sample_profiles_name_their_schema_and_keep_it(path):
    content = path.read_text()
    named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", content)
    assert named
    checker = jsonschema.Draft7Validator(json.loads((path.parent / named[1]).read_text()))
    assert list(checker.iter_errors(yaml.safe_load(content))) == []
