"""The journal of consumer and share groups: it writes changes, and responds once they commit.

A heartbeat that changes nothing still returns the group's state; when that is not committed yet the
response waits for it, so that no client sees a state that a crash undoes.

Source: Kafka, CoordinatorRuntime.java (deferred events).
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from broker.coordinator.outcome import Done, KeyValue
from broker.coordinator.shard_log import ShardLog
from broker.groups.modern.modern_group import AnyModernGroup
from broker.runtime.log_value import log_value
from protocol.error_codes import ErrorCode

logger = logging.getLogger(__name__)

BATCH_SIZE_MAX = 512 * 1024
"""Bytes of keys and values in one batch; a topic's default allows a little less than a megabyte."""

GATHERED_SIZE_MAX = 128 * 1024
"""Bytes of changes that share a batch; a larger one has its own."""


class Journal:
    """The journal of one shard's groups."""

    def __init__(self, log: ShardLog) -> None:
        """`log` is failed when it has refused changes that were made in memory already."""
        self._log = log
        self._fail_log = log.fail
        self._gathered: list[_Change] | None = None

    def write(self, group: AnyModernGroup, records: Sequence[KeyValue], done: Done) -> None:
        """Append records, all of which describe changes already made; `done` once committed."""
        work = group.work
        if not records:
            if work.unwritten:
                work.behind_writes.append(done)
            else:
                done(ErrorCode.NONE)
            return
        size = _size_of(records)
        if self._gathered is not None and size <= GATHERED_SIZE_MAX:
            work.unwritten += 1
            self._gathered.append(_Change(group, records, size, done, self._fail_log))
            return
        self._append_gathered()
        batches = list(_batches(records)) if size > BATCH_SIZE_MAX else [records]
        work.unwritten += len(batches)
        for batch in batches[:-1]:
            self._append([_Change(group, batch, 0, _ignore_outcome, self._fail_log)])
        self._append([_Change(group, batches[-1], 0, done, self._fail_log)])

    def write_whole(self, group: AnyModernGroup, records: Sequence[KeyValue], done: Done) -> bool:
        """Append records as one batch, all or none of which a crash leaves.

        Returns:
            False if the topic takes no batch as large; then nothing was written.
        """
        self._append_gathered()
        group.work.unwritten += 1
        change = _Change(group, (), 0, done, self._fail_log)
        is_taken = self._log.append_whole(
            records, change.committed, change.written, refused=change.refused
        )
        if not is_taken:
            group.work.unwritten -= 1
        return is_taken

    def write_prepared(self, group: AnyModernGroup, batches: Sequence[bytearray]) -> None:
        """Append batches; later writes are answered behind them."""
        self._append_gathered()
        group.work.unwritten += len(batches)
        for batch in batches:
            change = _Change(group, (), 0, _ignore_outcome, self._fail_log)
            self._log.append_batch(batch, change.committed, change.written, refused=change.refused)

    def prepare(self, records: Sequence[KeyValue]) -> list[bytearray]:
        """Encode records as batches for `write_prepared`; may be called on any thread."""
        return [self._log.batch_of(batch) for batch in _batches(records)]

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Gather writes in the context, and append them in as few batches as possible."""
        self._gathered = []
        try:
            yield
        finally:
            try:
                self._append_gathered()
            finally:
                # Also after an exception: later writes must not be gathered for ever.
                self._gathered = None

    def _append_gathered(self) -> None:
        # A callback may write more, which is behind all of this.
        while self._gathered:
            gathered, self._gathered = self._gathered, []
            together: list[_Change] = []
            size = 0
            for change in gathered:
                if together and size + change.size > GATHERED_SIZE_MAX:
                    self._append(together)
                    together, size = [], 0
                together.append(change)
                size += change.size
            self._append(together)

    def _append(self, changes: "list[_Change]") -> None:
        if len(changes) == 1:
            change = changes[0]
            self._log.append(
                change.records, change.committed, change.written, refused=change.refused
            )
            return

        def committed(base_offset: int) -> None:
            for change in changes:
                change.committed(base_offset)

        def refused() -> None:
            for change in changes:
                change.refused()

        def written(code: ErrorCode) -> None:
            for change in changes:
                change.written(code)

        records = [record for change in changes for record in change.records]
        self._log.append(records, committed, written, refused=refused)


class _Change:
    """A write under way, and its callback."""

    __slots__ = ("_done", "_fail_log", "_group", "_is_answered", "records", "size")

    def __init__(
        self,
        group: AnyModernGroup,
        records: Sequence[KeyValue],
        size: int,
        done: Done,
        fail_log: Callable[[], None],
    ) -> None:
        self.records = records
        self.size = size
        self._group = group
        self._done = done
        self._fail_log = fail_log
        self._is_answered = False

    def committed(self, base_offset: int) -> None:
        self._settled(ErrorCode.NONE)

    def refused(self) -> None:
        self._settled(ErrorCode.NOT_COORDINATOR)
        self._fail_log()

    def written(self, code: ErrorCode) -> None:
        """Call back; a write that timed out is not yet refused.

        The change stays unwritten until the append completes.
        """
        self._is_answered = True
        if code is not ErrorCode.NONE:
            logger.warning(
                "append to __consumer_offsets failed, group is unchanged group=%s error=%s",
                log_value(self._group.group_id),
                code.name,
            )
        self._done(code)
        if code is not ErrorCode.NONE or not self._group.work.unwritten:
            self._release(code)

    def _settled(self, code: ErrorCode) -> None:
        work = self._group.work
        work.unwritten -= 1
        if self._is_answered and not work.unwritten:
            self._release(code)

    def _release(self, code: ErrorCode) -> None:
        work = self._group.work
        behind, work.behind_writes = work.behind_writes, []
        for answer in behind:
            answer(code)


def _size_of(records: Sequence[KeyValue]) -> int:
    return sum(len(key) + (0 if value is None else len(value)) for key, value in records)


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


def _ignore_outcome(code: ErrorCode) -> None:
    """Ignore the outcome: the last batch of the change is the one that is answered."""
