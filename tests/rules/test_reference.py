"""The reference page knows every word that a policy or a test of one may use, and says of rules what the code says."""

import re
from pathlib import Path

import pytest

from stowplan.cli.main import run
from stowplan.edge import stowtest
from stowplan.edge.notation import read_notation
from stowplan.edge.notation.words import KINDS
from stowplan.plugins.cel_rule.functions import FUNCTIONS
from stowplan.plugins.cel_rule.types import DOMAIN, node_type, object_type, pod_type
from stowplan.policy.schema_texts import FIELDS
from stowplan.profile import Rollout
from stowplan.profile.decode import fields_of
from stowplan.profile.rules import MODES, NORMALIZE, ON_ERROR, Rule

PAGE = (Path(__file__).parents[2] / "engine" / "docs" / "policy.md").read_text()
POD, NODE = set(pod_type().fields) - set(object_type("Pod").fields), set(node_type().fields) - set(object_type("Node").fields)


def rows(header):
    """First cell to the others of the table with this header."""
    lines = PAGE[PAGE.index(f"| {header} |") :].split("\n\n")[0].splitlines()[2:]
    cells = [re.split(r"(?<!\\)\|", line.strip("|")) for line in lines]
    return {first.strip().strip("`"): " ".join(rest).strip() for first, *rest in cells}


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("field", fields_of(Rule)),
        ("field of `rollout`", fields_of(Rollout)),
        ("top-level key", fields_of(stowtest.Suite)),
        ("key of a test", fields_of(stowtest.Test)),
        ("key of `expect`", fields_of(stowtest.Expectation)),
        ("member of `pod`", POD),
        ("member of `node`", NODE),
        ("member of a domain", DOMAIN.fields),
        ("normalize", NORMALIZE),
        *((f"word of a `{kind}`", [*words.words, *words.flags]) for kind, words in KINDS.items()),
    ],
)
def test_the_page_has_every_word_and_no_other(header, words):
    assert set(rows(header)) == set(words)


def test_the_page_says_of_rules_what_the_schemas_say():
    for name, text in rows("field").items():
        described = FIELDS[f"Rule.{name}"]
        assert text.startswith(described if isinstance(described, str) else described[0])


def test_the_page_says_of_a_rollout_what_the_schemas_say():
    for name, text in rows("field of `rollout`").items():
        described = FIELDS[f"Rollout.{name}"]
        assert text.startswith(described if isinstance(described, str) else described[0])


def test_the_page_has_every_value_and_function():
    table = rows("field")
    for name, values in (("mode", MODES), ("normalize", NORMALIZE), ("onError", {v for vs in ON_ERROR.values() for v in vs})):
        assert all(f"`{value}`" in table[name] for value in values)
    assert set(rows("function").values()) == {function.doc for function in FUNCTIONS}


def test_the_examples_of_the_page_work(tmp_path, monkeypatch, capsys):
    policy, suite = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "policy.yaml").write_text(policy)
    (tmp_path / "some.stowtest.yaml").write_text(suite)
    monkeypatch.chdir(tmp_path)
    assert run(["validate", "--strict", "policy.yaml"]) == 0
    assert run(["test", "some.stowtest.yaml"]) == 0
    assert "1 of 1 tests passed" in capsys.readouterr().out


@pytest.mark.parametrize("kind", KINDS)
def test_examples_of_words_are_words(kind):
    for text in rows(f"word of a `{kind}`").values():
        for example in re.findall(r"`([a-z]+=[^`]*)`", text):
            if example.partition("=")[0] in KINDS[kind].words and "key" not in example:
                read_notation(f"{kind} x {example}".replace("\\|", "|"))
