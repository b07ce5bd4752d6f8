"""Decision records on their way into a file that hangs, is full, is a pipe, or is not there any more."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import threading
import time
from itertools import pairwise

import pytest

from stowplan.edge import diary as diaries
from stowplan.edge.diary import Diary
from stowplan.loop.records import Record, Records


def record(number):
    return Record(f"web/p{number}", f"u{number}", 1000.0, "p", 0, "", 1, "scheduled", "n1")


def kept(path):
    """Names of the pods in a file, and how many lines are no records."""
    names, broken = [], 0
    for line in path.read_text().splitlines():
        try:
            names.append(json.loads(line)["pod"].removeprefix("web/"))
        except ValueError:
            broken += 1
    return names, broken


@pytest.fixture
def begin(monkeypatch):
    """Makes a diary of a file, in which nothing takes long."""
    monkeypatch.setattr(diaries, "EVERY", 0.02)
    monkeypatch.setattr(diaries, "CLOSING", 0.6)
    return lambda path: Diary(str(path), Records())


def beside(diary, script):
    """Runs a script while the diary runs."""

    async def main():
        running = asyncio.create_task(diary.run())
        await script()
        running.cancel()

    asyncio.run(main())


def add(diary, *numbers):
    for number in numbers:
        diary.records.add(record(number))


def told(caplog, path):
    """What was told of this file: threads of other tests may come to an end late."""
    found = [(r, r.stowplan_values) for r in caplog.records if hasattr(r, "stowplan_values")]
    return [(r.getMessage(), values.get("lost")) for r, values in found if str(values.get("file")) == str(path)]


def test_a_pipe_that_nobody_reads_holds_up_nobody(begin, tmp_path, caplog):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    diary, ticks = begin(path), []

    async def script():
        for number in range(10):
            add(diary, number)
            await asyncio.sleep(0.02)
            ticks.append(time.monotonic())

    beside(diary, script)
    began = time.monotonic()
    diary.close()
    assert time.monotonic() - began < 2
    assert max(later - earlier for earlier, later in pairwise(ticks)) < 0.5
    assert told(caplog, path) == [("decision records were not written", 10)]


def test_a_pipe_that_is_read_gets_all_of_it_at_once(begin, tmp_path):
    """The reader sees no end of the file between two pieces."""
    path, found = tmp_path / "pipe", []
    os.mkfifo(path)
    diary = begin(path)
    reader = threading.Thread(target=lambda: found.append(path.read_text()), daemon=True)
    reader.start()

    async def script():
        for number in range(5):
            add(diary, number)
            await asyncio.sleep(0.1)

    beside(diary, script)
    diary.close()
    os.close(diary._file._pipe)
    reader.join(5)
    assert [json.loads(line)["pod"] for line in found[0].splitlines()] == [f"web/p{n}" for n in range(5)]


def test_a_reader_that_stops_costs_records_and_no_more(begin, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(diaries, "MOST", 50)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    diary = begin(path)

    async def script():
        for number in range(3000):
            add(diary, number)
            if not number % 100:
                await asyncio.sleep(0.03)

    beside(diary, script)
    assert len(diary.records.outbox) <= 50
    diary.close()
    os.close(reader)
    messages = told(caplog, path)
    assert messages[0][0] == "decision records are lost"
    assert messages[-1][0] == "decision records were not written"
    assert 0 < messages[-1][1] < 3000


class Disk:
    """`os.write` on a disk with so many bytes left; what does not fit is written in part."""

    def __init__(self, monkeypatch, room):
        self.room, self._write = room, os.write
        monkeypatch.setattr(diaries.os, "write", self.write)

    def write(self, handle, content):
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = self._write(handle, bytes(content[: self.room]))
        self.room -= done
        return done


@pytest.mark.parametrize("room", [0, 1, 100, 200, 201, 202, 203, 204, 205, 500, 1000])
def test_a_full_disk_loses_nothing_once_there_is_room(begin, tmp_path, caplog, monkeypatch, room):
    path, disk = tmp_path / "decisions.jsonl", Disk(monkeypatch, room)
    caplog.set_level(logging.INFO, "stowplan")
    diary = begin(path)

    async def script():
        for number in range(10):
            add(diary, number)
            await asyncio.sleep(0.03)
        disk.room = 10**9
        add(diary, 10)

    beside(diary, script)
    diary.close()
    names, broken = kept(path)
    assert names == [f"p{number}" for number in range(11)]
    assert broken <= 1
    assert told(caplog, path) == [("decisions cannot be written", None), ("decisions are written again", None)]


def test_a_disk_that_stays_full_is_told_with_the_number(begin, tmp_path, caplog, monkeypatch):
    path = tmp_path / "decisions.jsonl"
    Disk(monkeypatch, 450)
    diary = begin(path)
    add(diary, *range(10))
    diary.close()
    names, _ = kept(path)
    assert 0 < len(names) < 10
    assert told(caplog, path) == [("decisions cannot be written", None), ("decision records were not written", 10 - len(names))]


def test_a_folder_that_is_taken_away_and_comes_back(begin, tmp_path, caplog):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "decisions.jsonl"
    caplog.set_level(logging.INFO, "stowplan")
    diary = begin(path)

    async def script():
        add(diary, 0)
        await asyncio.sleep(0.1)
        folder.rename(tmp_path / "old")
        add(diary, 1)
        await asyncio.sleep(0.1)
        folder.mkdir()
        add(diary, 2)

    beside(diary, script)
    diary.close()
    assert kept(tmp_path / "old" / "decisions.jsonl") == (["p0"], 0)
    assert kept(path) == (["p1", "p2"], 0)
    assert told(caplog, path) == [("decisions cannot be written", None), ("decisions are written again", None)]


def test_a_disk_that_hangs_holds_up_the_end_for_some_seconds_only(begin, tmp_path, caplog, monkeypatch):
    hanging = threading.Event()
    monkeypatch.setattr(diaries.os, "open", lambda *_: hanging.wait(30))
    path = tmp_path / "decisions.jsonl"
    diary = begin(path)
    add(diary, 0, 1)
    began = time.monotonic()
    diary.close()
    assert time.monotonic() - began < 2
    assert told(caplog, path) == [("decision records were not written", 2)]
    hanging.set()


def test_a_record_that_cannot_be_written_is_one_that_is_lost(begin, tmp_path, caplog):
    path = tmp_path / "decisions.jsonl"
    diary = begin(path)

    async def script():
        diary.records.add(Record("web/\ud800", "u", 1000.0, "p", 0, "", 1, "scheduled"))
        await asyncio.sleep(0.1)
        add(diary, 1)

    beside(diary, script)
    diary.close()
    assert kept(path)[0][-1:] == ["p1"]
    assert told(caplog, path)[0][0] == "decisions cannot be written"
