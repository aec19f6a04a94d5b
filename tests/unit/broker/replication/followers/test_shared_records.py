"""Followers that wait for the same records: they are read once for all of them."""

import asyncio
import os
from collections.abc import Sequence
from typing import Any

import pytest

from broker.replication.followers.shared_records import SharedRecords
from storage.types.file_slice import FileSlice
from tests.code_path import CODE
from tests.unit.broker.replication.followers.follower_world import FollowerWorld


def body(records: object) -> list[Any]:
    return [b"head", records, b"tail"]


def test_records_that_were_read_are_sent_again() -> None:
    shared, file = SharedRecords(), object()
    first = FileSlice(file, 10, 3)
    assert shared.of(first) is first
    sent = body(first)
    shared.sent_in(sent)
    sent[1] = b"abc"
    assert shared.of(FileSlice(file, 10, 3)) == b"abc"
    shared.sent_in(body(b"abc"))
    assert shared.of(FileSlice(file, 10, 3)) == b"abc"


@pytest.mark.parametrize(("position", "length"), [(11, 3), (10, 4), (10, 2)])
def test_other_records_are_read(position: int, length: int) -> None:
    shared, file = SharedRecords(), object()
    shared.of(FileSlice(file, 10, 3))
    shared.sent_in(body(b"abc"))
    other = FileSlice(file, position, length)
    assert shared.of(other) is other


def test_those_of_another_file_are_read() -> None:
    shared = SharedRecords()
    shared.of(FileSlice(object(), 10, 3))
    shared.sent_in(body(b"abc"))
    other = FileSlice(object(), 10, 3)
    assert shared.of(other) is other


def test_what_is_not_read_yet_is_not_shared() -> None:
    """Large records, or such as wait in a queue: the slice moves on as it is sent."""
    shared, file = SharedRecords(), object()
    first = FileSlice(file, 10, 3)
    shared.of(first)
    shared.sent_in(body(first))
    second = FileSlice(file, 10, 3)
    assert shared.of(second) is second
    shared.sent_in([b"an answer without records"])
    third = FileSlice(file, 10, 3)
    assert shared.of(third) is third


@pytest.mark.skipif(bool(CODE.modules), reason="C reads, and is not counted")
@pytest.mark.skipif(not hasattr(os, "preadv"), reason="the file system is read another way")
async def test_two_followers_of_a_partition_cost_one_read(
    f: FollowerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each append anew: a later turn knows nothing of an earlier one."""
    partition = f.led()
    sessions = {}
    for replica in (2, 3):
        f.park({"t": 0}, replica=replica)
    read = os.preadv
    reads: list[int] = []

    def counting(fd: int, buffers: Sequence[Any], offset: int, flags: int = 0) -> int:
        reads.append(offset)
        return read(fd, buffers, offset, flags)

    monkeypatch.setattr(os, "preadv", counting)
    sizes = [0]
    for epoch, value in enumerate((b"first", b"second and longer"), 1):
        f.write(partition, value)
        sizes.append(partition.log.size())
        await asyncio.sleep(0)
        answers = [f.fetched(), f.fetched()]
        assert not f.has_answer
        given = [bytes(one.responses[0].partitions[0].records) for one in answers]
        assert given[0] == given[1]
        assert len(given[0]) == sizes[-1] - sizes[-2]
        assert value in given[0]
        for replica, one in zip((2, 3), answers, strict=True):
            sessions[replica] = one.session_id
            f.park({"t": epoch}, replica=replica, session=(one.session_id, epoch))
    assert reads == sizes[:2]
