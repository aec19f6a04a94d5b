"""`__share_group_state` in memory: the part of the replica manager that the share coordinator sees.

Appends are committed at once, with `hold` when `commit_held` is called. `fail_with`: refused,
nothing is written. `time_out`: written, but nobody is told.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from protocol.error_codes import ErrorCode
from protocol.records.batch import read_header, set_offset_and_epoch
from storage.types.topic_partition import TopicPartition

OnCommitted = Callable[[ErrorCode, int], None]


class _Log:
    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.failure: Exception | None = None

    @property
    def next_offset(self) -> int:
        return self.log_end_offset

    def delete_records(self, offset: int) -> int:
        self.log_start_offset = offset
        return offset


class FakeShareStateLog:
    """See the module."""

    def __init__(self, partitions: int = 1) -> None:
        self.logs = [_Log() for _ in range(partitions)]
        self.hold = False
        self.time_out = False
        self.fail_with: ErrorCode | None = None
        self.held: list[tuple[int, OnCommitted]] = []
        self.is_there = True

    def append_coordinated(
        self,
        topic_partition: TopicPartition,
        batch: bytearray,
        on_committed: OnCommitted,
        *,
        terms: Any = None,
        timeout_ms: float = 0,
    ) -> int:
        if self.fail_with is not None:
            on_committed(self.fail_with, -1)
            return -1
        log = self.logs[topic_partition.partition]
        base_offset = log.log_end_offset
        set_offset_and_epoch(memoryview(batch), 0, base_offset, 0)
        log.batches.append(bytes(batch))
        log.log_end_offset = read_header(memoryview(batch)).next_offset
        if self.time_out:
            on_committed(ErrorCode.REQUEST_TIMED_OUT, -1)
        elif self.hold:
            self.held.append((base_offset, on_committed))
        else:
            log.high_watermark = log.log_end_offset
            on_committed(ErrorCode.NONE, base_offset)
        return base_offset

    def commit_held(self, code: ErrorCode = ErrorCode.NONE) -> None:
        held, self.held = self.held, []
        for log in self.logs:
            log.high_watermark = log.log_end_offset
        for base_offset, on_committed in held:
            on_committed(code, base_offset)

    def get_partition(self, topic: str, index: int) -> SimpleNamespace | None:
        if not self.is_there or index >= len(self.logs):
            return None
        return SimpleNamespace(log=self.logs[index], leader_epoch=0)

    async def read_internal(self, tp: TopicPartition, offset: int, max_bytes: int) -> memoryview:
        log = self.logs[tp.partition]
        taken = bytearray()
        for batch in log.batches:
            if read_header(memoryview(batch)).last_offset >= offset and (
                not taken or len(taken) + len(batch) <= max_bytes
            ):
                taken += batch
        return memoryview(taken)
