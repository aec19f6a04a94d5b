"""partition.metadata."""

from uuid import UUID

import pytest

from storage.checkpoints.partition_metadata import (
    decode_partition_metadata,
    encode_partition_metadata,
    read_partition_metadata,
)
from storage.errors import CorruptFileError
from tests.fakes.filesystem import FakeFilesystem

TOPIC_ID = UUID("d02dd1e2-0255-42b0-96dc-29b7cae4d452")
TEXT = b"version: 0\ntopic_id: 0C3R4gJVQrCW3Cm3yuTUUg"


def test_bytes_are_kafkas() -> None:
    """Two lines, the last one not ended."""
    assert encode_partition_metadata(TOPIC_ID) == TEXT
    assert decode_partition_metadata(TEXT, "x") == TOPIC_ID
    assert decode_partition_metadata(TEXT + b"\n", "x") == TOPIC_ID


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version: 0",
        b"version: 1\ntopic_id: 0C3R4gJVQrCW3Cm3yuTUUg",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: short",
        b"version: x\ntopic_id: 0C3R4gJVQrCW3Cm3yuTUUg",
        b"\xff",
        *(TEXT[:size] for size in range(len(TEXT))),
    ],
)
def test_damage_is_named(data: bytes) -> None:
    """Also every torn write."""
    with pytest.raises(CorruptFileError, match="somewhere"):
        decode_partition_metadata(data, "somewhere")


def test_file() -> None:
    """Missing, then there."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    assert read_partition_metadata(filesystem, "/d/partition.metadata") is None
    filesystem.replace_bytes("/d/partition.metadata", encode_partition_metadata(TOPIC_ID))
    assert read_partition_metadata(filesystem, "/d/partition.metadata") == TOPIC_ID
