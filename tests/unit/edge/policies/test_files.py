from __future__ import annotations

import asyncio
import os
import threading

import pytest

from stowplan.edge.policies.files import PolicyFile, at_rest, followable
from unit.edge.policies.offering import BAD, LABELLED, NEVER, document, keeper


def looks(path, *edits):
    """Follows a file whose texts these functions change one after the other; what was told, and the keeper."""
    kept, told = keeper(document())

    async def following():
        follower = PolicyFile(str(path), kept)
        await settle(follower)
        for edit in edits:
            edit()
            await settle(follower)

    asyncio.run(following())
    return told, kept


async def settle(follower, seconds=0.45):
    """Looks for that long."""
    end = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end:
        await follower.look()
        await asyncio.sleep(0.02)


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


@pytest.mark.parametrize("half", [document(), document(NEVER)[:-8], "", document(NEVER)[: len(document()) - 20]])
def test_half_a_file_never_comes_into_force(tmp_path, half):
    """Whether it is a good text or none."""
    path = tmp_path / "policy.yaml"
    path.write_text(document(LABELLED.format("a")))
    kept, told = keeper(document(LABELLED.format("a")))

    async def following():
        follower = PolicyFile(str(path), kept)
        await settle(follower)
        path.write_text(half)
        await settle(follower, 0.15)
        with path.open("a") as rest:
            rest.write(document(NEVER)[len(half) :])
        await settle(follower)

    asyncio.run(following())
    assert (told.generations, told.refusals) == ([0, 1], [])
    assert kept.in_force.offer.source.text == document(NEVER)


def test_a_file_that_is_never_at_rest_changes_nothing(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(document())
    kept, told = keeper(document())

    async def following():
        follower = PolicyFile(str(path), kept)
        await settle(follower)
        for number in range(8):
            path.write_text(document(LABELLED.format(f"a{number}")))
            await settle(follower, 0.1)
        assert told.generations == [0]
        await settle(follower)

    asyncio.run(following())
    assert told.generations == [0, 1]
    assert 'a7"' in kept.in_force.offer.source.text


def test_a_link_that_is_turned_to_a_file_that_is_still_being_written(tmp_path):
    """No folder that the kubelet has published: nobody says that it is whole."""
    (tmp_path / "old.yaml").write_text(document(LABELLED.format("a")))
    path = tmp_path / "policy.yaml"
    path.symlink_to("old.yaml")
    kept, told = keeper(document(LABELLED.format("a")))

    async def following():
        follower = PolicyFile(str(path), kept)
        await settle(follower)
        (tmp_path / "new.yaml").write_text(document())
        path.unlink()
        path.symlink_to("new.yaml")
        await settle(follower, 0.1)
        (tmp_path / "new.yaml").write_text(document(NEVER))
        await settle(follower)

    asyncio.run(following())
    assert (told.generations, told.losses) == ([0, 1], [])
    assert kept.in_force.offer.source.text == document(NEVER)


def test_a_mounted_configmap_is_taken_at_the_first_look(tmp_path):
    """Also where its key is put into a folder of the mount."""
    for name, text in (("..1", document()), ("..2", document(NEVER))):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "policy.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "deep").symlink_to("..data/deep")
    kept, told = keeper(document())

    async def following():
        follower = PolicyFile(str(tmp_path / "deep" / "policy.yaml"), kept)
        await follower.look()
        (tmp_path / "..next").symlink_to("..2")
        (tmp_path / "..next").replace(tmp_path / "..data")
        await follower.look()

    asyncio.run(following())
    assert told.generations == [0, 1]


def test_a_pipe_in_the_place_of_the_file_is_refused(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(document())
    told, _ = looks(path, lambda: (path.unlink(), os.mkfifo(path)))
    assert [reason for reason, _ in told.refusals] == [f"error[STW117]: {path}: is no file any more"]


def test_a_start_waits_until_the_file_is_written(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(document())
    rest = threading.Timer(0.1, lambda: path.write_text(document(NEVER)))
    rest.start()
    assert at_rest(str(path)).text == document(NEVER)
    rest.join()


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
