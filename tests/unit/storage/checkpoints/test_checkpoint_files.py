"""Offset checkpoints."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.checkpoints.checkpoint_files import (
    decode_epochs,
    decode_offsets,
    decode_table,
    encode_offsets,
    read_offsets,
)
from storage.errors import CorruptFileError, DiskError
from storage.types.topic_partition import TopicPartition
from tests.effort import examples
from tests.fakes.filesystem import FakeFilesystem

PATH = "/d/recovery-point-offset-checkpoint"
TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=20)


def test_bytes_are_kafkas() -> None:
    """Version, count, one `topic partition offset` a line, each line ended."""
    offsets = {TopicPartition("events", 0): 1874, TopicPartition("a.b-c", 11): 0}
    assert encode_offsets(offsets) == b"0\n2\nevents 0 1874\na.b-c 11 0\n"


@given(
    st.dictionaries(
        st.builds(TopicPartition, TOPICS, st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1)
    )
)
def test_round_trip(offsets: dict[TopicPartition, int]) -> None:
    """What is written is read."""
    assert decode_offsets(encode_offsets(offsets), "x") == offsets


@pytest.mark.parametrize("data", [b"", b"0\n", b"0\n0\n", b"0\n0"])
def test_empty_forms(data: bytes) -> None:
    """Kafka creates the file before it writes to it."""
    assert decode_offsets(data, "x") == {}


@pytest.mark.parametrize(
    "data",
    [
        b"1\n0\n",
        b"x\n0\n",
        b"0\nx\n",
        b"0\n-1\n",
        b"0\n2\na 0 1\n",
        b"0\n0\na 0 1\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 1 2\n",
        b"0\n1\na x 1\n",
        b"0\n1\na 0 -1\n",
        b"0\n1\na 0 9223372036854775808\n",
        b"0\n1\na 2147483648 1\n",
        b"0\n1\na 0 " + b"9" * 5000 + b"\n",
        "0\n1\na 0 ٣\n".encode(),
        b"\xff\xfe",
        b"0\n1\na 0 1\n\n\n",
    ],
)
def test_damage_is_named(data: bytes) -> None:
    """Nothing that Kafka would not write is taken in."""
    with pytest.raises(CorruptFileError, match="somewhere"):
        decode_offsets(data, "somewhere")


@examples(300)
@given(st.one_of(st.binary(max_size=60), st.text("0123 \n-abc", max_size=60).map(str.encode)))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    """No other exception, whatever a disk makes of the file."""
    for decode in (decode_offsets, decode_epochs, lambda d, s: decode_table(d, s, 1)):
        try:
            decode(data, "x")
        except CorruptFileError:
            continue


def test_missing_file_has_no_entries() -> None:
    """A fresh directory."""
    assert read_offsets(FakeFilesystem(), PATH) == {}


def test_crash_leaves_the_old_or_the_new_table() -> None:
    """After every single change of the disk, whatever of the unsynced survived."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    filesystem.sync_directory("/")
    old = {TopicPartition("a", 0): 1}
    new = {TopicPartition("a", 0): 2, TopicPartition("b", 0): 3}
    filesystem.replace_bytes(PATH, encode_offsets(old))
    points = 0

    def observe(_event: object) -> None:
        nonlocal points
        for keep in (None, "all", *(Random(seed) for seed in range(20))):
            points += 1
            assert read_offsets(filesystem.after_crash(keep), PATH) in (old, new)

    filesystem.observer = observe
    filesystem.replace_bytes(PATH, encode_offsets(new))
    assert points >= 100
    assert read_offsets(filesystem.after_crash(None), PATH) == new


@pytest.mark.parametrize("kind", ["create", "write", "sync", "rename"])
def test_failed_write_keeps_the_old_table(kind: str) -> None:
    """The disk refuses half-way."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    filesystem.replace_bytes(PATH, encode_offsets({TopicPartition("a", 0): 1}))
    filesystem.fail(kind, path=".tmp")
    with pytest.raises(DiskError):
        filesystem.replace_bytes(PATH, encode_offsets({TopicPartition("a", 0): 2}))
    assert read_offsets(filesystem, PATH) == {TopicPartition("a", 0): 1}
