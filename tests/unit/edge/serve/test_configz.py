from __future__ import annotations

import json

from stowplan.edge.load import load_policy
from stowplan.edge.serve.configz import InForce, configz, policy_hash

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def shown(policy, **more):
    page = configz(lambda: InForce(policy, **more))
    assert page.private
    return json.loads(page.answer(None).body)


def test_shows_what_was_written_and_what_runs():
    score = {"disabled": [{"name": "ImageLocality"}], "enabled": [{"name": "NodeResourcesFit", "weight": 5}]}
    document = HEAD | {"profiles": [{"schedulerName": "a", "plugins": {"score": score}}]}
    told = shown(load_policy(document), generation=3, source="scheduler.yaml")
    assert told["componentconfig"] == document
    assert (told["policy"]["generation"], told["policy"]["source"]) == (3, "scheduler.yaml")
    profile = told["policy"]["profiles"]["a"]
    assert "ImageLocality" not in profile["plugins"]["score"]
    assert profile["weights"]["NodeResourcesFit"] == 5


def test_defaults_are_a_document_too():
    told = shown(load_policy())
    assert told["componentconfig"]["kind"] == "KubeSchedulerConfiguration"
    assert list(told["policy"]["profiles"]) == ["default-scheduler"]


def test_the_hash_is_of_the_content(tmp_path):
    def of(text):
        path = tmp_path / "policy.yaml"
        path.write_text(text)
        return policy_hash(load_policy(path))

    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    plain = of(head + "profiles: [{schedulerName: a}]\n")
    assert of("# a comment\n" + head + 'profiles:\n- "schedulerName": a\n') == plain
    assert of(head + "profiles: [{schedulerName: b}]\n") != plain
    assert len(plain) == 12


def test_private_keys_of_extenders_are_not_shown():
    tls = {"certData": "Y2VydA==", "keyData": "c2VjcmV0"}
    extender = {"urlPrefix": "https://a.example", "filterVerb": "filter", "enableHTTPS": True, "tlsConfig": tls}
    policy = load_policy(HEAD | {"extenders": [extender]})
    page = configz(lambda: InForce(policy)).answer(None).body.decode()
    assert "c2VjcmV0" not in page
    assert "Y2VydA==" in page
