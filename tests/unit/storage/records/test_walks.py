"""Rules about records: C says what Python says, of batches that are well and of all others."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.records.batch import (
    HEADER_SIZE,
    read_header,
)
from protocol.records.builder import append_record, build_batch, reassemble, rebuild_batch
from protocol.records.compression import Codec
from protocol.records.record import check_records, iterate_records
from protocol.records.varint import encode_varint
from storage.records import walks
from storage.records.compiled_walks import SHORT_BLOCK_BYTES, CompiledWalks, Times
from storage.records.walks import recompress, record_errors
from tests.effort import examples
from tests.unit.storage.records.compiled import COMPILED

pytestmark = pytest.mark.skipif(COMPILED is None, reason="it is not compiled")

MIB = 1 << 20
INT64 = 2**63
contents = st.none() | st.binary(max_size=70) | st.just(bytes(64)) | st.just(bytes(8192))
times = (
    st.integers(0, 200)
    | st.integers(-2, 2**45)
    | st.sampled_from((-INT64, INT64 - 1, 2**62, -(2**62)))
)
names = st.text(max_size=70) | st.sampled_from(("", "é", "\u0800", "\ud7ff", "\U0010ffff"))
headers = st.lists(st.tuples(names, st.none() | st.binary(max_size=70)), max_size=2).map(tuple)
rows = st.lists(st.tuples(contents, contents, headers, times), min_size=1, max_size=90)
bounds = st.none() | st.sampled_from((0, 100, INT64 - 1, INT64 + 5, -INT64 - 5))


def outcome(compiled: CompiledWalks | None, walk: Callable[[], Any]) -> Any:
    """What it gives with these walks, or the error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walks, "compiled_walks", lambda: compiled)
        try:
            return walk()
        except DecodeError as error:
            return type(error), str(error)


def compare_checks(batch: bytearray, require_key: bool, earliest: Any, latest: Any) -> Any:
    """Both ways say the same; what they say."""
    given_rules = {
        "max_size": MIB,
        "require_key": require_key,
        "timestamp_min": earliest,
        "timestamp_max": latest,
    }
    found = outcome(COMPILED, lambda: record_errors(memoryview(batch), **given_rules))
    assert found == outcome(None, lambda: check_records(memoryview(batch), **given_rules).errors)
    return found


def compare_recompression(batch: bytearray, codec: int) -> None:
    header = read_header(batch)
    view = memoryview(batch)
    found, expected = (
        outcome(way, lambda: recompress(header, view, codec=codec, level=None, max_size=MIB))
        for way in (COMPILED, None)
    )
    assert found == expected


def batch_of(block: bytes, count: int, **fields: Any) -> bytearray:
    """An uncompressed batch of these bytes."""
    header = read_header(build_batch([(b"k", b"v", (), 0)]))._replace(
        last_offset_delta=count - 1, **fields
    )
    return reassemble(
        header, block, count, codec=0, has_horizon=False, base_timestamp=0, max_timestamp=0
    )


@examples(200)
@given(rows, st.sampled_from(Codec), st.booleans(), bounds, bounds, st.booleans())
def test_what_producers_write(
    rows: list[Any], codec: Codec, require_key: bool, earliest: Any, latest: Any, append: bool
) -> None:
    """All codecs, null keys, headers, times beyond the bounds and beyond 64 bits."""
    assume(all(-INT64 <= row[3] - rows[0][3] < INT64 for row in rows))
    batch = build_batch(rows, codec=codec, timestamp_type=int(append))
    compare_checks(batch, require_key, earliest, latest)
    for target in (Codec.NONE, Codec.LZ4):
        compare_recompression(batch, target)


@examples(500)
@given(rows, st.data())
def test_what_is_damaged(rows: list[Any], data: st.DataObject) -> None:
    """Bytes that are others, missing or too many; counts that are wrong."""
    assume(all(-INT64 <= row[3] - rows[0][3] < INT64 for row in rows))
    batch = build_batch(rows)
    block = batch[HEADER_SIZE:]
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(block) - 1))
        block[at] = data.draw(
            st.sampled_from((0, 1, 2, 3, 0x0F, 0x7F, 0x80, 0xC0, 0xFF)) | st.integers(0, 255)
        )
    kind = data.draw(st.sampled_from(("as it is", "cut", "longer", "inserted")))
    at = data.draw(st.integers(0, len(block)))
    if kind == "cut":
        del block[at:]
    elif kind == "longer":
        block += data.draw(st.binary(min_size=1, max_size=3))
    elif kind == "inserted":
        block[at:at] = data.draw(st.binary(min_size=1, max_size=3))
    count = len(rows) + data.draw(st.sampled_from((0, 0, 0, 1, -1)))
    damaged = batch_of(bytes(block), count)
    compare_checks(damaged, data.draw(st.booleans()), 0, 2**45)
    compare_recompression(damaged, Codec.NONE)
    damaged[57:61] = data.draw(st.sampled_from((-1, 0, 2**31 - 1))).to_bytes(4, "big", signed=True)
    compare_checks(damaged, False, None, None)


def wide(value: int, size: int) -> bytes:
    """A varint of so many bytes, more than it needs."""
    data = bytearray(encode_varint(value))
    while len(data) < size:
        data[-1] |= 0x80
        data.append(0)
    return bytes(data)


@examples(300)
@given(
    st.lists(st.sampled_from((1, 2, 3, 5, 6, 10, 11)), min_size=6, max_size=6),
    st.sampled_from((None, b"", b"k")),
    st.sampled_from((0, 1, 255)),
)
def test_numbers_in_more_bytes_than_they_need(
    sizes: list[int], key: bytes | None, attributes: int
) -> None:
    """Allowed up to 5 and 10 bytes, and not copied as they are."""
    body = bytes((attributes,)) + wide(0, sizes[1]) + wide(0, sizes[2])
    body += wide(-1 if key is None else len(key), sizes[3]) + (key or b"")
    body += wide(1, sizes[4]) + b"v" + wide(0, sizes[5])
    batch = batch_of(wide(len(body), sizes[0]) + body, 1)
    compare_checks(batch, True, None, None)
    compare_recompression(batch, Codec.NONE)


@given(st.binary(max_size=6))
def test_names_of_headers(name: bytes) -> None:
    """Python's strict UTF-8: of any bytes."""
    body = b"\0\0\0\x02k\x02v\x02" + encode_varint(len(name)) + name + b"\x01"
    compare_checks(batch_of(encode_varint(len(body)) + body, 1), False, None, None)


def test_each_lead_of_a_name() -> None:
    """Long forms, surrogates, beyond U+10FFFF, bytes that only follow: in C as in Python."""
    leads = [bytes((lead, 0x80)) for lead in range(0x80, 0x100)]
    leads += [bytes((lead, byte, 0x80)) for lead in (0xE0, 0xED, 0xEF) for byte in range(256)]
    leads += [bytes((lead, byte, 0x80, 0xBF)) for lead in range(0xF0, 0xF6) for byte in range(256)]
    assert COMPILED is not None
    for name in leads:
        body = b"\0\0\0\x02k\x02v\x02" + encode_varint(len(name)) + name + b"\x01"
        is_text = bool(name.decode(errors="ignore").encode() == name)
        block = encode_varint(len(body)) + body
        assert COMPILED.check_block(block, 1, 0, -INT64, INT64 - 1, True) is is_text, name


@pytest.mark.parametrize("count", [1, 5, 2000])
def test_what_clients_write_is_walked_in_c(count: int) -> None:
    """Else all of the above would hold of a function that always says no."""
    rows = [(b"key", b"v" * 50, (("trace", b"x"), ("naïve", None)), 5 + n) for n in range(count)]
    block = bytes(build_batch(rows)[HEADER_SIZE:])
    assert COMPILED is not None
    assert COMPILED.check_block(block, count, 5, 5, 5 + count, True)
    assert not COMPILED.check_block(block, count, 5, 6, 5 + count, True)
    assert not COMPILED.check_block(block, count, 5, 5, 3 + count, True)
    assert not COMPILED.check_block(block, count + 1, 5, 5, 5 + count, True)
    assert (len(block) > SHORT_BLOCK_BYTES) == (count == 2000)
    cut = COMPILED.cut_block(block, count, None, Times(5, None, None))
    assert cut is not None
    assert cut.block is block
    assert (cut.base_timestamp, cut.max_timestamp) == (5, 4 + count)
    later = COMPILED.cut_block(block, count, None, Times(5, None, 1))
    assert later is not None
    assert later.block != block


@examples(200)
@given(rows, st.data(), st.booleans())
def test_some_records_of_a_block(rows: list[Any], data: st.DataObject, append_time: bool) -> None:
    """With a horizon and without, by either kind of time: the bytes that building it anew gives."""
    assume(all(-(2**61) < row[3] < 2**61 for row in rows))
    batch = build_batch(rows, timestamp_type=int(append_time))
    header = read_header(batch)
    records = list(iterate_records(memoryview(batch), max_size=MIB))
    kept = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1), min_size=1)))
    horizon = data.draw(st.none() | st.sampled_from((rows[0][3], 2**45)))
    bits = sum(1 << index for index in kept).to_bytes((len(rows) + 7) // 8, "little")
    times = Times(header.base_timestamp, header.max_timestamp if append_time else None, horizon)
    assert COMPILED is not None
    cut = COMPILED.cut_block(bytes(batch[HEADER_SIZE:]), len(rows), bits, times)
    assert cut is not None
    expected = rebuild_batch(header, [records[index] for index in kept], delete_horizon_ms=horizon)
    assert cut.block == expected[HEADER_SIZE:]
    again = read_header(expected)
    assert (cut.base_timestamp, cut.max_timestamp) == (again.base_timestamp, again.max_timestamp)


def test_bits_must_be_enough() -> None:
    """C would read beyond them."""
    assert COMPILED is not None
    block = bytearray()
    for index in range(9):
        append_record(block, index, 0, b"k", b"v", ())
    with pytest.raises(ValueError, match="1 bytes of bits are too few for 9 records"):
        COMPILED.cut_block(bytes(block), 9, b"\xff", Times(0, None, None))
    assert COMPILED.cut_block(bytes(block), 9, b"\0\0", Times(0, None, None)) is None


def test_a_library_of_another_contract_is_refused() -> None:
    """Its arguments are others."""
    library: Any = SimpleNamespace(varve_rules_contract=Mock(return_value=99))
    with pytest.raises(ValueError, match="contract 99"):
        CompiledWalks(library)


def test_errors_of_records_are_python_s() -> None:
    """By index, as clients get them."""
    batch = build_batch([(b"k", b"v", (), 5), (None, b"v", (), 5), (b"k", b"v", (), 500)])
    assert compare_checks(batch, True, 0, 100) == [
        (1, "record without a key in a compacted topic"),
        (2, "timestamp 500 is out of range"),
    ]
