"""Writes that end late, fail late, or never: the log against a plain list (Hypothesis).

Appends are queued or not as the directory's pace says; the thread's part of each ticket is a rule
of its own, so that reading, flushing, rolling, retention, truncation, a stop and a crash come at
every moment between offsets that are given and bytes that are written.
"""

import errno
import logging
from collections.abc import Callable
from random import Random
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from protocol.records.control import build_end_transaction_marker
from storage.errors import DiskError, LogDirectoryFullError
from storage.log.directory_pace import NEVER, DirectoryPace
from storage.log.log import Log
from storage.log.write_ticket import AppendTicket, BackTicket, RetireTicket, WriteTicket
from storage.segment.flush import FlushTicket
from storage.types.append_origin import AppendOrigin
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem
from tests.unit.storage.log.log_model import (
    NOW_MS,
    Opened,
    make_batch,
    open_log,
    read_records,
    small_segments,
)

VALUES = st.lists(st.binary(max_size=50), min_size=1, max_size=4)
PRODUCER = 4
TRANSACTIONAL = 9


class Memory:
    """Borrowed memory as a connection lends it: kept, and spoilt as soon as it is let go."""

    def __init__(self) -> None:
        self.kept = 0

    def keep(self, records: memoryview) -> Callable[[], None]:
        self.kept += 1

        def let_go() -> None:
            self.kept -= 1
            records[:] = bytes([0xEE]) * len(records)

        return let_go


class Machine(RuleBasedStateMachine):
    """`batches`: (first offset, values, sequence or -1) of all that were given offsets.

    `first`: what the next one got when the log was opened or cut last.
    """

    log: Log
    config: ClassVar = small_segments(300, retention_bytes=500)

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(NOW_MS)
        self.filesystem = FakeFilesystem(self.clock, open_files_max=2)
        self.filesystem.mkdir("/data")
        self.filesystem.sync_directory("/")
        self.memory = Memory()
        self.batches: list[tuple[int, list[bytes | None], int]] = []
        self.log_start = 0
        self.written = 0
        self.durable = 0
        self.first = 0
        self.ticket: WriteTicket | None = None
        self.ticket_error: DiskError | None = None
        self.ticket_has_run = False
        self.flush_ticket: FlushTicket | None = None
        self.sequence = 0
        self.transaction_open = False

    @initialize(queued=st.booleans())
    def open_empty(self, queued: bool) -> None:
        logging.disable(logging.CRITICAL)
        self.log = open_log(self.filesystem, self.config, clock=self.clock)
        self._use_pace()
        self.set_pace(queued)

    def teardown(self) -> None:
        logging.disable(logging.NOTSET)

    def _use_pace(self) -> None:
        self.pace = DirectoryPace(self.clock.monotonic_ms, self.clock.monotonic_s)
        self.log.disk_work.leave_to(self.pace)
        self.memory = Memory()

    @property
    def end(self) -> int:
        return max(self.first, *(first + len(values) for first, values, _ in self.batches[-1:]), 0)

    @rule(queued=st.booleans())
    def set_pace(self, queued: bool) -> None:
        self.pace.inline_bytes_max = -1 if queued else NEVER

    # -- appending ---------------------------------------------------------------------------

    def _appended(self, values: list[bytes | None], sequence: int, first_offset: int) -> None:
        assert first_offset == self.end
        self.batches.append((first_offset, values, sequence))
        if self.log.write_queue is None:
            self.written = self.end
            self.log.update_high_watermark(self.log.log_end_offset)

    @precondition(lambda self: self.log.refusal is None)
    @rule(values=VALUES, time=st.integers(0, 500), idempotent=st.booleans(), epoch=st.booleans())
    def append(self, values: list[bytes], time: int, idempotent: bool, epoch: bool) -> None:
        if idempotent:
            batch = make_batch(
                *values,
                timestamp_ms=NOW_MS + time,
                producer_id=PRODUCER,
                producer_epoch=0,
                base_sequence=self.sequence,
            )
        else:
            batch = make_batch(*values, timestamp_ms=NOW_MS + time)
        latest = self.log.latest_leader_epoch
        info = self.log.writer.append_as_leader(
            batch,
            leader_epoch=max(latest + epoch, 0),
            now_ms=NOW_MS,
            memory=self.memory,
        )
        assert info.last_offset == info.first_offset + len(values) - 1
        self._appended([*values], self.sequence if idempotent else -1, info.first_offset)
        if idempotent:
            self.sequence += len(values)

    @precondition(lambda self: self.sequence > 0 and self.log.refusal is None)
    @rule()
    def retry(self) -> None:
        """What is queued is known to its producer's state: a retry gets the same offsets."""
        found = next(((o, v, s) for o, v, s in reversed(self.batches) if s >= 0), None)
        if found is None:
            return
        offset, values, sequence = found
        entry = self.log.producer_state.last_entry(PRODUCER)
        if entry is None or entry.last_data_offset < offset:
            # Deleted by retention, then forgotten at a start.
            return
        assert all(value is not None for value in values)
        batch = make_batch(
            *(value or b"" for value in values),
            producer_id=PRODUCER,
            producer_epoch=0,
            base_sequence=sequence,
        )
        info = self.log.writer.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
        assert (info.duplicate, info.first_offset) == (True, offset)

    @precondition(lambda self: self.log.disk_work.is_rolling_back)
    @rule()
    def append_while_it_goes_back(self) -> None:
        """Its producers are not those of its end yet."""
        with pytest.raises(LogDirectoryFullError):
            self.log.writer.append_as_leader(make_batch(b"x"), leader_epoch=9, now_ms=NOW_MS)
        assert not self.log.accept_appends()

    @precondition(lambda self: self.log.refusal is None)
    @rule()
    def transaction(self) -> None:
        """Opens a transaction, or aborts it."""
        if not self.transaction_open:
            batch = make_batch(
                b"t", producer_id=TRANSACTIONAL, producer_epoch=0, transactional=True
            )
            values: list[bytes | None] = [b"t"]
        else:
            batch = memoryview(
                build_end_transaction_marker(
                    producer_id=TRANSACTIONAL,
                    producer_epoch=0,
                    commit=False,
                    coordinator_epoch=1,
                    timestamp_ms=NOW_MS,
                )
            )
            values = [None]
        self.transaction_open = not self.transaction_open
        epoch = max(self.log.latest_leader_epoch, 0)
        info = self.log.writer.append_as_leader(
            batch, leader_epoch=epoch, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
        )
        self._appended(values, -1, info.first_offset)

    # -- the thread --------------------------------------------------------------------------

    @rule(
        fails=st.sampled_from(
            [None, None, None, None, None, "write", "create", "truncate", "rename"]
        ),
        code=st.sampled_from([errno.EIO, errno.ENOSPC]),
        torn=st.booleans(),
    )
    def run(self, fails: str | None, code: int, torn: bool) -> None:
        if self.ticket is None or self.ticket_has_run:
            return
        if fails is not None and not isinstance(self.ticket, BackTicket):
            self.filesystem.tear_failed_writes = torn
            self.filesystem.fail(fails, code)
        self.ticket_has_run = True
        try:
            self.ticket.run()
        except DiskError as error:
            self.ticket_error = error
        self.filesystem.heal()

    @rule()
    def begin_or_finish(self) -> None:
        if self.ticket is None:
            log = self.log
            nothing = (
                log.write_queue is None
                and not log.disk_work.is_rolling_back
                and not log.deletion.is_due
            )
            self.ticket = log.disk_work.begin()
            self.ticket_has_run = False
            assert (self.ticket is None) == nothing
            # Segments that have left the log are renamed beside everything else.
            is_beside = isinstance(self.ticket, RetireTicket) or log.deletion.is_due
            assert is_beside or log.disk_work.begin() is None
        elif self.ticket_has_run:
            ticket, self.ticket = self.ticket, None
            error, self.ticket_error = self.ticket_error, None
            moved = self.log.disk_work.finish(ticket, error)
            if error is not None:
                self._failed()
                return
            if isinstance(ticket, BackTicket):
                assert self.log.refusal is None
                self._sync_producers()
            assert moved == isinstance(ticket, AppendTicket)
            if isinstance(ticket, AppendTicket):
                self.written = self.log.log_end_offset
                self.log.update_high_watermark(self.written)

    def _failed(self) -> None:
        """Nothing that is queued is acknowledged; the next start finds what was written.

        Where there was no room, the log goes back to its end, and takes no records until then.
        """
        assert self.log.write_queue is None
        if self.log.failure is None:
            assert self.log.disk_work.is_rolling_back
            self.batches = [b for b in self.batches if b[0] < self.log.log_end_offset]
            return
        assert self.log.disk_work.begin() is None
        assert (self.pace.queued_bytes, self.memory.kept) == (0, 0)
        self._restart(KEEP_ALL)

    # -- everything else ---------------------------------------------------------------------

    @rule()
    def flush(self) -> None:
        if self.flush_ticket is None:
            self.flush_ticket = self.log.flusher.begin_flush()
            return
        ticket, self.flush_ticket = self.flush_ticket, None
        ticket.run()
        self.log.flusher.finish_flush(ticket)
        self.durable = max(self.durable, self.log.recovery_point)
        assert self.log.recovery_point <= self.written

    @precondition(lambda self: self.ticket is None)
    @rule()
    def roll(self) -> None:
        self.log.writer.roll()
        self._all_written()
        assert self.log.active_base_offset in (self.end, self.log.segment_facts()[-1].base_offset)

    @rule()
    def roll_behind(self) -> None:
        self.log.write_behind.queue_roll()

    def _all_written(self) -> None:
        self.written = self.end
        self.log.update_high_watermark(self.written)
        assert self.log.write_queue is None

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(
            st.integers(self.log_start, max(self.log.high_watermark, self.log_start))
        )
        self.log_start = self.log.delete_records(offset)

    @rule()
    def retention(self) -> None:
        self.log.retention.delete_old_segments()
        assert self.log.log_start_offset >= self.log_start
        self.log_start = self.log.log_start_offset

    @precondition(lambda self: self.ticket is None and self.flush_ticket is None and self.end > 0)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.log_start, self.end))
        self.log.truncation.truncate_to(offset)
        assert self.log.write_queue is None
        self._keep_below(offset)
        self.log_start = min(self.log_start, self.end)
        self.durable = min(self.durable, self.end)
        self.written = self.end

    @precondition(lambda self: self.ticket is None and self.flush_ticket is None)
    @rule()
    def stop_and_start(self) -> None:
        self.log.close(clean=True)
        self.written = self.durable = self.end
        self._reopen(clean=True)
        assert self.log.log_end_offset == self.end

    @rule(seed=st.integers(0, 1000), kind=st.sampled_from(["kill", "cut", "torn"]))
    def crash(self, seed: int, kind: str) -> None:
        self._restart({"kill": KEEP_ALL, "cut": None, "torn": Random(seed)}[kind])

    def _restart(self, keep: "str | Random | None") -> None:
        self.filesystem.crash(keep)
        if not self.filesystem.exists("/data"):
            self.filesystem.mkdir("/data")
            self.filesystem.sync_directory("/")
        least = self.written
        if keep != KEEP_ALL:
            least = self.durable
            # A start checkpointed beyond what survived would begin an empty log there.
            self.log_start = min(self.log_start, self.durable)
        self._reopen(clean=False)
        assert least <= self.log.log_end_offset <= self.end
        self.log_start = self.log.log_start_offset
        if keep != KEEP_ALL:
            # Of unsynced segments a later one may have survived without those before it.
            found = {record.offset for record in read_records(self.log)}
            self.batches = [b for b in self.batches if b[0] in found or b[0] < self.log_start]
        self._keep_below(self.log.log_end_offset)
        assert self.end == self.log.log_end_offset

    def _reopen(self, *, clean: bool) -> None:
        self.ticket = self.ticket_error = self.flush_ticket = None
        self.log = open_log(
            self.filesystem,
            self.config,
            clock=self.clock,
            opened=Opened(self.log.recovery_point, self.log_start, clean),
        )
        quick = self.pace.is_quick
        self._use_pace()
        self.set_pace(not quick)
        self.log.update_high_watermark(self.log.log_end_offset)
        self.written = self.log.log_end_offset
        self.durable = min(self.durable, self.written)
        if clean:
            # Else what is left of the records is to be found out first.
            self._sync_producers()

    def _keep_below(self, offset: int) -> None:
        self.batches = [b for b in self.batches if b[0] + len(b[1]) <= offset]
        self.first = self.log.log_end_offset
        self._sync_producers()

    def _sync_producers(self) -> None:
        """The state of the producers is that of the records that are there, no more, no less."""
        end = self.log.log_end_offset
        last = next((b for b in reversed(self.batches) if b[2] >= 0 and b[0] < end), None)
        entry = self.log.producer_state.last_entry(PRODUCER)
        if last is None:
            self.sequence = 0 if entry is None else entry.last_sequence + 1
        else:
            self.sequence = last[2] + len(last[1])
            if entry is not None or last[0] >= self.log.log_start_offset:
                assert entry is not None
                assert entry.last_sequence == self.sequence - 1
        transactional = self.log.producer_state.last_entry(TRANSACTIONAL)
        self.transaction_open = transactional is not None and transactional.txn_first_offset >= 0

    # -- what always holds -------------------------------------------------------------------

    @invariant()
    def ends(self) -> None:
        if not hasattr(self, "log"):
            return
        assert self.log.log_end_offset == self.written, (self.batches, self.log.write_queue)
        assert self.log.next_offset == self.end
        assert self.log.high_watermark <= self.written
        assert self.log.recovery_point <= self.written
        if self.log.write_queue is None:
            assert (self.pace.queued_bytes, self.memory.kept) == (0, 0)

    @invariant()
    def readers_see_what_is_written(self) -> None:
        if not hasattr(self, "log"):
            return
        expected = [
            (first + at, value)
            for first, values, _ in self.batches
            for at, value in enumerate(values)
            if self.log_start <= first + at < self.written
        ]
        found = [(record.offset, record.value) for record in read_records(self.log)]
        assert [offset for offset, _ in found] == [offset for offset, _ in expected]
        for (_, got), (_, wanted) in zip(found, expected, strict=True):
            assert wanted is None or got == wanted


TestWriteBehind = Machine.TestCase
TestWriteBehind.settings = settings(
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
