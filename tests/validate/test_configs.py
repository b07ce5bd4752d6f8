"""Configurations as people have them, against what kube-scheduler 1.37.2 makes of each, and what a good validator says.

`configs/verdicts.json` has for each file whether it is accepted, the effective plugins, and findings by line.
"""

import json
from pathlib import Path

import pytest

from stowplan.cli.validate_effective import as_json
from stowplan.policy.check import Options, check
from stowplan.text import Source

FOLDER = Path(__file__).parent / "configs"
VERDICTS = json.loads((FOLDER / "verdicts.json").read_text())
ELSEWHERE = {("109-kustomize-metadata-name.yaml", 4): 3}
"""lines where the finding is shown at the key instead"""


def checked(name, **options):
    return check(Source(name, (FOLDER / name).read_text()), Options(**options))


def refused(found):
    return any(finding.is_error for finding in found.diagnostics)


@pytest.mark.parametrize("name", VERDICTS)
def test_compat_decides_as_kube_scheduler(name):
    verdict = VERDICTS[name]
    assert refused(checked(name, compat=True)) is not verdict.get("asItIs", verdict)["accepted"]


@pytest.mark.parametrize("name", VERDICTS)
def test_the_configuration_inside_is_accepted_as_by_kube_scheduler(name):
    verdict = VERDICTS[name]
    foreign = verdict.get("unknownPluginsLeftOut") if not any(f["level"] == "error" for f in verdict["findings"]) else None
    assert refused(checked(name)) is not (foreign or verdict)["accepted"]


@pytest.mark.parametrize("name", VERDICTS)
def test_the_effective_plugins(name):
    verdict = VERDICTS[name]
    expected = verdict["effective"] or verdict.get("unknownPluginsLeftOut", {}).get("effective")
    if expected is None:
        pytest.skip("refused")
    assert as_json(checked(name).examined[-1].profiles) == expected


@pytest.mark.parametrize("name", VERDICTS)
def test_findings_are_at_their_lines(name):
    found = {(finding.span.line, finding.severity.value) for finding in checked(name).diagnostics if finding.span}
    wanted = {(ELSEWHERE.get((name, f["line"]), f["line"]), f["level"]) for f in VERDICTS[name]["findings"]}
    assert wanted <= found
