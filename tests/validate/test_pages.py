"""The pages of this folder: a configuration, then what `stowplan validate` prints about it and the exit code.

A block ```yaml --hints``` gives the options after its language. `STOWPLAN_UPDATE_SPECS=1` writes the answers anew.
"""

import os
import re
import shlex
from pathlib import Path

import pytest

from stowplan.cli.main import run

PAGES = sorted(Path(__file__).parent.glob("*.md"))
CASE = re.compile(r"^```yaml(?P<options>[^\n]*)\n(?P<text>.*?)^```\n\n```text\n(?P<answer>.*?)^```$", re.MULTILINE | re.DOTALL)


def answer(capsys, options, text):
    Path("config.yaml").write_text(text.replace("→", "\t"))
    code = run(["validate", *shlex.split(options), "config.yaml"])
    captured = capsys.readouterr()
    return f"{captured.out}{captured.err}exit code {code}\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    content = page.read_text()
    cases = list(CASE.finditer(content))
    assert cases
    assert len(cases) == content.count("```yaml")
    found = [answer(capsys, case["options"], case["text"]) for case in cases]
    if os.environ.get("STOWPLAN_UPDATE_SPECS") == "1":
        for case, text in reversed(list(zip(cases, found, strict=True))):
            content = content[: case.start("answer")] + text + content[case.end("answer") :]
        page.write_text(content)
        return
    for case, text in zip(cases, found, strict=True):
        assert text == case["answer"], f"{page.name}: {case['text']}"
