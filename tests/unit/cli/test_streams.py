"""What cannot be written gives one line and a code, and documents stay documents whatever the terminal's encoding."""

import json
import os
import subprocess
import sys

import pytest

SAMPLE = "profiles/sample/cluster.yaml"


def shell(words, environment=None):
    line = f'"$0" -c "from stowplan.cli.main import main; main()" {words}'
    merged = os.environ | (environment or {})
    return subprocess.run(["bash", "-c", line, sys.executable], capture_output=True, text=True, check=False, env=merged)


@pytest.mark.parametrize("words", ["version >/dev/full", f"simulate --cluster {SAMPLE} >/dev/full", "--help >/dev/full"])
def test_full_disk_is_one_line(words):
    done = shell(words)
    assert done.returncode == 3
    assert done.stderr == "Error: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("words", ["version >&-", "version 2>&-", "version <&-"])
def test_closed_streams_are_no_failure(words):
    done = shell(words)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_json_is_json_in_any_encoding(tmp_path):
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "shöp"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    (tmp_path / "dump.json").write_text(json.dumps({"kind": "List", "items": [node, pod]}))
    done = shell(f"simulate --cluster {tmp_path}/dump.json -o json", {"PYTHONIOENCODING": "ascii"})
    assert json.loads(done.stdout)["sequence"][0]["node"] == "shöp"


def test_empty_path_is_a_wrong_usage():
    done = shell("simulate --cluster ''")
    assert done.returncode == 2
    assert "an empty path" in done.stderr
