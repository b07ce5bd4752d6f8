"""Every answer that a spec page states is the one that stowplan gives. `STOWPLAN_UPDATE_SPECS=1` rewrites the pages."""

import os
from pathlib import Path

import pytest

from spec.pages import answers, rewritten

FOLDER = Path(__file__).parent
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page):
    text = page.read_text(encoding="utf-8")
    if os.environ.get("STOWPLAN_UPDATE_SPECS") == "1":
        page.write_text(rewritten(page, text), encoding="utf-8")
        return
    wrong = []
    checked = 0
    for block, answer in answers(page, text):
        checked += 1
        if answer != block.text:
            wrong.append(f"{page.name}:{block.line} {' '.join(block.words)}\nstated:\n{block.text}answered:\n{answer}")
    assert checked
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_there_are_pages():
    assert PAGES
