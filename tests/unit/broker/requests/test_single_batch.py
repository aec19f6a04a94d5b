"""What a Produce's records have to be, and which error a client gets where they are not."""

import struct

import pytest

from broker.requests.single_batch import check_single_batch
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode as E
from protocol.records.batch import MAGIC_POSITION
from protocol.records.builder import build_batch
from storage.errors import CorruptBatchError

BATCH = bytes(build_batch([(b"k", b"v", (), 0)]))


def changed(position: int, value: bytes) -> bytes:
    return BATCH[:position] + value + BATCH[position + len(value) :]


def code(records: bytes | None, version: int = 9) -> E:
    with pytest.raises(ApiError) as refused:
        check_single_batch(None if records is None else memoryview(records), version)
    return refused.value.code


def test_one_whole_batch_passes() -> None:
    check_single_batch(memoryview(BATCH), 3)


@pytest.mark.parametrize("records", [None, b"", BATCH + BATCH, BATCH[:-1]])
def test_none_several_or_a_part_is_the_clients_mistake(records: bytes | None) -> None:
    assert code(records) is E.INVALID_RECORD


@pytest.mark.parametrize("magic", [b"\0", b"\1"])
def test_an_older_format_is_refused(magic: bytes) -> None:
    assert code(changed(MAGIC_POSITION, magic)) is E.INVALID_RECORD


@pytest.mark.parametrize(
    "records",
    [
        changed(8, struct.pack(">i", -1)),
        changed(8, struct.pack(">i", 13)),
        changed(8, struct.pack(">i", len(BATCH) - 13)),
        changed(MAGIC_POSITION, b"\3") + b"x",
        changed(8, struct.pack(">i", 0))[:12],
    ],
    ids=["negative length", "shorter than any", "nothing behind it", "newer magic", "no header"],
)
def test_a_damage_before_the_checksum_is_sent_again(records: bytes) -> None:
    """Neither the length nor the magic is in the checksum."""
    with pytest.raises(CorruptBatchError):
        check_single_batch(memoryview(records), 9)


def test_zstd_does_not_exist_before_version_7() -> None:
    records = bytes(build_batch([(b"k", b"v" * 100, (), 0)], codec=4))
    check_single_batch(memoryview(records), 7)
    assert code(records, 6) is E.UNSUPPORTED_COMPRESSION_TYPE
