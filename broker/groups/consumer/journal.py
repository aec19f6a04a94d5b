"""Writes the changes of consumer and share groups, and answers when they are committed.

A heartbeat that changes nothing still tells what the group is like; when that is not committed yet
the answer waits for it, so that nobody hears of something that a crash undoes.

Source: Kafka, CoordinatorRuntime.java (deferred events).
"""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from broker.groups.log_value import log_value
from broker.groups.offsets_log import Done, KeyValue, OffsetsLog
from protocol.error_codes import ErrorCode

logger = logging.getLogger(__name__)

BATCH_SIZE_MAX = 512 * 1024
"""Bytes of keys and values in one batch; a topic's default allows a little less than a megabyte."""


class Unwritten(Protocol):
    """What of a group is not committed yet.

    Attributes:
        unwritten: Writes that are on their way.
        behind_writes: Answers that must not be seen before these are committed.
    """

    unwritten: int
    behind_writes: list[Done]


class Journaled(Protocol):
    """A group whose changes are made when they are written, not when they are committed."""

    group_id: str

    @property
    def work(self) -> Unwritten:
        """What is under way for it."""
        ...


class Journal:
    """Writes of one shard's groups."""

    def __init__(self, log: OffsetsLog, give_up: Callable[[], None]) -> None:
        """`give_up` is called when the log has refused what was changed here already."""
        self._log = log
        self._give_up = give_up

    def write(self, group: Journaled, records: Sequence[KeyValue], done: Done) -> None:
        """Append records, all of which describe changes already made; `done` once committed."""
        work = group.work
        if not records:
            if work.unwritten:
                work.behind_writes.append(done)
            else:
                done(ErrorCode.NONE)
            return
        batches = list(_batches(records))
        work.unwritten += len(batches)
        for batch in batches[:-1]:
            self._append(group, batch, _nobody)
        self._append(group, batches[-1], done)

    def _append(self, group: Journaled, batch: Sequence[KeyValue], done: Done) -> None:
        work = group.work
        is_told = False

        def release(code: ErrorCode) -> None:
            behind, work.behind_writes = work.behind_writes, []
            for answer in behind:
                answer(code)

        def settled(code: ErrorCode) -> None:
            work.unwritten -= 1
            if is_told and not work.unwritten:
                release(code)

        def committed(base_offset: int) -> None:
            settled(ErrorCode.NONE)

        def refused() -> None:
            settled(ErrorCode.NOT_COORDINATOR)
            self._give_up()

        def written(code: ErrorCode) -> None:
            # Not committed in time is not yet refused: what was changed stays unwritten until the
            # log has decided.
            nonlocal is_told
            is_told = True
            if code is not ErrorCode.NONE:
                logger.warning(
                    "group change not recorded group=%s error=%s",
                    log_value(group.group_id),
                    code.name,
                )
            done(code)
            if code is not ErrorCode.NONE or not work.unwritten:
                release(code)

        self._log.append(batch, committed, written, refused=refused)


def _batches(records: Sequence[KeyValue]) -> "list[Sequence[KeyValue]]":
    batches: list[Sequence[KeyValue]] = []
    start = size = 0
    for position, (key, value) in enumerate(records):
        record_size = len(key) + (0 if value is None else len(value))
        if size and size + record_size > BATCH_SIZE_MAX:
            batches.append(records[start:position])
            start, size = position, 0
        size += record_size
    batches.append(records[start:])
    return batches


def _nobody(code: ErrorCode) -> None:
    """Nobody waits for this batch: the last one of the change is answered."""
