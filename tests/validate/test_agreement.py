"""`stowplan validate` and what loads a policy for explanations and simulations refuse the same texts, for the same reasons.

Only names that kube-scheduler ignores without a word are told apart: validation refuses them, the others warn. Texts are the
configurations of this folder and of the sample profiles, as they are and with lines removed, doubled, moved and changed.
"""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stowplan.edge.configurations import read_policy
from stowplan.policy.check import Options, check
from stowplan.policy.compile import PolicyError
from stowplan.text import Code, Severity, Source

FOLDER = Path(__file__).parent
PROFILES = FOLDER.parents[1] / "profiles"
WHOLE = {path.name: path.read_text() for path in (*sorted(FOLDER.glob("configs/*.yaml")), *sorted(PROFILES.glob("*.yaml")))}
PAGES = [
    text
    for page in sorted(FOLDER.glob("*.md"))
    for text in re.findall(r"^```yaml[^\n]*\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
]
SEEDS = [*WHOLE.values(), *PAGES]
WORDS = sorted({word for text in SEEDS for word in re.findall(r"[\w.*/-]+", text)} | {"0", "-1", "null", "true", '""', "{}", "[]"})
IGNORED = {Code.MISSPELT, Code.REMOVED_PLUGIN}
"""what names are that kube-scheduler ignores without a word"""


@st.composite
def changed(draw):
    lines = draw(st.sampled_from(SEEDS)).splitlines()
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(lines) - 1)))
        word = draw(st.sampled_from(WORDS))
        line = lines[at] if lines else ""
        lines[at : at + 1] = draw(
            st.sampled_from(
                (
                    [],
                    [line, line],
                    [f"  {line}"],
                    [line[2:]],
                    [re.sub(r"(?<=: )\S+$", lambda _, new=word: new, line)],
                    [re.sub(r"[A-Za-z]\w+(?=[:}\],]|$)", lambda _, new=word: new, line, count=1)],
                )
            )
        )
    return "\n".join(lines) + "\n"


def told(findings):
    return {(one.code, one.message, one.span and one.span.start) for one in findings}


def agree(folder, text):
    path = folder / "f.yaml"
    path.write_text(text)
    first = check(Source(str(path), text), Options()).examined[0].diagnostics
    validated = told(one for one in first if one.is_error)
    try:
        policy = read_policy(str(path))
    except PolicyError as error:
        loaded = told(one for one in error.diagnostics if one.is_error)
        assert validated, "only loading refuses"
        assert loaded <= validated or {code for code, _, _ in loaded} == {Code.UNREADABLE}
        return
    assert {code for code, _, _ in validated} <= IGNORED, "only validation refuses"
    assert validated <= told(one for one in policy.warnings if one.severity is Severity.WARNING)


@pytest.mark.parametrize("name", WHOLE)
def test_configurations(name, tmp_path):
    agree(tmp_path, WHOLE[name])


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=changed())
def test_changed_configurations(text, tmp_path_factory):
    agree(tmp_path_factory.getbasetemp(), text)
