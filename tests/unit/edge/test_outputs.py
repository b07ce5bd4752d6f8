from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time

import pytest

from stowplan.edge import outputs
from stowplan.edge.aside import apart
from stowplan.edge.policies import lastgood
from stowplan.edge.policies.lastgood import LastGood
from unit.edge.policies.offering import document, keeper


def unwritable(path, **more):
    try:
        outputs.check(str(path), **more)
    except OSError as error:
        return error
    return None


def test_what_is_looked_at_is_left_as_it_is(tmp_path):
    there, link, pipe = tmp_path / "there", tmp_path / "link", tmp_path / "pipe"
    there.write_text("content")
    link.symlink_to(tmp_path / "later")
    os.mkfifo(pipe)
    for path in (there, link, pipe, tmp_path / "none", "/dev/null", "/dev/stdout"):
        outputs.check(str(path))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "pipe", "there"]
    assert there.read_text() == "content"
    assert link.is_symlink()


def test_what_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert isinstance(unwritable(tmp_path), IsADirectoryError)
    assert isinstance(unwritable(tmp_path / "none" / "file"), FileNotFoundError)
    assert isinstance(unwritable(tmp_path / "file" / "file"), NotADirectoryError)
    assert isinstance(unwritable("/proc/none"), OSError)
    assert unwritable(pipe, whole=True).strerror == "this is no file"


def test_a_file_system_that_hangs_is_an_error(tmp_path, monkeypatch):
    hanging = threading.Event()
    monkeypatch.setattr(outputs, "SECONDS", 0.2)
    monkeypatch.setattr(outputs, "_try", lambda *_: hanging.wait(30))
    assert isinstance(unwritable(tmp_path / "file"), TimeoutError)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(TimeoutError, match=r"nothing happens for 0\.2 s"):
        outputs.write(str(pipe), b"x")
    hanging.set()


def test_the_last_good_policy_on_a_disk_that_hangs(tmp_path, monkeypatch, caplog):
    hanging, path = threading.Event(), tmp_path / "kept"
    write = lastgood.write_whole
    monkeypatch.setattr(lastgood, "write_whole", lambda *given: hanging.wait(30) and write(*given))
    kept, _ = keeper(document())
    began = time.monotonic()
    last = LastGood(str(path))
    last.accepted(kept.in_force)
    assert time.monotonic() - began < 2
    assert caplog.records[-1].getMessage() == "the last good policy is not kept yet"
    hanging.set()
    assert last._aside.wait(5)
    assert path.read_text() == document()


def test_work_that_hangs_keeps_no_process():
    script = "import asyncio, time\nfrom stowplan.edge.aside import apart\n"
    script += "async def main():\n    task = asyncio.create_task(apart(time.sleep, 60))\n    await asyncio.sleep(0.1)\n"
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", f"{script}asyncio.run(main())"], check=True, timeout=30)
    assert time.monotonic() - began < 20


def test_work_apart_answers_and_raises():
    assert asyncio.run(apart(divmod, 7, 2)) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(apart(divmod, 7, 0))
