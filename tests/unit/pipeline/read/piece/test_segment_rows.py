from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan.piece import AbortedRange, RemotePiece
from pipeline.read.decode.row_decoder import RowDecoder
from pipeline.read.decode.row_schema import COLUMNS
from pipeline.read.loss import LossReport
from pipeline.read.piece.segment_rows import SegmentRows
from pipeline.read.read_errors import DamagedBatchError, DamagedDataError
from protocol.records.batch import update_crc
from protocol.records.compression import Codec
from tests.effort import examples
from tests.fakes.tiered.memory_object_store import FOREVER, Fault, StoredObject
from tests.unit.pipeline.read.batches import expected
from tests.unit.pipeline.read.segment_world import (
    PARTITION,
    SegmentWorld,
    piece_of,
    plugin_objects_of,
    record_segment,
    segment_world,
)
from tests.unit.tiered.format.closed_segments import Segment
from tiered.errors import ObjectNotFoundError, RemoteStorageError

CHUNK = 1000

FORMS: list[dict[str, Any]] = [
    {},
    {"compression": True},
    {"encryption": True},
    {"compression": True, "encryption": True},
]


def rows_of(
    world: SegmentWorld,
    piece: RemotePiece,
    loss: LossReport | None = None,
    *,
    read_committed: bool = False,
) -> dict[str, list[Any]]:
    """Rows by column; timestamps as ms."""
    decoder = RowDecoder(COLUMNS, PARTITION, tier="bucket")
    reader = SegmentRows(
        piece, world.lent, decoder, world.tier.disk, loss, read_committed=read_committed
    )
    rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for batch in reader.rows():
        for name in COLUMNS:
            column = batch.column(name)
            rows[name] += (column.view("int64") if name == "timestamp" else column).to_pylist()
    assert reader.next_offset == piece.end_offset
    return rows


def right(segment: Segment, piece: RemotePiece, *, read_committed: bool = False) -> Any:
    """What `iterate_records` says of the same log."""
    rows, broken = expected(
        bytes(segment.log),
        start=piece.start_offset,
        end=piece.end_offset,
        aborted=piece.aborted,
        read_committed=read_committed,
    )
    assert broken is None
    names = {"topic": PARTITION.topic, "partition": PARTITION.partition, "tier": "bucket"}
    count = len(rows["offset"])
    return rows | {name: [value] * count for name, value in names.items()}


def spoil(world: SegmentWorld, piece: RemotePiece, position: int) -> None:
    """Flip a bit of the stored log for good."""
    key = world.open(piece).keys.log
    data = bytearray(world.store.objects[key].data)
    data[position] ^= 1
    world.store.objects[key] = StoredObject(bytes(data), 0)


@examples(50)
@given(data=st.data())
def test_rows_are_those_of_iterate_records(data: st.DataObject) -> None:
    """Whatever the chunks, the codec, the form and the range of offsets are."""
    codec = data.draw(st.sampled_from(Codec))
    segment = record_segment(data.draw(st.integers(1, 12)), codec=codec)
    form = data.draw(st.sampled_from(FORMS))
    chunk_bytes = data.draw(st.integers(1, len(segment.log) + 10))
    told = segment.metadata
    start = data.draw(st.integers(told.start_offset, told.end_offset))
    end = data.draw(st.integers(start, told.end_offset + 1))
    with segment_world(**form, chunk_bytes=chunk_bytes) as world:
        piece = world.copy(segment)._replace(start_offset=start, end_offset=end)
        assert rows_of(world, piece) == right(segment, piece)


@examples(50)
@given(data=st.data())
def test_rows_of_another_programs_segment_are_the_same(data: st.DataObject) -> None:
    segment = record_segment(data.draw(st.integers(1, 12)))
    with segment_world() as world:
        piece = plugin_objects_of(
            world,
            segment,
            chunk_size=data.draw(st.integers(1, len(segment.log) + 10)),
            compression=data.draw(st.booleans()),
            encryption=data.draw(st.booleans()),
        )
        assert rows_of(world, piece) == right(segment, piece)


def test_pieces_between_positions_give_every_row_once() -> None:
    """Cut behind batches that the index knows: a piece ends behind one, the next begins with it."""
    segment = record_segment(30)
    positions = [at for at, _ in segment.batches]
    with segment_world(chunk_bytes=CHUNK) as world:
        whole = world.copy(segment)
        offsets = []
        begin, start = 0, 1000
        for number in (7, 17, 29):
            end = segment.batches[number][1] + 1
            behind = positions[number + 1] if number < 29 else len(segment.log)
            piece = whole._replace(
                position=begin, end_position=behind, start_offset=start, end_offset=end
            )
            offsets += rows_of(world, piece)["offset"]
            begin, start = positions[number], end
        assert offsets == right(segment, whole)["offset"]


def test_nothing_is_read_beyond_the_rows_that_are_wanted() -> None:
    """The piece ends where the index allows, the rows before."""
    segment = record_segment(100, value_bytes=1000)
    with segment_world(chunk_bytes=10_000) as world:
        piece = world.copy(segment)._replace(end_offset=segment.metadata.start_offset + 5)
        rows_of(world, piece)
        asked = world.store.calls["get_range"]
        assert asked < 10


def test_aborted_transactions_are_out_when_committed_rows_are_wanted() -> None:
    segment = record_segment(6)
    for number in (2, 3):
        at = segment.batches[number][0]
        view = memoryview(segment.log)
        segment.log[at + 21 : at + 23] = (0x10).to_bytes(2, "big")
        segment.log[at + 43 : at + 51] = (7).to_bytes(8, "big")
        update_crc(view, at, segment.batches[number + 1][0] - at)
        view.release()
    start = segment.metadata.start_offset
    with segment_world(chunk_bytes=CHUNK) as world:
        ranges = [AbortedRange(7, start + 20, start + 35)]
        piece = world.copy(segment)._replace(aborted=ranges)
        found = rows_of(world, piece, read_committed=True)
        assert found == right(segment, piece, read_committed=True)
        assert len(found["offset"]) == 40
        assert len(rows_of(world, piece)["offset"]) == 60


# -- damage ---------------------------------------------------------------------------------------


def test_damage_is_an_error_with_object_and_position() -> None:
    segment = record_segment(30)
    with segment_world(chunk_bytes=CHUNK) as world:
        piece = world.copy(segment)
        spoil(world, piece, 2 * CHUNK + 77)
        with pytest.raises(DamagedDataError, match="chunk 2 fails its CRC") as error:
            rows_of(world, piece)
        assert error.value.key == world.open(piece).keys.log
        assert error.value.position == 2 * CHUNK


@pytest.mark.parametrize("form", FORMS)
def test_a_damaged_chunk_is_left_out_up_to_a_batch_the_index_knows(form: dict[str, Any]) -> None:
    segment = record_segment(30, index_every=3)
    with segment_world(**form, chunk_bytes=CHUNK) as world:
        piece = world.copy(segment)
        spoil(world, piece, world.open(piece).manifest.chunk(2).stored_position + 40)
        loss = LossReport(PARTITION)
        found = rows_of(world, piece, loss)["offset"]
        # The batch before the chunk's first byte, and the first that the index has behind it.
        before = max(last for at, last in segment.batches if at + 500 < 2 * CHUNK and last)
        first_lost = next(offset for offset in range(1000, 1300) if offset not in set(found))
        indexed = [at for number, (at, _) in enumerate(segment.batches) if number % 3 == 2]
        behind = next(at for at in indexed if at >= 3 * CHUNK)
        number = [at for at, _ in segment.batches].index(behind)
        again = segment.batches[number - 1][1] + 1
        assert found == [*range(1000, first_lost), *range(again, 1300)]
        assert first_lost <= before + 11
        assert [(one.start, one.end) for one in loss.ranges] == [(first_lost, again)]
        assert "chunk 2" in loss.ranges[0].reason


def test_without_an_index_the_rest_of_the_piece_is_left_out() -> None:
    segment = record_segment(30, index_every=1000)
    with segment_world(chunk_bytes=CHUNK) as world:
        piece = world.copy(segment)
        spoil(world, piece, 5 * CHUNK)
        loss = LossReport(PARTITION)
        found = rows_of(world, piece, loss)["offset"]
        assert found
        assert [(one.start, one.end) for one in loss.ranges] == [(found[-1] + 1, 1300)]


def test_an_index_that_is_damaged_too_is_as_none() -> None:
    segment = record_segment(30, index_every=3)
    with segment_world(chunk_bytes=CHUNK) as world:
        piece = world.copy(segment)
        keys = world.open(piece).keys
        spoil(world, piece, CHUNK)
        world.store.fail("get_range", Fault.WRONG_BYTES, key=keys.indexes, times=FOREVER)
        loss = LossReport(PARTITION)
        found = rows_of(world, piece, loss)["offset"]
        assert loss.ranges[0].end == 1300
        assert len(found) < 300


def test_several_damaged_chunks_are_several_ranges() -> None:
    segment = record_segment(60, index_every=1)
    with segment_world(chunk_bytes=CHUNK) as world:
        piece = world.copy(segment)
        for number in (1, 6, 12):
            spoil(world, piece, number * CHUNK + 5)
        loss = LossReport(PARTITION)
        found = rows_of(world, piece, loss)["offset"]
        assert len(loss.ranges) == 3
        assert len(found) + loss.offsets == 600
        assert not any(one.start <= offset < one.end for one in loss.ranges for offset in found)


def test_a_batch_whose_records_are_no_records_is_left_out_alone() -> None:
    """The chunk's sum fits: somebody wrote it so."""
    segment = record_segment(30)
    at = segment.batches[4][0]
    segment.log[at + 61] = 0x7F
    view = memoryview(segment.log)
    update_crc(view, at, segment.batches[5][0] - at)
    view.release()
    with segment_world(chunk_bytes=CHUNK) as world:
        piece = world.copy(segment)
        with pytest.raises(DamagedBatchError, match="of the segment's log") as error:
            rows_of(world, piece)
        assert (error.value.position, error.value.log_position) == (at, at)
        loss = LossReport(PARTITION)
        found = rows_of(world, piece, loss)["offset"]
        assert found == [*range(1000, 1040), *range(1050, 1300)]
        assert [(one.start, one.end) for one in loss.ranges] == [(1040, 1050)]


def test_a_damaged_manifest_leaves_the_whole_piece_out() -> None:
    with segment_world() as world:
        piece = world.copy(record_segment(30))
        world.store.fail("get", Fault.WRONG_BYTES, times=FOREVER)
        with pytest.raises(DamagedDataError, match="the manifest fails its CRC"):
            rows_of(world, piece)
        loss = LossReport(PARTITION)
        assert rows_of(world, piece, loss)["offset"] == []
        assert [(one.start, one.end) for one in loss.ranges] == [(1000, 1300)]


def test_damage_behind_the_rows_that_are_wanted_is_not_met() -> None:
    segment = record_segment(30)
    with segment_world(chunk_bytes=CHUNK) as world:
        piece = world.copy(segment)._replace(end_offset=1020)
        spoil(world, piece, len(segment.log) - 5)
        assert rows_of(world, piece)["offset"] == [*range(1000, 1020)]


# -- without sums of chunks -----------------------------------------------------------------------


@pytest.mark.parametrize("compression", [False, True])
def test_a_batch_that_came_damaged_is_fetched_once_more(compression: bool) -> None:
    segment = record_segment(30, codec=Codec.NONE)
    with segment_world() as world:
        piece = plugin_objects_of(world, segment, chunk_size=CHUNK, compression=compression)
        world.store.fail("get_range", Fault.WRONG_BYTES)
        assert rows_of(world, piece) == right(segment, piece)


def test_a_batch_that_is_damaged_twice_is_an_error_or_left_out() -> None:
    segment = record_segment(30, index_every=3)
    at, last = segment.batches[10]
    with segment_world() as world:
        piece = plugin_objects_of(world, segment, chunk_size=CHUNK)
        spoil(world, piece, at + 70)
        with pytest.raises(DamagedBatchError, match="a batch fails its CRC") as error:
            rows_of(world, piece)
        assert error.value.position == at
        loss = LossReport(PARTITION)
        found = rows_of(world, piece, loss)["offset"]
        assert found == [*range(1000, last - 9), *range(last + 1, 1300)]
        assert [(one.start, one.end) for one in loss.ranges] == [(last - 9, last + 1)]


def test_offsets_without_a_sum_that_lie_are_damage() -> None:
    segment = record_segment(30)
    at, _ = segment.batches[10]
    with segment_world() as world:
        piece = plugin_objects_of(world, segment, chunk_size=CHUNK)
        spoil(world, piece, at + 6)
        with pytest.raises(DamagedBatchError, match="may be"):
            rows_of(world, piece)


# -- not there ------------------------------------------------------------------------------------


def test_an_object_that_goes_while_it_is_read_is_told_with_how_far_it_was() -> None:
    segment = record_segment(70, value_bytes=50_000)
    with segment_world(chunk_bytes=1 << 20) as world:
        piece = world.copy(segment)
        reader = SegmentRows(
            piece,
            world.lent,
            RowDecoder(["offset"], PARTITION),
            world.tier.disk,
            None,
            read_committed=False,
        )
        rows = reader.rows()
        offsets = next(rows).column("offset").to_pylist()
        world.store.objects.clear()
        with pytest.raises(ObjectNotFoundError):
            offsets.extend(offset for row in rows for offset in row.column(0).to_pylist())
        assert 1000 < reader.next_offset < piece.end_offset
        assert offsets == [*range(1000, reader.next_offset)]


def test_a_store_that_cannot_be_reached_is_no_loss() -> None:
    with segment_world() as world:
        piece = world.copy(record_segment(30))
        world.store.fail("get_range", Fault.UNAVAILABLE, times=FOREVER)
        loss = LossReport(PARTITION)
        with pytest.raises(RemoteStorageError):
            rows_of(world, piece, loss)
        assert loss.offsets == 0


@pytest.mark.parametrize("form", FORMS)
def test_chunks_that_are_too_large_to_be_held_give_the_same(
    form: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.read.piece.segment_rows.WHOLE_CHUNK_BYTES_MAX", CHUNK - 1)
    segment = record_segment(30)
    with segment_world(**form, chunk_bytes=CHUNK) as world:
        piece = world.copy(segment)
        assert rows_of(world, piece) == right(segment, piece)
        spoil(world, piece, world.open(piece).manifest.chunk(2).stored_position + 40)
        loss = LossReport(PARTITION)
        found = rows_of(world, piece, loss)["offset"]
        assert len(found) + loss.offsets == 300


def test_a_directory_is_read_from_its_files() -> None:
    segment = record_segment(30)
    with segment_world(chunk_bytes=CHUNK) as world:
        piece = world.copy(segment)
        keys = world.open(piece).keys
        disk = world.tier.disk
        disk.replace_bytes("/object", world.store.objects[keys.log].data)
        world.store.local_path = lambda key: "/object"  # type: ignore[method-assign]  # as files
        assert rows_of(world, piece_of(segment.metadata)) == right(segment, piece)
        assert world.store.calls["get_range"] == 0
