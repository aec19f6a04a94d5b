"""Rows of pieces, as plainly as can be: the rules of `pipeline.plan.piece` and nothing else."""

from collections.abc import Iterable

from pipeline.plan.bucket import Bucket
from pipeline.plan.piece import RemotePiece
from protocol.records.batch import iterate_batches
from protocol.records.record import iterate_records
from tests.unit.pipeline.plan.bucket_world import Row
from tiered.format.manifest import MANIFEST_BYTES_MAX, SegmentManifest
from tiered.format.object_keys import ObjectKeys
from tiered.segment_metadata import RemoteLogSegmentId, TopicIdPartition
from tiered.storage_manager.workspace import Workspace


async def read_rows(bucket: Bucket, pieces: Iterable[RemotePiece]) -> list[Row]:
    """Rows of pieces, in their order."""
    rows: list[Row] = []
    for piece in pieces:
        rows += _rows(await _bytes_of(bucket, piece), piece)
    return rows


def _rows(data: bytes, piece: RemotePiece) -> list[Row]:
    rows = []
    end = 0
    for position, header in iterate_batches(memoryview(data)):
        end = position + header.size
        if header.is_control or any(
            header.is_transactional
            and header.producer_id == one.producer_id
            and one.first_offset <= header.base_offset <= one.last_offset
            for one in piece.aborted
        ):
            continue
        batch = memoryview(data)[position:end]
        rows += [
            Row(record.offset, record.value)
            for record in iterate_records(batch, max_size=1 << 20)
            if piece.start_offset <= record.offset < piece.end_offset
        ]
    assert end == len(data), "a piece ends where a batch does"
    return rows


async def _bytes_of(bucket: Bucket, piece: RemotePiece) -> bytes:
    partition = TopicIdPartition(
        piece.partition.topic_id, piece.partition.topic, piece.partition.partition
    )
    segment_id = RemoteLogSegmentId(partition, piece.segment_id)
    keys = ObjectKeys().keys_of(segment_id, piece.segment_start_offset)
    data = await bucket.store.get(keys.manifest, max_bytes=MANIFEST_BYTES_MAX)
    metadata = SegmentManifest.from_json(data, keys.manifest).metadata
    opened = await bucket.reader.opened(metadata, keys)
    log = b""
    for number in range(opened.manifest.chunk_index.count):
        log += bytes(await bucket.reader.read_chunk(opened, keys, number, Workspace()))
    return log[piece.position : piece.end_position]
