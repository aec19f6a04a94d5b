"""Headers as arrays, what is out, and headers that cannot be."""

import pytest
from hypothesis import given

from pipeline.plan.piece import AbortedRange
from pipeline.read.decode.aborted_batches import AbortedBatches
from pipeline.read.decode.batch_table import read_batch_table, wanted_batches
from pipeline.read.decode.plain_kernel import PlainKernel
from protocol.records.batch import iterate_batches
from protocol.records.builder import build_batch
from tests.unit.pipeline.read.batches import log_of, logs

KERNEL = PlainKernel()
ONE = log_of([(b"k", b"v", (), 1)])


@given(log=logs())
def test_arrays_say_what_headers_say(log: bytes) -> None:
    """Every field that a reader needs."""
    table = read_batch_table(memoryview(log), KERNEL)
    assert table.problem is None
    assert table.next_position == len(log)
    headers = list(iterate_batches(memoryview(log)))
    assert table.position.tolist() == [position for position, _ in headers]
    for index, (_, header) in enumerate(headers):
        assert table.size[index] == header.size
        assert table.base_offset[index] == header.base_offset
        assert table.last_offset[index] == header.last_offset
        assert table.codec[index] == header.codec
        assert table.crc[index] == header.crc
        assert table.leader_epoch[index] == header.leader_epoch
        assert table.base_timestamp[index] == header.base_timestamp
        assert table.max_timestamp[index] == header.max_timestamp
        assert table.producer_id[index] == header.producer_id
        assert table.records[index] == header.records_count
        assert table.is_control[index] == header.is_control
        assert table.is_transactional[index] == header.is_transactional
        assert table.is_append_time[index] == header.is_log_append_time


def test_tables_are_bounded() -> None:
    """The next one begins where the last ended."""
    log = log_of(*([(b"k", b"v", (), 1)] for _ in range(5)))
    first = read_batch_table(memoryview(log), KERNEL, batches_max=3)
    assert first.base_offset.tolist() == [0, 1, 2]
    position = first.next_position
    rest = read_batch_table(memoryview(log), KERNEL, position, after_offset=2, batches_max=3)
    assert rest.base_offset.tolist() == [3, 4]
    assert rest.next_position == len(log)


@pytest.mark.parametrize(
    ("position", "content", "problem"),
    [
        (16, b"\x01", "it has magic 1, the format before Kafka 0.11"),
        (16, b"\x00", "it has magic 0, the format before Kafka 0.11"),
        (16, b"\x03", "it has magic 3, which does not exist"),
        (8, b"\x7f\xff\xff\xff", "record batch claims 2147483659 bytes, 70 are left"),
        (8, b"\x00\x00\x00\x10", "record batch claims 28 bytes, less than its header"),
        (8, b"\xff\xff\xff\xff", "record batch claims 11 bytes, less than its header"),
        (23, b"\xff\xff\xff\xff", "it claims last offset delta -1"),
        (0, b"\xff" * 8, "it claims base offset -1"),
        (0, b"\x7f" + b"\xff" * 7, "it claims base offset 9223372036854775807"),
        (57, b"\xff\xff\xff\xfe", "it claims -2 records"),
        (0, b"\x00" * 8, "it does not follow offset 0 of what came before"),
    ],
)
def test_headers_that_cannot_be_are_named(position: int, content: bytes, problem: str) -> None:
    """The batches before are in the table."""
    bad = bytearray(log_of([(b"k", b"v", (), 1)], base_offset=1))
    bad[position : position + len(content)] = content
    table = read_batch_table(memoryview(ONE + bytes(bad)), KERNEL)
    assert table.base_offset.tolist() == [0]
    assert table.next_position == len(ONE)
    assert table.problem is not None
    assert table.problem.problem.startswith(problem)
    assert table.problem.position == len(ONE)


@pytest.mark.parametrize("size", [1, 16, 17, 60, len(ONE) - 1])
def test_a_batch_that_is_cut_off_is_named(size: int) -> None:
    """Wherever the data ends."""
    table = read_batch_table(memoryview(ONE)[:size], KERNEL)
    assert len(table.position) == 0
    assert table.problem is not None
    assert table.problem.next_position is None


def test_batches_outside_of_the_range_are_out() -> None:
    """Those that only touch it are not."""
    log = log_of(*([(b"k", b"v", (), 1)] * 10 for _ in range(4)))
    table = read_batch_table(memoryview(log), KERNEL)
    assert wanted_batches(table, 0, 100, None).tolist() == [0, 1, 2, 3]
    assert wanted_batches(table, 9, 11, None).tolist() == [0, 1]
    assert wanted_batches(table, 10, 20, None).tolist() == [1]
    assert wanted_batches(table, 40, 50, None).tolist() == []


def test_only_transactional_batches_are_aborted() -> None:
    """A producer may write without a transaction, too."""
    log = b"".join(
        bytes(build_batch([(b"k", b"v", (), 1)], base_offset=offset, producer_id=5, **more))
        for offset, more in enumerate(({"transactional": True}, {}, {"transactional": True}))
    )
    table = read_batch_table(memoryview(log), KERNEL)
    aborted = AbortedBatches([AbortedRange(5, 0, 1)])
    assert wanted_batches(table, 0, 9, aborted).tolist() == [1, 2]
    assert wanted_batches(table, 0, 9, AbortedBatches(())).tolist() == [0, 1, 2]
