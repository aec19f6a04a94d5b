"""The log against a plain list, whatever is done to it and in whatever order (Hypothesis)."""

import logging
from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from protocol.records.batch import read_header
from storage.errors import OffsetOutOfRangeError
from storage.log.log import Log
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem
from tests.unit.storage.log.log_model import (
    NOW_MS,
    Opened,
    Stored,
    append,
    make_batch,
    open_log,
    read_batches,
    read_records,
    small_segments,
)

VALUES = st.lists(st.binary(max_size=50), min_size=1, max_size=4)


class LogMachine(RuleBasedStateMachine):
    """`batches` is the model: (first offset, values, timestamp) of each, from offset 0 on."""

    log: Log
    config: ClassVar = small_segments(300, retention_bytes=500)

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(NOW_MS)
        self.filesystem = FakeFilesystem(self.clock, open_files_max=2)
        self.filesystem.mkdir("/data")
        self.filesystem.sync_directory("/")
        self.batches: list[tuple[int, list[bytes], int]] = []
        self.log_start = 0
        self.durable = 0
        # Where the log ends while it holds nothing.
        self.empty_end = 0

    @initialize()
    def open_empty(self) -> None:
        logging.disable(logging.CRITICAL)
        self.log = open_log(self.filesystem, self.config, clock=self.clock)

    def teardown(self) -> None:
        logging.disable(logging.NOTSET)

    @property
    def end(self) -> int:
        return self.batches[-1][0] + len(self.batches[-1][1]) if self.batches else self.empty_end

    def _reopen(self, *, clean: bool) -> None:
        self.log = open_log(
            self.filesystem,
            self.config,
            clock=self.clock,
            opened=Opened(self.log.recovery_point, self.log_start, clean),
        )
        self.log.update_high_watermark(self.log.log_end_offset)

    @rule(values=VALUES, time=st.integers(0, 500), codec=st.integers(0, 4))
    def append(self, values: list[bytes], time: int, codec: int) -> None:
        batch = make_batch(*values, timestamp_ms=NOW_MS + time, codec=codec)
        info = append(self.log, batch, leader_epoch=1)
        assert (info.first_offset, info.last_offset) == (self.end, self.end + len(values) - 1)
        self.batches.append((info.first_offset, values, NOW_MS + time))

    @rule(first=VALUES, second=VALUES)
    def append_two(self, first: list[bytes], second: list[bytes]) -> None:
        both = memoryview(bytearray(bytes(make_batch(*first)) + bytes(make_batch(*second))))
        if len(both) > self.config.segment_bytes:
            return
        info = append(self.log, both, leader_epoch=1)
        assert info.first_offset == self.end
        self.batches.append((self.end, first, NOW_MS))
        self.batches.append((self.end, second, NOW_MS))

    @rule()
    def roll(self) -> None:
        self.log.writer.roll()
        assert self.log.active_base_offset <= self.end

    @rule()
    def flush(self) -> None:
        self.log.flusher.flush()
        self.durable = self.end
        assert self.log.recovery_point == self.end

    @precondition(lambda self: self.end > 0)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.log_start, self.end))
        self.log.truncation.truncate_to(offset)
        self.batches = [b for b in self.batches if b[0] + len(b[1]) <= offset]
        if not self.batches:
            self.empty_end = self.log.log_end_offset
        self.log_start = min(self.log_start, self.end)
        self.durable = min(self.durable, self.end)

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.log_start, self.end))
        assert self.log.delete_records(offset) == offset
        self.log_start = offset

    @rule()
    def retention(self) -> None:
        active = self.log.active_base_offset
        self.log.retention.delete_old_segments()
        assert self.log.active_base_offset >= active
        assert self.log.log_start_offset >= self.log_start
        self.log_start = self.log.log_start_offset

    @rule()
    def remove_deleted_files(self) -> None:
        self.clock.advance(2000)
        self.log.deletion.remove_deleted_files()
        names = [entry.name for entry in self.filesystem.list_directory(self.log.directory)]
        assert not any(name.endswith(".deleted") for name in names)

    @rule()
    def close_and_reopen(self) -> None:
        self.log.close(clean=True)
        self.filesystem.crash()
        self.durable = self.end
        self._reopen(clean=True)
        assert self.log.recovery_point == self.log.log_end_offset == max(self.end, self.log_start)

    @rule()
    def kill_and_reopen(self) -> None:
        self.filesystem.crash(KEEP_ALL)
        self._reopen(clean=False)

    @rule()
    def cut_power_and_reopen(self) -> None:
        self.filesystem.crash()
        self._reopen(clean=False)
        assert self.log.log_end_offset >= self.durable
        end = self.log.log_end_offset
        self.batches = [b for b in self.batches if b[0] + len(b[1]) <= end]
        if self.log_start > self.end:
            # The log ended before its start: it begins again there.
            self.batches = []
            self.empty_end = self.log.log_end_offset
        self.log_start = self.log.log_start_offset

    @invariant()
    def holds_the_list(self) -> None:
        if not hasattr(self, "log"):
            return
        expected = [
            Stored(first + at, b"k", value)
            for first, values, _ in self.batches
            for at, value in enumerate(values)
            if first + at >= self.log_start
        ]
        assert read_records(self.log, max_bytes=130) == expected
        assert read_records(self.log) == expected

    @invariant()
    def answers_for_every_offset(self) -> None:
        if not hasattr(self, "log"):
            return
        log = self.log
        for first, values, _ in self.batches:
            for offset in range(max(first, self.log_start), first + len(values)):
                found = log.reader.read(
                    offset, max_bytes=0, end_offset=self.end, min_one_batch=True
                )
                assert found is not None
                assert read_header(found.file.read_at(61, found.position)).base_offset == first
        assert (
            log.reader.read(
                log.log_end_offset, max_bytes=9, end_offset=self.end, min_one_batch=True
            )
            is None
        )
        for outside in (log.log_start_offset - 1, log.log_end_offset + 1):
            try:
                log.reader.read(outside, max_bytes=9, end_offset=self.end, min_one_batch=True)
            except OffsetOutOfRangeError:
                continue
            raise AssertionError(f"offset {outside} was read")

    @invariant()
    def finds_times(self) -> None:
        if not hasattr(self, "log"):
            return
        for time in (NOW_MS - 1, NOW_MS, NOW_MS + 1, NOW_MS + 250, NOW_MS + 501):
            expected = next(
                (
                    max(first, self.log_start)
                    for first, values, at in self.batches
                    if at >= time and first + len(values) > self.log_start
                ),
                None,
            )
            found = self.log.reader.offset_for_timestamp(time)
            assert (found.offset if found else None) == expected


LogMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
TestLogAgainstList = LogMachine.TestCase


def test_an_empty_log_has_no_batches() -> None:
    """The model's starting point."""
    assert read_batches(open_log(FakeFilesystem())) == []
