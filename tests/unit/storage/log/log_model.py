"""What the storage tests share: logs on the fake disk, batches, and reading a log back whole."""

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from config.topic import TopicConfig
from protocol.records.batch import HEADER_SIZE, crc_matches, iterate_batches
from protocol.records.builder import build_batch
from protocol.records.record import iterate_records
from storage.environment.environment import Environment
from storage.environment.filesystem import Filesystem
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.log.recovery.loaded_log import CheckpointedLog
from storage.types.append_info import AppendInfo
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition
from tests.fakes.clock import ManualClock

NOW_MS = 1_700_000_000_000
DIRECTORY = "/data/t-0"
TOPIC_PARTITION = TopicPartition("t", 0)
TOPIC_ID = UUID(int=7)


class Stored(NamedTuple):
    """A record as a consumer would see it."""

    offset: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Opened:
    """How a log is opened again: what its checkpoints would say."""

    recovery_point: int | None = 0
    log_start_offset: int = 0
    clean_shutdown: bool = False
    remote_offset: int = -1
    has_other_replicas: bool = False


def small_segments(segment_bytes: int = 400, **changes: object) -> TopicConfig:
    """Settings under which a few batches make several segments and index entries.

    Below what a user may set, so that a test needs few bytes.
    """
    defaults = TopicConfig()
    return defaults.model_copy(
        update={
            "segment_bytes": segment_bytes,
            "index_interval_bytes": 90,
            "file_delete_delay_ms": 1000,
            **changes,
        }
    )


def open_log(
    filesystem: Filesystem,
    config: TopicConfig | None = None,
    *,
    directory: str = DIRECTORY,
    clock: ManualClock | None = None,
    opened: Opened | None = None,
) -> Log:
    opened = opened or Opened()
    return Log.open(
        directory,
        TOPIC_PARTITION,
        topic_id=TOPIC_ID,
        config=config or small_segments(),
        environment=Environment.without_loop(
            filesystem=filesystem,
            clock=clock or ManualClock(NOW_MS),
            randomness=SeededRandomness(1),
        ),
        checkpointed=CheckpointedLog(
            recovery_point=opened.recovery_point,
            log_start_offset=opened.log_start_offset,
            clean_shutdown=opened.clean_shutdown,
            remote_offset=opened.remote_offset,
            has_other_replicas=opened.has_other_replicas,
        ),
    )


def make_batch(
    *values: bytes,
    timestamp_ms: int = NOW_MS,
    codec: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    key: bytes | None = b"k",
) -> memoryview:
    """One batch as a client sends it, a record per value."""
    return memoryview(
        build_batch(
            [(key, value, (), timestamp_ms) for value in values],
            codec=codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            transactional=transactional,
        )
    )


def append(
    log: Log,
    batch: memoryview,
    *,
    leader_epoch: int = 0,
    now_ms: int = NOW_MS,
    origin: AppendOrigin = AppendOrigin.CLIENT,
) -> AppendInfo:
    """Append as a leader on one node does: at once committed."""
    info = log.writer.append_as_leader(
        batch, leader_epoch=leader_epoch, now_ms=now_ms, origin=origin
    )
    log.update_high_watermark(log.log_end_offset)
    return info


def read_batches(log: Log, *, max_bytes: int = 1 << 20, has_gaps: bool = False) -> list[bytes]:
    """All batches from the log start, sums checked, each read as a consumer goes along.

    `has_gaps`: the log was compacted, whatever its settings say.
    """
    batches: list[bytes] = []
    offset = log.log_start_offset
    while True:
        found = log.reader.read(
            offset, max_bytes=max_bytes, end_offset=log.log_end_offset, min_one_batch=True
        )
        if found is None:
            assert offset >= log.log_end_offset or not batches or has_gaps or _is_gap(log, offset)
            return batches
        data = memoryview(found.file.read_at(found.length, found.position))
        assert len(data) == found.length >= HEADER_SIZE
        for position, header in iterate_batches(data):
            assert crc_matches(data, position, header)
            assert header.next_offset > offset or header.next_offset > log.log_start_offset
            batches.append(bytes(data[position : position + header.size]))
            offset = header.next_offset


def _is_gap(log: Log, offset: int) -> bool:
    return "compact" in log.config.cleanup_policy and offset <= log.log_end_offset


def read_records(log: Log, *, max_bytes: int = 1 << 20) -> list[Stored]:
    """All records at or above the log start."""
    records = []
    for batch in read_batches(log, max_bytes=max_bytes):
        records += [
            Stored(record.offset, record.key, record.value)
            for record in iterate_records(memoryview(batch), max_size=1 << 20)
            if record.offset >= log.log_start_offset
        ]
    return records
