"""What is known of the dirty part of a log, once it was read."""

import pytest

from protocol.records.batch import BatchHeader, read_header
from protocol.records.builder import build_batch, rebuild_batch
from protocol.records.record import Record, iterate_records
from storage.cleaner.cleaning import CleanerStats
from storage.cleaner.dirty_part import DirtyPart
from storage.cleaner.offset_map import OffsetMap

Row = tuple[bytes | None, bytes | None]


def batch_of(offset: int, *rows: Row, transactional: bool = False) -> bytearray:
    return build_batch(
        [(key, value, (), 0) for key, value in rows],
        base_offset=offset,
        producer_id=5 if transactional else -1,
        transactional=transactional,
    )


def read(
    *batches: bytearray, start: int = 0, keys_max: int = 50, map_bytes: int = 8192
) -> DirtyPart:
    """A dirty part of these batches."""
    dirty = DirtyPart(OffsetMap(8192), keys_max, start, CleanerStats())
    for batch in batches:
        if dirty.add(read_header(batch), memoryview(batch)):
            break
        dirty.map.latest_offset = read_header(batch).last_offset
    dirty.finish()
    return dirty


def latest(dirty: DirtyPart, *batches: bytearray) -> list[list[int] | None]:
    found = [dirty.latest_within(read_header(batch)) for batch in batches]
    return [None if some is None else list(some) for some in found]


def value(*keys: bytes) -> list[Row]:
    return [(key, b"v") for key in keys]


def test_the_last_records_of_their_keys_are_known() -> None:
    """Across batches, by the offset's distance from the batch's first."""
    batches = (
        batch_of(0, *value(b"a", b"b", b"a", b"c")),
        batch_of(4, *value(b"d", b"e")),
        batch_of(6, *value(b"c", b"a")),
    )
    assert latest(read(*batches), *batches) == [[1], [0, 1], [0, 1]]


def test_many_batches_at_odd_offsets() -> None:
    """Each offset has its own bit."""
    batches = [batch_of(index * 3, *value(b"x", b"%d" % index, b"x")) for index in range(40)]
    expected = [[1]] * 39 + [[1, 2]]
    assert latest(read(*batches), *batches) == expected


def test_tombstones_are_looked_into_where_any_record_may_stay() -> None:
    """They may have to go all the same; a batch of which nothing stays needs no look."""
    first = batch_of(0, (b"a", None), (b"b", b"v"))
    second = batch_of(2, (b"c", None))
    last = batch_of(3, *value(b"a", b"b"))
    assert latest(read(first, second, last), first, second, last) == [[], None, [0, 1]]


def test_records_without_key_are_looked_into() -> None:
    """They are counted."""
    first = batch_of(0, (None, b"x"))
    assert latest(read(first), first) == [None]


def test_transactional_batches_are_looked_into() -> None:
    """Whether this one was read depends on what was known of its transaction."""
    first = batch_of(0, *value(b"a"), transactional=True)
    assert latest(read(first), first) == [None]


def test_outside_of_what_was_read_nothing_is_known() -> None:
    """Before the first dirty offset, and beyond a full map."""
    batches = [batch_of(index * 2, *value(b"%d" % index, b"x%d" % index)) for index in range(4)]
    dirty = read(*batches[:3], start=3, keys_max=2)
    assert dirty.map.latest_offset == 4
    assert latest(dirty, *batches) == [None, None, None, None]
    dirty = read(*batches[:3], start=2)
    assert latest(dirty, *batches) == [None, [0, 1], [0, 1], None]


def test_a_full_map_ends_within_a_batch() -> None:
    """And says where."""
    first, second = batch_of(0, *value(b"a", b"b")), batch_of(2, *value(b"c", b"a", b"d"))
    dirty = DirtyPart(OffsetMap(8192), 3, 0, CleanerStats())
    assert not dirty.add(read_header(first), memoryview(first))
    assert dirty.add(read_header(second), memoryview(second))
    assert dirty.map.latest_offset == 2
    assert len(dirty.map) == 3


@pytest.mark.parametrize("offsets", [(0, 0), (0, 2, 1), (0, 9)])
def test_offsets_out_of_order_are_not_relied_on(offsets: tuple[int, ...]) -> None:
    """Equal, falling, or beyond the batch: then every record is looked up."""
    header = read_header(batch_of(0, *value(b"a", b"b", b"c")))
    records = [Record(offset, 0, b"a", b"v") for offset in offsets]
    odd = rebuild_batch(header, records)
    assert [r.offset for r in iterate_records(memoryview(odd), max_size=1000)] == list(offsets)
    assert latest(read(odd), odd) == [None]
    sound = rebuild_batch(header, [Record(offset, 0, b"%d" % offset, b"v") for offset in (0, 2)])
    assert latest(read(sound), sound) == [[0, 2]]


def test_batches_out_of_order_are_not_relied_on() -> None:
    """One that begins before the last one ended."""
    first, second = batch_of(0, *value(b"a", b"b")), batch_of(1, *value(b"c"))
    assert latest(read(first, second), first, second) == [None, None]


def test_offsets_too_far_apart_get_no_bits() -> None:
    """Memory is bounded, whatever they are."""
    first, last = batch_of(0, *value(b"a")), batch_of(1 << 40, *value(b"b"))
    assert latest(read(first, last), first, last) == [None, None]
    assert latest(read(start=100), first) == [None]


def test_headers_alone_suffice() -> None:
    """The bytes of a batch are not asked for a second time."""
    batch = batch_of(0, *value(b"a", b"b"))
    dirty = read(batch)
    header = BatchHeader(*read_header(batch))
    batch[61:] = bytes(len(batch) - 61)
    assert dirty.latest_within(header) == range(2)
