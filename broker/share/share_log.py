"""Writes of the share coordinator to one partition of `__share_group_state`.

append ──┬── written ───> the shard has it at once; told when committed
         ├── refused ───> nothing has changed, told why
         └── written, and nobody knows whether it will stay ──> closed and given up: read anew
"""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from broker.groups.offsets_log import code_for_clients
from broker.share.share_shard import Record, ShareShard, encode_record
from protocol.error_codes import ErrorCode
from protocol.records.builder import build_batch
from storage.environment.clock import Clock
from storage.types.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

Done = Callable[[ErrorCode], None]


class CoordinatedAppender(Protocol):
    """The part of the replica manager that the share coordinator writes through."""

    def append_coordinated(
        self,
        topic_partition: TopicPartition,
        batch: bytearray,
        on_committed: Callable[[ErrorCode, int], None],
        *,
        timeout_ms: float,
    ) -> int:
        """Append; the base offset, or -1 where nothing was written. Calls back once."""
        ...


class ShareLog:
    """See the module."""

    __slots__ = (
        "_appender",
        "_clock",
        "_give_up",
        "_shard",
        "_timeout_ms",
        "is_closed",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        shard: ShareShard,
        *,
        appender: CoordinatedAppender,
        clock: Clock,
        timeout_ms: float,
        give_up: Callable[[], None],
    ) -> None:
        self.topic_partition = topic_partition
        self.is_closed = False
        self._shard = shard
        self._appender = appender
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._give_up = give_up

    def write(self, records: Sequence[Record], done: Done) -> None:
        """Append the records and take them in; `done(NONE)` when they are committed."""
        if self.is_closed:
            done(ErrorCode.NOT_COORDINATOR)
            return
        now_ms = self._clock.now_ms()
        batch = build_batch([(*encode_record(record), (), now_ms) for record in records])
        # Whoever is told that a record is committed may ask what it has changed: it is taken in
        # first, although the log may call back before it returns.
        early: list[ErrorCode] = []
        is_applied = False

        def committed(code: ErrorCode, _base_offset: int) -> None:
            if is_applied:
                self._settled(done, code)
            else:
                early.append(code)

        base_offset = self._appender.append_coordinated(
            self.topic_partition, batch, committed, timeout_ms=self._timeout_ms
        )
        is_applied = base_offset >= 0
        if is_applied:
            for place, record in enumerate(records):
                self._shard.apply(record, base_offset + place)
        for code in early:
            if is_applied:
                self._settled(done, code)
            else:
                done(code_for_clients(code))

    def close(self) -> None:
        """Somebody else goes on from here."""
        self.is_closed = True

    def _settled(self, done: Done, code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            done(ErrorCode.NOT_COORDINATOR if self.is_closed else code)
            return
        logger.warning("record may be lost partition=%s error=%s", self.topic_partition, code.name)
        if not self.is_closed:
            self.close()
            self._give_up()
        done(code_for_clients(code))
