"""Deferred calls: they wait until a shard is active.

    wait ──┬── the shard is active ──> work(shard)
           ├── it will not be ───────> refuse(code)
           └── too long ─────────────> refuse(COORDINATOR_NOT_AVAILABLE)

Source of the idea: Kafka, PersisterStateManager.java (which retries with a back-off instead).
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final, Generic, NamedTuple, TypeVar

from broker.runtime.timer import Timer, TimerHandle
from protocol.error_codes import ErrorCode

logger = logging.getLogger(__name__)

DEFERRED_MAX: Final = 10_000
"""Most deferred calls of a topic's shards; further ones get COORDINATOR_NOT_AVAILABLE."""

Shard = TypeVar("Shard")

Refuse = Callable[[ErrorCode], None]


class _Call(NamedTuple, Generic[Shard]):
    work: Callable[[Shard], None]
    refuse: Refuse
    timeout: TimerHandle


class DeferredCalls(Generic[Shard]):
    """Deferred calls by partition; each ends once, in one of the three ways."""

    __slots__ = ("_calls", "_count", "_next_number", "_timeout_ms", "_timer")

    def __init__(self, timer: Timer, timeout_ms: float) -> None:
        self._timer = timer
        self._timeout_ms = timeout_ms
        # By partition and number, so that a time-out finds its call.
        self._calls: dict[int, dict[int, _Call[Shard]]] = {}
        self._count = 0
        self._next_number = 0

    def __len__(self) -> int:
        """Calls that wait."""
        return self._count

    @property
    def partitions(self) -> list[int]:
        """Partitions that calls wait for."""
        return list(self._calls)

    def wait(self, partition_index: int, work: Callable[[Shard], None], refuse: Refuse) -> None:
        """Call `work` with the partition's shard later, or `refuse`: at once if too many wait."""
        if self._count >= DEFERRED_MAX:
            refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        number = self._next_number
        self._next_number += 1
        timeout = self._timer.call_later_ms(
            self._timeout_ms, partial(self._time_out, partition_index, number)
        )
        self._calls.setdefault(partition_index, {})[number] = _Call(work, refuse, timeout)
        self._count += 1

    def _time_out(self, partition_index: int, number: int) -> None:
        calls = self._calls[partition_index]
        call = calls.pop(number)
        self._count -= 1
        if not calls:
            del self._calls[partition_index]
        call.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def serve(self, partition_index: int, shard: Shard) -> None:
        """Run the calls that wait for the shard, in order: it is active.

        A call that fails is refused with UNKNOWN_SERVER_ERROR; the others run all the same.
        """
        for call in self._taken(partition_index):
            try:
                call.work(shard)
            except Exception:
                logger.exception(
                    "request that waited for its coordinator failed partition=%d", partition_index
                )
                _refuse(call, ErrorCode.UNKNOWN_SERVER_ERROR)

    def refuse(self, partition_index: int, code: ErrorCode) -> None:
        """Refuse all calls that wait for the shard: there will be none."""
        for call in self._taken(partition_index):
            _refuse(call, code)

    def _taken(self, partition_index: int) -> list[_Call[Shard]]:
        taken = list(self._calls.pop(partition_index, {}).values())
        self._count -= len(taken)
        for call in taken:
            call.timeout.cancel()
        return taken


def _refuse(call: _Call[Shard], code: ErrorCode) -> None:
    try:
        call.refuse(code)
    except Exception:
        logger.exception(
            "request that waited for its coordinator could not be refused code=%s", code.name
        )
