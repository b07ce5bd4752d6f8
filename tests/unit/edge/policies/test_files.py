from __future__ import annotations

import asyncio
import os

from stowplan.edge.policies.files import PolicyFile, followable
from unit.edge.policies.offering import BAD, LABELLED, NEVER, document, keeper


def looks(path, *edits):
    """Follows a file whose texts these functions change one after the other; what was told, and the keeper."""
    kept, told = keeper(document())

    async def following():
        follower = PolicyFile(str(path), kept)
        await follower.look()
        for edit in edits:
            edit()
            await follower.look()

    asyncio.run(following())
    return told, kept


def test_a_file_that_changes(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(document())
    told, kept = looks(path, lambda: None, lambda: path.write_text(document(NEVER)), lambda: None)
    assert told.generations == [0, 1]
    assert kept.in_force.source == str(path)


def test_a_file_that_is_replaced_by_one_of_the_same_size_and_time(tmp_path):
    path, other = tmp_path / "policy.yaml", tmp_path / "other"
    path.write_text(document(LABELLED.format("a")))
    other.write_text(document(LABELLED.format("b")))
    for each in (path, other):
        os.utime(each, ns=(1, 1))
    told, _ = looks(path, lambda: other.replace(path))
    assert told.generations == [0, 1, 2]


def test_a_mounted_configmap_is_turned_to_another_folder(tmp_path):
    """As the kubelet does it: `..data` is a link that is replaced at once, the file is a link by way of it."""

    def mount(name, text):
        (tmp_path / name).mkdir()
        (tmp_path / name / "policy.yaml").write_text(text)
        (tmp_path / "..data_tmp").symlink_to(name)
        (tmp_path / "..data_tmp").replace(tmp_path / "..data")

    mount("..2026_1", document())
    (tmp_path / "policy.yaml").symlink_to("..data/policy.yaml")
    told, kept = looks(
        tmp_path / "policy.yaml",
        lambda: mount("..2026_2", document(NEVER)),
        lambda: mount("..2026_3", BAD["type error"]),
    )
    assert told.generations == [0, 1]
    assert len(told.refusals) == 1
    assert kept.refused.offer.source.name == str(tmp_path / "policy.yaml")


def test_a_file_that_is_gone_and_comes_back(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(document())
    told, kept = looks(path, path.unlink, lambda: None, lambda: path.write_text(document()))
    assert told.losses == [f"{path} is not there"]
    assert (told.generations, kept.trouble) == ([0], "")


def test_half_a_file_is_read_again_after_a_moment(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(document())
    kept, told = keeper(document())

    async def following():
        follower = PolicyFile(str(path), kept)
        path.write_text(document(NEVER)[:-8])
        look = asyncio.create_task(follower.look())
        await asyncio.sleep(0.05)
        path.write_text(document(NEVER))
        await look

    asyncio.run(following())
    assert (told.generations, told.refusals) == ([0, 1], [])


def test_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(document())
    told, _ = looks(path, lambda: path.write_text(""), lambda: path.write_text(document(NEVER)))
    assert "the input is empty" in told.refusals[0][0]
    assert told.generations == [0, 1]


def test_what_can_be_followed(tmp_path):
    assert followable(str(tmp_path / "to come.yaml"))
    assert not followable("-")
    assert not followable(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    assert not followable(str(tmp_path / "pipe"))
