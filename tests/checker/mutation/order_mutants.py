"""Seeded bugs of what is visible when, and written when: see `tests.checker.mutation.mutants`."""

import asyncio
import time
from typing import Any

from storage.types.append_info import AppendInfo
from tests.checker.mutation.seeding import RANDOM, replace


def only_newest_transaction_counts() -> None:
    """The last stable offset is that of the newest open transaction."""
    from storage.log.state import LogState

    def last_stable_offset(log: Any) -> int:
        high_watermark: int = log.high_watermark
        return min(high_watermark, max(log.producer_state._ongoing or (high_watermark,)))

    replace(LogState, "last_stable_offset", property(last_stable_offset))


def impatient_last_stable_offset() -> None:
    """The last stable offset waits 50 ms for a transaction, then passes over it."""
    from storage.log.state import LogState

    seen: dict[tuple[int, int], float] = {}

    def last_stable_offset(log: Any) -> int:
        high_watermark: int = log.high_watermark
        for first in sorted(log.producer_state._ongoing or ()):
            since = seen.setdefault((id(log), first), time.monotonic())
            if time.monotonic() - since < 0.05:
                return min(int(first), high_watermark)
        return high_watermark

    replace(LogState, "last_stable_offset", property(last_stable_offset))


def answered_before_written() -> None:
    """One producer in ten waits a second with its batches, long after it has told of success."""
    from broker.replicas.partition import Partition
    from storage.types.append_origin import AppendOrigin

    append = Partition.append
    held: dict[tuple[int, int], list[tuple[bytes, int]]] = {}

    def sometimes(
        partition: Any,
        records: memoryview,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        **named: Any,
    ) -> AppendInfo:
        producer_id = int.from_bytes(records[43:51], "big", signed=True)
        whose = (id(partition), producer_id)
        is_plain = origin is AppendOrigin.CLIENT and not records[22] & 0x10 and producer_id >= 0
        if not is_plain or (whose not in held and RANDOM.random() >= 0.1):
            return append(partition, records, now_ms, origin, **named)
        if whose not in held:
            held[whose] = []

            def write() -> None:
                for batch, then_ms in held.pop(whose):
                    append(partition, memoryview(batch), then_ms, origin)

            asyncio.get_running_loop().call_later(1.0, write)
        held[whose].append((bytes(records), now_ms))
        return AppendInfo(-1, -1, -1, partition.log.log_start_offset, False)

    replace(Partition, "append", sometimes)
