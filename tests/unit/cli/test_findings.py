"""Codes of what is wrong with a dump, and no noise beside errors."""

from __future__ import annotations

from stowplan.text import Code


def test_codes_of_inputs_that_cannot_be_read(stowplan, tmp_path):
    (tmp_path / "empty.json").write_text(" \n")
    (tmp_path / "folder").mkdir()
    missing = stowplan("simulate", "--cluster", tmp_path / "none.json")
    assert missing.code == 3
    assert missing.err.startswith(f"error[{Code.UNREADABLE}]: ")
    assert stowplan("simulate", "--cluster", tmp_path / "folder").err.startswith(f"error[{Code.UNREADABLE}]: ")
    assert stowplan("simulate", "--cluster", tmp_path / "empty.json").err.startswith(f"error[{Code.EMPTY}]: ")


def test_a_pod_on_a_missing_node_has_its_code(stowplan, dump, make):
    answer = stowplan("simulate", "--cluster", dump(make.node("n1"), make.pod("p", on="gone")))
    assert answer.err.startswith(f"warning[{Code.MISSING_NODE}]: pod web/p is bound to node gone")


def test_no_word_about_nodes_beside_errors(stowplan, tmp_path, dump, make):
    (tmp_path / "broken.json").write_text('{"kind": "Node", ')
    broken = stowplan("simulate", "--cluster", tmp_path / "broken.json")
    assert broken.code == 3
    assert "there are no nodes" not in broken.err
    assert "there are no nodes" in stowplan("simulate", "--cluster", dump(make.pod("p"))).err
