"""From batches to rows: the same by every kernel, and what `iterate_records` gives."""

import random
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan.piece import AbortedRange
from pipeline.read.decode.row_decoder import PIECE_BYTES, RowDecoder
from pipeline.read.decode.row_schema import COLUMNS, KAFKA_COLUMNS
from pipeline.read.errors import BrokenBatchError
from protocol.records.batch import read_header, update_crc
from protocol.records.builder import append_record, build_batch, rebuild_batch
from protocol.records.compression import Codec
from protocol.records.record import iterate_records
from protocol.records.varint import encode_varint
from tests.effort import swept
from tests.unit.pipeline.read.batches import (
    KERNELS,
    NAME,
    batch_around,
    decode,
    expected,
    kernel_of,
    log_of,
    logs,
)

GOLDEN = Path(__file__).parents[4] / "golden" / "records"

kernels = pytest.mark.parametrize("kernel", KERNELS)


@lru_cache(maxsize=2)
def many_batches(count: int, records: int, codec: int = 0) -> bytes:
    """So many that they are walked side by side; made once for all kernels."""
    noise = random.Random(count)
    return log_of(
        *(
            [
                (
                    None if noise.random() < 0.1 else noise.randbytes(noise.randrange(20)),
                    None if noise.random() < 0.1 else noise.randbytes(noise.randrange(200)),
                    [("h", noise.randbytes(3)), ("", None)][: noise.randrange(3)],
                    1_700_000_000_000 + noise.randrange(10**6),
                )
                for _ in range(noise.randrange(1, records))
            ]
            for _ in range(count)
        ),
        codec=codec,
    )


@kernels
@given(log=logs(), first=st.integers(-3, 40), length=st.integers(0, 40))
def test_rows_are_those_of_the_record_walk(
    kernel: str, log: bytes, first: int, length: int
) -> None:
    """Whole, and any range of it, which may begin and end within a batch."""
    rows, problem = expected(log)
    assert problem is None
    assert decode(log, kernel) == (rows, None)
    start = read_header(log).base_offset + first
    rows, _ = expected(log, start=start, end=start + length)
    assert decode(log, kernel, start=start, end=start + length) == (rows, None)


@given(
    log=logs(batches_max=3),
    harm=st.lists(st.tuples(st.integers(0, 2**20), st.integers(1, 255)), min_size=1, max_size=4),
)
def test_hostile_bytes_have_one_outcome(log: bytes, harm: list[tuple[int, int]]) -> None:
    """Flipped bits anywhere: the same rows before the same error, by every kernel."""
    data = bytearray(log)
    for position, bits in harm:
        data[position % len(data)] ^= bits
    damaged = bytes(data)
    outcomes = [decode(damaged, kernel) for kernel in KERNELS]
    assert outcomes.count(outcomes[0]) == len(outcomes)
    rows, problem = expected(damaged)
    assert outcomes[0].rows == rows
    assert (outcomes[0].error is None) == (problem is None)
    if problem is not None and outcomes[0].error is not None:
        assert f"at byte {problem} " in outcomes[0].error or (
            f"at byte {problem}:" in outcomes[0].error
        )


@lru_cache(maxsize=1)
def rows_of_many(count: int, records: int, codec: int = 0) -> dict[str, list[Any]]:
    """Of `many_batches`."""
    return expected(many_batches(count, records, codec))[0]


@kernels
@pytest.mark.parametrize("codec", list(Codec))
def test_many_batches_side_by_side(kernel: str, codec: Codec) -> None:
    """Of different lengths, with nulls and headers."""
    log = many_batches(200, 60, codec)
    assert decode(log, kernel) == (rows_of_many(200, 60, codec), None)


@pytest.mark.parametrize("seed", swept(range(40), 4))
def test_damage_among_many_batches(seed: int) -> None:
    """Rows of all batches before the damaged one, then its position, by every kernel."""
    noise = random.Random(seed)
    data = bytearray(many_batches(120, 30))
    for _ in range(1 + seed % 3):
        data[noise.randrange(len(data))] ^= 1 << noise.randrange(8)
    outcomes = [decode(bytes(data), kernel) for kernel in KERNELS]
    assert outcomes.count(outcomes[0]) == len(outcomes)
    rows, problem = expected(bytes(data))
    assert outcomes[0].rows == rows
    assert (outcomes[0].error is None) == (problem is None)


@kernels
def test_blocks_of_noise(kernel: str) -> None:
    """Any bytes as records: what the walk takes for records, and errors for the rest."""
    noise = random.Random(3)
    for _ in range(300):
        block = bytes(noise.choice(b"\0\1\2\3\4\6\x0e\x10\x80\xff") for _ in range(30))
        log = batch_around(block, noise.randrange(1, 5))
        rows, problem = expected(log)
        got = decode(log, kernel)
        assert got.rows == rows
        assert (got.error is None) == (problem is None)


def odd_varint(noise: random.Random) -> bytes:
    """Too long, too large, or longer than it need be."""
    number = noise.choice((-1, 0, 63, 64, -65, 8192, 2**31 - 1, -(2**31), 2**35, 2**63 - 1))
    return noise.choice(
        (
            encode_varint(number),
            b"\x80" * noise.randrange(1, 11) + b"\0",
            b"\xff" * noise.randrange(1, 11) + bytes([noise.randrange(128)]),
            b"\x81\0",
        )
    )


def odd_block(noise: random.Random, count: int) -> bytes:
    """Records of which one in ten has a number that is odd or a lie."""
    block = b""
    for index in range(count):
        key_size, value_size = noise.choice((-1, 0, 1, 5)), noise.choice((-1, 0, 200))
        headers = noise.choice((0, 0, 1, 2))
        fields = [
            b"\0",
            encode_varint(noise.choice((0, 5, 2**40))),
            encode_varint(index),
            encode_varint(key_size),
            bytes(max(key_size, 0)),
            encode_varint(value_size),
            bytes(max(value_size, 0)),
            encode_varint(headers),
            b"\x02h\x01" * headers,
        ]
        if noise.random() < 0.1:
            fields[noise.choice((1, 2, 3, 5, 7))] = odd_varint(noise)
        body = b"".join(fields)
        block += (encode_varint(len(body)) if noise.random() < 0.97 else odd_varint(noise)) + body
    return block[: noise.randrange(len(block) + 1)] if noise.random() < 0.05 else block


@pytest.mark.parametrize("seed", range(8))
def test_odd_numbers_have_one_outcome(seed: int) -> None:
    """In few batches, and in so many that they are walked side by side."""
    noise = random.Random(seed)
    for _ in range(40):
        log = b""
        offset = 0
        for _ in range(noise.choice((1, 3, 100))):
            count = noise.randrange(1, 4)
            block = odd_block(noise, count)
            attributes = noise.choice((0, 0, 8))
            log += batch_around(block, count, base_offset=offset, attributes=attributes)
            offset += count
        outcomes = [decode(log, kernel) for kernel in KERNELS]
        assert outcomes.count(outcomes[0]) == len(outcomes)
        rows, problem = expected(log)
        assert outcomes[0].rows == rows
        assert (outcomes[0].error is None) == (problem is None)


@kernels
@pytest.mark.parametrize("name", ["none", "gzip", "snappy", "lz4", "zstd", "empty", "abort"])
def test_batches_that_kafka_wrote(kernel: str, name: str) -> None:
    """Their rows are those of the walk, which is compared with Kafka's own words elsewhere."""
    log = (GOLDEN / f"{name}.batch").read_bytes()
    rows, problem = expected(log)
    assert problem is None
    assert bool(rows["offset"]) == (name not in {"empty", "abort"})
    assert decode(log, kernel) == (rows, None)


def record(*fields: bytes) -> bytes:
    body = b"".join(fields)
    return bytes((len(body) * 2,)) + body


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        (record(b"\0\0\0", b"\x7fabc", b"\x01", b"\0"), "-64 bytes"),
        (record(b"\0\0\0", b"\x01", b"\x01", b"\x7f"), "-64 headers"),
        (record(b"\0\0\0", b"\x01", b"\x01", b"\x02\x01\x01"), "key of -1 bytes"),
        (record(b"\0\0\0", b"\x01", b"\x01", b"\0\0"), "off by -1 bytes"),
        (record(b"\0\0\0", b"\x01", b"\x01", b"\0") + b"\0", "1 bytes after the last"),
        (record(b"\0" + b"\xff" * 11, b"\x01", b"\x01", b"\0"), "longer than 10 bytes"),
        (b"\xff" * 5 + record(b"\0\0\0", b"\x01", b"\x01", b"\0"), "longer than 5 bytes"),
        (b"\x01" + record(b"\0\0\0", b"\x01", b"\x01", b"\0"), "record of -1 bytes"),
        (record(b"\0\0\x02", b"\x01", b"\x01", b"\0"), "record has offset 2"),
        (record(b"\0\0\x01", b"\x01", b"\x01", b"\0"), "record has offset 0"),
    ],
)
def test_what_is_wrong_is_said_alike(block: bytes, problem: str) -> None:
    """After a good batch, whose row is given."""
    log = log_of([(b"k", b"v", (), 5)]) + batch_around(block, 1, base_offset=1)
    outcomes = [decode(log, kernel) for kernel in KERNELS]
    for got in outcomes:
        assert got.rows["offset"] == [0]
        assert got.error is not None
        assert problem in got.error
        assert got == outcomes[0]


@kernels
@pytest.mark.parametrize("count", [2, 2**31 - 1])
def test_counts_that_lie_are_refused(kernel: str, count: int) -> None:
    """Before there is room made for them."""
    got = decode(batch_around(record(b"\0\0\0\x01\x01\0"), count), kernel)
    assert got.rows["offset"] == []
    assert got.error == (
        f"record batch at byte 0 (base offset 0): batch claims {count} records in 7 bytes"
    )


@kernels
def test_aborted_and_control_batches_are_out(kernel: str) -> None:
    """Unless aborted rows are wanted; markers are never rows."""
    log = b"".join(
        (
            build_batch([(b"a", None, (), 1)], base_offset=0, producer_id=1, transactional=True),
            build_batch([(b"b", None, (), 1)], base_offset=1, producer_id=2, transactional=True),
            build_batch([(b"c", None, (), 1)], base_offset=2, producer_id=1),
            build_batch(
                [(b"m", b"m", (), 1)],
                base_offset=3,
                producer_id=1,
                transactional=True,
                control=True,
            ),
            build_batch([(b"d", None, (), 1)], base_offset=4, producer_id=1, transactional=True),
        )
    )
    aborted = [AbortedRange(1, 0, 3)]
    assert decode(log, kernel, aborted=aborted).rows["offset"] == [1, 2, 4]
    assert decode(log, kernel, aborted=aborted, read_committed=False).rows["offset"] == [0, 1, 2, 4]


@kernels
def test_compacted_batches_keep_their_offsets(kernel: str) -> None:
    """Gaps, an emptied batch, and times relative to a delete horizon."""
    whole = build_batch([(b"%d" % n, b"v", (), 1000 + n) for n in range(6)], base_offset=10)
    header = read_header(whole)
    records = list(iterate_records(memoryview(whole), max_size=10_000))
    log = bytes(rebuild_batch(header, records[1:5:2], delete_horizon_ms=77)) + bytes(
        rebuild_batch(header._replace(base_offset=20), [])
    )
    got = decode(log, kernel)
    assert got.error is None
    assert got.rows["offset"] == [11, 13]
    assert got.rows["timestamp"] == [1_001_000, 1_003_000]


@kernels
def test_log_append_time_is_every_rows_time(kernel: str) -> None:
    """The batch's max timestamp, and type 1."""
    log = log_of([(None, None, (), 5), (None, None, (), 9)], timestamp_type=1)
    got = decode(log, kernel)
    assert got.rows["timestamp"] == [9000, 9000]
    assert got.rows["timestampType"] == [1, 1]


@kernels
def test_no_timestamp_is_a_millisecond_before_the_epoch(kernel: str) -> None:
    """As Spark's Kafka source has it."""
    assert decode(log_of([(None, None, (), -1)]), kernel).rows["timestamp"] == [-1000]


@kernels
def test_times_wrap_as_in_the_jvm(kernel: str) -> None:
    """Base and delta are added in 64 bits."""
    block = bytearray()
    append_record(block, 0, 2**63 - 1, None, None, ())
    log = batch_around(block, 1, base_timestamp=2**63 - 1)
    assert decode(log, kernel).rows["timestamp"] == [-2000]


@kernels
def test_times_that_microseconds_cannot_say_are_an_error(kernel: str) -> None:
    """Rows before the batch are given; without the column all are."""
    good = [(b"k", b"v", (), 1), (b"k", b"v", (), 2)]
    log = log_of(good, [(b"x", b"y", (), 3), (b"k", b"v", (), 2**60)], good)
    got = decode(log, kernel)
    assert got.rows["offset"] == [0, 1]
    assert got.error is not None
    assert "record at offset 3 has timestamp 1152921504606846976 ms" in got.error
    rest = decode(log, kernel, columns=["offset", "value"])
    assert rest.rows["offset"] == [0, 1, 2, 3, 4, 5]
    assert decode(log, kernel, end=3).error is None


@kernels
def test_header_keys_are_decoded_as_by_the_jvm(kernel: str) -> None:
    """What is no UTF-8 becomes replacement characters."""
    block = record(b"\0\0\0", b"\x01", b"\x01", b"\x04", b"\x06\xed\xa0\x80\x02v", b"\x02\xff\x01")
    got = decode(batch_around(block, 1), kernel)
    assert got.error is None
    assert got.rows["headers"] == [
        [{"key": "\ufffd", "value": b"v"}, {"key": "\ufffd", "value": None}]
    ]


@kernels
def test_rows_come_in_pieces(kernel: str) -> None:
    """Of at most 4 MiB, whatever the batches are."""
    log = log_of(*([(b"k", bytes(1000), (), 1)] * 1000 for _ in range(20)))
    decoder = RowDecoder(KAFKA_COLUMNS, NAME, kernel_of(kernel))
    pieces = list(decoder.decode(memoryview(log), 0, 2**60, (), read_committed=True))
    assert sum(piece.num_rows for piece in pieces) == 20_000
    assert len(pieces) >= 5
    assert max(piece.nbytes for piece in pieces) <= PIECE_BYTES * 1.01


@lru_cache(maxsize=1)
def batches_of_values(batches: int, records: int, size: int) -> bytes:
    return log_of(*([(None, bytes(size), (), 1)] * records for _ in range(batches)))


@kernels
@pytest.mark.parametrize("size", [1, 10, 100, 1000])
def test_no_piece_is_small_beside_the_others(kernel: str, size: int) -> None:
    """A stream's memory is a little more than whole groups: the rest is no group of its own."""
    records = 16_000 // (size + 10)
    batches = 4 * (1 << 20) // 16_000 + 3
    log = batches_of_values(batches, records, size)
    decoder = RowDecoder(KAFKA_COLUMNS, NAME, kernel_of(kernel))
    pieces = list(decoder.decode(memoryview(log), 0, 2**60, (), read_committed=True))
    assert sum(piece.num_rows for piece in pieces) == records * batches
    rows = sorted(piece.num_rows for piece in pieces)
    assert max(piece.nbytes for piece in pieces) <= PIECE_BYTES * 1.01
    if size >= 100:  # smaller ones are many, and cut where a table of records is full
        assert rows[0] > rows[-1] / 3


@kernels
def test_rows_do_not_change_with_the_data(kernel: str) -> None:
    """The caller's buffer is used again for the next chunk."""
    data = bytearray(log_of([(b"key", b"value", (("h", b"x"),), 1)]))
    decoder = RowDecoder(COLUMNS, NAME, kernel_of(kernel))
    (piece,) = decoder.decode(memoryview(data), 0, 9, (), read_committed=True)
    before = piece.to_pylist()
    data[:] = bytes(len(data))
    log = log_of([(b"yek", b"eulav", (("i", b"y"),), 2)], base_offset=1)
    list(decoder.decode(memoryview(log), 0, 9, (), read_committed=True))
    assert piece.to_pylist() == before


@kernels
@pytest.mark.parametrize("name", COLUMNS)
def test_each_column_alone(kernel: str, name: str) -> None:
    """The same as among all."""
    log, rows = many_batches(30, 20), rows_of_many(30, 20)
    assert decode(log, kernel, columns=[name]).rows == {name: rows[name]}


def test_sums_are_checked_when_asked() -> None:
    """Rows before the batch are given; without being asked nobody sees the damage."""
    good = log_of([(b"k", b"value", (), 1)])
    bad = bytearray(log_of([(b"k", b"value", (), 1)], base_offset=1))
    bad[-3] ^= 1
    log = good + bytes(bad)
    assert decode(log).rows["offset"] == [0, 1]
    got = decode(log, check_crc=True)
    assert got.rows["offset"] == [0]
    assert got.error is not None
    assert f"record batch at byte {len(good)} (base offset 1): its CRC-32C is 0x" in got.error


def test_an_error_says_where_to_go_on() -> None:
    """Whoever may leave the batch out does not search for the next one."""
    log = bytearray(log_of([(b"k", b"v", (), 1)], [(b"k", b"v", (), 1)]))
    half = len(log) // 2
    log[61] ^= 0x20
    update_crc(memoryview(log), 0, half)
    decoder = RowDecoder(["offset"], NAME)
    with pytest.raises(BrokenBatchError) as caught:
        list(decoder.decode(memoryview(log), 0, 9, (), read_committed=True))
    assert (caught.value.base_offset, caught.value.next_offset) == (0, 1)
    assert caught.value.next_position == half
    rest = memoryview(log)[caught.value.next_position :]
    (piece,) = decoder.decode(rest, 0, 9, (), read_committed=True)
    assert piece.column("offset").to_pylist() == [1]


def test_rows_have_no_column_that_there_is_not() -> None:
    """Refused when the decoder is made."""
    with pytest.raises(ValueError, match="no column vlaue; there are key, value"):
        RowDecoder(["key", "vlaue"], NAME)
    with pytest.raises(ValueError, match="no kernel fast"):
        RowDecoder(["key"], NAME, "fast")


def test_schema_is_that_of_the_rows() -> None:
    """Spark compares them."""
    decoder = RowDecoder(["offset", "key"], NAME)
    assert decoder.schema == pa.schema([("offset", pa.int64()), ("key", pa.binary())])
