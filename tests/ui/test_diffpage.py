"""The page of `stowplan diff`: what stands in it, and how it behaves in a headless Chromium without a network."""

from __future__ import annotations

import html.parser
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from stowplan import explain, load_cluster, load_policy
from stowplan.edge.notation import read_notation
from stowplan.loop.compare import Wanted, compare
from stowplan.loop.fates import Change
from stowplan.text import Source
from stowplan.ui.diffpage import diff_page, embedded

FULL_FIRST = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}],
            "plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}},
        }
    ],
}
NODES = 200
CLUSTER = "\n".join(
    [
        "node n{1..150} cpu=8 mem=32Gi zone=a",
        "node n{151..190} cpu=16 mem=64Gi zone=b",
        "node n{191..200} cpu=16 mem=64Gi zone=c taint=team=x:NoSchedule",
        *(f"pod w{i} cpu={1 + i % 5}00m mem={1 + i % 7}Gi on=n{1 + 7 * i % 200} labels=app=w{i % 10}" for i in range(300)),
        "pod p{1..100} cpu=700m mem=1Gi",
    ]
)
HOSTILE = '</script><script>document.title = "broken out"</script><!--<script>'


def cluster():
    return load_cluster(read_notation(Source("cluster", CLUSTER)))


def compared(store):
    return compare(load_policy(), load_policy(FULL_FIRST), store, Wanted(running=50, sheets=True))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    comparison = replace(compared(cluster()), titles=("kube-scheduler's defaults", HOSTILE))
    path = tmp_path_factory.mktemp("page") / "diff.html"
    path.write_text(diff_page(comparison), encoding="utf-8")
    return path


def data_of(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


class Elements(html.parser.HTMLParser):
    """Tags of a page with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


def test_nothing_is_loaded_and_no_data_breaks_out(page):
    text = page.read_text(encoding="utf-8")
    tags = Elements(text).tags
    assert [name for name, _ in tags].count("script") == 2
    assert not [tag for tag in tags if {"src", "href", "onload", "onclick", "style"} & set(tag[1])]
    assert not re.search(r"https?://", text)
    assert "@import" not in text
    assert "url(" not in text
    assert data_of(text)["new"]["policy"] == HOSTILE


@pytest.mark.parametrize("text", [HOSTILE, "\u2028\u2029", "<!-- & ]]>", '"\\', "\x00\ud7ff"])
def test_data_is_read_as_it_was_written(text):
    written = embedded({"text": text})
    assert json.loads(written) == {"text": text}
    assert not set("<>&\u2028\u2029") & set(written)


def test_the_page_of_200_nodes_and_100_pods_is_small(page):
    assert page.stat().st_size < 5_000_000
    data = data_of(page.read_text(encoding="utf-8"))
    assert len(data["nodes"]) == NODES
    assert len(data["pods"]) == len(data["tables"]) == 100


def test_many_nodes_bound_the_tables_and_a_note_says_so():
    text = "node n{1..5000} cpu=8 mem=32Gi\npod w{1..9} cpu=1 mem=1Gi on=n1\npod p{1..9} cpu=1"
    comparison = compared(load_cluster(read_notation(Source("cluster", text))))
    differing = comparison.changes.total() - comparison.changes[Change.SAME]
    tables = data_of(diff_page(comparison))["tables"]
    assert 0 < len(tables) < differing
    assert f"there is a table of nodes for {len(tables)} of the {differing} pods that differ" in comparison.notes


def test_tables_are_what_explain_says_of_the_first_pod(page):
    """The first pod in the queue is judged on the cluster of the dump."""
    data = data_of(page.read_text(encoding="utf-8"))
    for side, policy in (("old", None), ("new", FULL_FIRST)):
        told = explain(load_policy(policy), cluster(), ["default/p1"]).to_json()["pods"][0]
        table = data["tables"]["default/p1"][side]
        names = [node["name"] for node in data["nodes"]]
        totals = {name: total for name, total in zip(names, table["totals"], strict=True) if total is not None}
        assert totals == told["totals"]
        assert [plugin["name"] for plugin in table["plugins"]] == list(told["scores"])
        for plugin in table["plugins"]:
            for kind in ("raw", "normalized"):
                numbers = {name: n for name, n in zip(names, plugin[kind], strict=True) if n is not None}
                assert numbers == told["scores"][plugin["name"]][kind]
        refused = {name: table["refusals"][place] for name, place in zip(names, table["refused"], strict=True) if place >= 0}
        assert refused == {
            name: {"plugin": status["plugin"], "reasons": status["reasons"]} for name, status in told["infeasible"].items()
        }


def test_the_cluster_is_as_before():
    store = cluster()
    before = explain(load_policy(), store).to_json()
    compared(store)
    assert explain(load_policy(), store).to_json() == before
    assert [list(seats) for seats in store.seats] == [list(seats) for seats in cluster().seats]


# In a browser


def chromium() -> str | None:
    """Path of a Chromium: that of CHROMIUM, or one on the path."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = chromium()
    if path is None:
        pytest.skip("no Chromium on the path, and CHROMIUM does not name one")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def tab(browser, page):
    """The page, opened from its file without a network; fails if the console hears of anything wrong or a request is made."""
    context = browser.new_context(offline=True, viewport={"width": 1400, "height": 900})
    opened = context.new_page()
    heard, asked = [], []
    opened.on("console", lambda message: heard.append(message.text))
    opened.on("pageerror", lambda error: heard.append(str(error)))
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(Path(page).as_uri())
    yield opened
    assert heard == []
    assert asked == [Path(page).as_uri()]
    context.close()


def column(tab, place, table="#matrix"):
    return tab.eval_on_selector_all(f"{table} tbody tr > :nth-child({place})", "cells => cells.map(cell => cell.textContent)")


def heads(tab):
    return tab.eval_on_selector_all("#matrix thead tr:last-child th", "cells => cells.map(cell => cell.textContent)")


def test_it_opens_and_nothing_breaks_out(tab):
    assert tab.title() == "stowplan diff"
    assert HOSTILE in tab.inner_text("#policies")
    assert "100 placed elsewhere" in tab.inner_text("#counts")
    assert "default/p1" in tab.inner_text("#detail h2")
    assert tab.locator("#matrix tbody tr").count() == NODES


@pytest.mark.slow
def test_every_column_sorts_both_ways(tab):
    count = len(heads(tab))
    assert count >= 4 + 2 * 5
    for place in range(1, count + 1):
        button = tab.locator(f"#matrix thead tr:last-child th:nth-child({place}) button")
        button.click()
        first = column(tab, place)
        before = tab.get_attribute(f"#matrix thead tr:last-child th:nth-child({place})", "aria-sort")
        button.click()
        after = tab.get_attribute(f"#matrix thead tr:last-child th:nth-child({place})", "aria-sort")
        assert {before, after} == {"ascending", "descending"}
        rising, falling = (first, column(tab, place)) if before == "ascending" else (column(tab, place), first)
        for cells, sign in ((rising, 1), (falling, -1)):
            numbers = [float(cell) for cell in cells if re.fullmatch(r"-?[\d.]+", cell)]
            assert numbers == sorted(numbers, key=lambda number: sign * number)
        assert sorted(rising) == sorted(falling)
        assert tab.locator("#matrix thead th[aria-sort]").count() == 1


def test_a_click_on_a_head_changes_the_order(tab):
    names = column(tab, 1)
    tab.locator("#matrix thead tr:last-child th:first-child button").click()
    by_name = column(tab, 1)
    assert names != by_name
    assert [re.match(r"n\d+", name)[0] for name in by_name] == [f"n{i}" for i in range(1, NODES + 1)]


def test_refused_nodes_come_last_with_their_reason(tab):
    reasons = column(tab, len(heads(tab)))
    assert reasons[-10:] == ["TaintToleration: node(s) had untolerated taint(s)"] * 10
    assert not any(reasons[:-10])
    assert column(tab, 3)[-10:] == ["refused"] * 10


def test_text_filters_nodes(tab):
    tab.fill("#matrix input[type=search]", "untolerated c")
    assert tab.locator("#matrix tbody tr").count() == 10
    assert tab.inner_text("#matrix [role=status]") == "10 of 200 shown"
    tab.fill("#matrix input[type=search]", "n200")
    assert [name[:4] for name in column(tab, 1)] == ["n200"]


def test_numbers_and_sides_can_be_chosen(tab):
    """The same node and plugin as raw, normalised and weighted number, side by side and alone."""
    data = data_of(tab.content())
    table = data["tables"]["default/p1"]["new"]
    index = [node["name"] for node in data["nodes"]].index("n7")
    plugin = next(plugin for plugin in table["plugins"] if plugin["name"] == "TaintToleration")
    wide = len(heads(tab))
    tab.select_option("#pick-side", "new")
    assert len(heads(tab)) == 2 + (wide - 2) // 2
    groups = tab.eval_on_selector_all("#matrix thead tr:first-child th", "cells => cells.map(cell => cell.textContent)")
    place = 3 + next(i for i, group in enumerate(groups) if group.startswith("TaintToleration"))
    expected = {"raw": plugin["raw"][index], "normalized": plugin["normalized"][index]}
    expected["weighted"] = plugin["weight"] * expected["normalized"]
    assert len(set(expected.values())) == 3
    for kind, number in expected.items():
        tab.select_option("#pick-number", kind)
        cell = dict(zip(column(tab, 1), column(tab, place), strict=True))["n7"]
        assert float(cell) == number


def test_pods_are_chosen_by_keyboard(tab):
    tab.fill("#view-pods input[type=search]", "p42")
    button = tab.locator("#view-pods tbody button", has_text="default/p42")
    button.focus()
    tab.keyboard.press("Enter")
    assert tab.inner_text("#detail h2") == "default/p42"
    assert tab.evaluate("location.hash") == "#default%2Fp42"


def test_views_change_by_arrow_keys(tab):
    tab.focus("#tab-pods")
    tab.keyboard.press("ArrowRight")
    assert tab.is_visible("#view-running")
    assert tab.is_hidden("#view-pods")
    tab.keyboard.press("ArrowRight")
    assert tab.is_visible("#view-usage")
    assert tab.evaluate("document.activeElement.id") == "tab-usage"
    assert tab.locator("#view-usage table[aria-label=nodes] tbody tr").count() == NODES
    assert tab.locator("#view-usage table[aria-label=zones] tbody tr").count() == 3
    zones = "#view-usage table[aria-label=zones]"
    assert re.fullmatch(r"\d+%", column(tab, 2, zones)[0])
    tab.select_option("#pick-use", "amounts")
    assert column(tab, 2, zones)[0].endswith(" of 1200")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(tab, scheme):
    """WCAG's contrast of 4.5 for text, in both colour schemes."""
    tab.emulate_media(color_scheme=scheme)
    contrast = """selector => {
        const parts = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
        const light = text => parts(text).map(n => n / 255).map(n => n <= 0.03928 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4)
            .reduce((sum, n, i) => sum + n * [0.2126, 0.7152, 0.0722][i], 0);
        const ground = e => { const c = getComputedStyle(e).backgroundColor;
            return c === "rgba(0, 0, 0, 0)" && e.parentElement ? ground(e.parentElement) : c; };
        const element = document.querySelector(selector);
        const [a, b] = [getComputedStyle(element).color, ground(element)].map(light).sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
    }"""
    for selector in ("body", ".count", ".badge.old", ".badge.new", "td.why", "thead th button", "td.changed"):
        assert tab.evaluate(contrast, selector) >= 4.5, selector
