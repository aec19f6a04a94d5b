"""Power cuts: a scripted run over two logs is stopped after every change of the disk.

After each write, truncation, fsync, creation, rename and unlink the disk is copied as a power cut
would leave it: once without anything that was not synced, once with a random part of it (torn
writes included) or, as when only the process dies, with all of it. Each copy is started again and
compared with a model:

    nothing invented    every batch was appended, at this offset
    nothing lost        all that a flush had acknowledged is there, from the log start on
    order kept          offsets follow on each other, without a gap
    alive               it takes a batch, flushes it, and has it after the next power cut
"""

import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

import pytest

from config.topic import TopicConfig
from protocol.records.batch import read_header
from protocol.records.control import build_end_transaction_marker, parse_end_transaction_marker
from storage.checkpoints.checkpoint_files import decode_offsets, encode_offsets
from storage.errors import CorruptFileError
from storage.log.log import Log
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition
from tests.effort import swept
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import KEEP_ALL, Event, FakeFilesystem, Keep
from tests.unit.storage.log.log_model import (
    NOW_MS,
    Opened,
    append,
    make_batch,
    open_log,
    read_batches,
    small_segments,
)

ROOT = "/data"
RECOVERY_POINTS = f"{ROOT}/recovery-point-offset-checkpoint"
LOG_STARTS = f"{ROOT}/log-start-offset-checkpoint"
CLEAN_MARKER = f"{ROOT}/.kafka_cleanshutdown"
SEEDS = range(8)
OPERATIONS = 150
ROUND = 30
EXAMINED = frozenset(swept(range(ROUND), 11))
"""Of each so many stops; others are gone by. Two logs and three kinds of death alternate."""


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    """Cutting logs is what this is about; the warnings would cost more than the restarts."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@dataclass
class Model:
    """What one log may and must hold, whenever the power goes.

    `histories` are the batches from offset 0 on, retention notwithstanding: one, or two while a
    truncation is under way or an append has not returned.
    """

    directory: str
    histories: list[list[bytes]] = field(default_factory=lambda: [[]])
    durable_end: int = 0
    log_start: int = 0

    @property
    def batches(self) -> list[bytes]:
        return self.histories[-1]

    def check(self, log: Log, label: str) -> list[bytes]:
        found = read_all(log)
        assert any(_is_run(found, history) for history in self.histories), f"invented: {label}"
        assert log.log_end_offset >= self.durable_end, f"lost the end: {label}"
        if self.durable_end > self.log_start:
            assert found, f"lost everything: {label}"
            assert read_header(found[0]).base_offset <= self.log_start, f"lost the start: {label}"
        return found


def read_all(log: Log) -> list[bytes]:
    """All batches that are in the log's segments, also those below the log start offset."""
    start = log.log_start_offset
    log.log_start_offset = log.segment_facts()[0].base_offset
    try:
        return read_batches(log)
    finally:
        log.log_start_offset = start


def _is_run(found: list[bytes], history: list[bytes]) -> bool:
    if not found:
        return True
    first = read_header(found[0]).base_offset
    bases = [read_header(batch).base_offset for batch in history]
    if first not in bases:
        return False
    at = bases.index(first)
    return history[at : at + len(found)] == found


def restart(filesystem: FakeFilesystem, model: Model, config: TopicConfig) -> Log:
    """Open as the log manager does: from the checkpoints and the marker there are."""
    topic_partition = _name(model.directory)

    def checkpointed(path: str) -> int:
        if not filesystem.exists(path):
            return 0
        return decode_offsets(filesystem.peek(path), path).get(topic_partition, 0)

    opened = Opened(
        recovery_point=checkpointed(RECOVERY_POINTS),
        log_start_offset=checkpointed(LOG_STARTS),
        clean_shutdown=filesystem.exists(CLEAN_MARKER),
    )
    if not filesystem.exists(ROOT):
        filesystem.mkdir(ROOT)
    return open_log(filesystem, config, directory=model.directory, opened=opened)


def _name(directory: str) -> TopicPartition:
    topic, _, number = directory.rpartition("/")[2].rpartition("-")
    return TopicPartition(topic, int(number))


class Run:
    """One scripted run; `points` counts the stops, `restarts` the copies that were started."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.seed = seed
        self.clock = ManualClock(NOW_MS)
        self.filesystem = FakeFilesystem(self.clock)
        self.config = small_segments(
            500, retention_bytes=900, preallocate=seed % 4 == 3, index_interval_bytes=120
        )
        self.filesystem.mkdir(ROOT)
        self.filesystem.sync_directory(ROOT)
        self.filesystem.sync_directory("/")
        self.models = [Model(f"{ROOT}/t-0"), Model(f"{ROOT}/u-3")]
        self.points = 0
        self.restarts = 0
        self.filesystem.observer = self.stop
        self.logs = [restart(self.filesystem, model, self.config) for model in self.models]
        self.sequences = [0, 0]

    # -- stops -------------------------------------------------------------------------------

    def stop(self, event: Event) -> None:
        self.points += 1
        if event.number % ROUND not in EXAMINED:
            return
        self.examine(None, event)
        if event.number % 3:
            self.examine(Random(event.number), event)
        else:
            self.examine(KEEP_ALL, event)

    def examine(self, keep: Keep, event: Event) -> None:
        self.restarts += 1
        disk = self.filesystem.after_crash(keep)
        for at, model in enumerate(self.models):
            label = f"seed {self.seed}, {event}, {keep}, {model.directory}"
            log = restart(disk, model, self.config)
            found = model.check(log, label)
            if at != event.number % len(self.models):
                continue
            check_state(log, found, label)
            append(log, make_batch(b"after the crash"), leader_epoch=9)
            log.flusher.flush()
            expected = read_all(log)
            assert expected[:-1] == found, f"changed by an append: {label}"
            again = disk.after_crash()
            if again.exists(CLEAN_MARKER):
                again.remove(CLEAN_MARKER)
            second = restart(again, model, self.config)
            assert read_all(second)[-1:] == expected[-1:], f"lost after a crash: {label}"
            assert _is_run(read_all(second), expected), f"changed by a second crash: {label}"

    # -- the script --------------------------------------------------------------------------

    def play(self) -> None:
        for _ in range(OPERATIONS):
            at = self.random.randrange(len(self.logs))
            name = self.random.choices(
                ["append", "transaction", "flush", "group", "roll", "retention", "delete_records",
                 "truncate", "checkpoint", "reopen", "kill", "remove_files"],
                [40, 6, 9, 5, 4, 4, 3, 3, 5, 1, 1, 2],
            )[0]  # fmt: skip
            getattr(self, name)(at)
            self.clock.advance(400)

    def append(self, at: int) -> None:
        random = self.random
        values = [random.randbytes(random.randrange(60)) for _ in range(random.randrange(1, 4))]
        if random.random() < 0.5:
            batch = make_batch(
                *values, producer_id=4, producer_epoch=0, base_sequence=self.sequences[at]
            )
            self.sequences[at] += len(values)
        else:
            batch = make_batch(*values, timestamp_ms=NOW_MS + random.randrange(1000))
        self._append(at, batch)

    def transaction(self, at: int) -> None:
        batch = make_batch(
            b"t", producer_id=8, producer_epoch=0, base_sequence=-1, transactional=True
        )
        self._append(at, batch, AppendOrigin.COORDINATOR)
        if self.random.random() < 0.5:
            self.append(at)
        marker = build_end_transaction_marker(
            producer_id=8,
            producer_epoch=0,
            commit=self.random.random() < 0.4,
            coordinator_epoch=1,
            timestamp_ms=NOW_MS,
        )
        self._append(at, memoryview(marker), AppendOrigin.COORDINATOR)

    def _append(
        self, at: int, batch: memoryview, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> None:
        log, model = self.logs[at], self.models[at]
        # What it will be, as the disk may have it before the call returns.
        will_be = bytearray(batch)
        will_be[0:8] = log.log_end_offset.to_bytes(8, "big")
        will_be[12:16] = (1).to_bytes(4, "big")
        model.batches.append(bytes(will_be))
        append(log, batch, leader_epoch=1, origin=origin)
        assert bytes(batch) == bytes(will_be)

    def flush(self, at: int) -> None:
        log = self.logs[at]
        up_to = log.active_base_offset if self.random.random() < 0.3 else None
        log.flusher.flush(up_to)
        self.models[at].durable_end = max(self.models[at].durable_end, log.recovery_point)
        assert up_to is not None or log.recovery_point == log.log_end_offset

    def group(self, at: int) -> None:
        """An append between the begin and the end of a flush is not acknowledged by it."""
        log = self.logs[at]
        ticket = log.flusher.begin_flush()
        self.append(at)
        if ticket is not None:
            ticket.run()
            log.flusher.finish_flush(ticket)
            self.models[at].durable_end = max(self.models[at].durable_end, ticket.end_offset)

    def roll(self, at: int) -> None:
        self.logs[at].writer.roll()

    def retention(self, at: int) -> None:
        log, model = self.logs[at], self.models[at]
        # From the first rename on, what retention takes may be gone.
        total, allowed = log.size(), self.config.retention_bytes
        gone = log.log_start_offset
        segments = log.segment_facts()
        for segment, following in pairwise(segments):
            if total - allowed >= segment.size:
                total -= segment.size
                gone = following.base_offset
            else:
                break
        else:
            gone = log.log_end_offset
        model.log_start = max(model.log_start, gone)
        log.retention.delete_old_segments()
        model.log_start = max(model.log_start, log.log_start_offset)

    def remove_files(self, at: int) -> None:
        self.logs[at].deletion.remove_deleted_files()

    def delete_records(self, at: int) -> None:
        log, model = self.logs[at], self.models[at]
        offset = self.random.randint(log.log_start_offset, log.high_watermark)
        model.log_start = max(model.log_start, offset)
        log.delete_records(offset)

    def truncate(self, at: int) -> None:
        log, model = self.logs[at], self.models[at]
        offset = self.random.randint(log.log_start_offset, log.log_end_offset)
        kept = [batch for batch in model.batches if read_header(batch).next_offset <= offset]
        model.durable_end = min(model.durable_end, read_header(kept[-1]).next_offset if kept else 0)
        model.log_start = min(model.log_start, offset)
        model.histories.append(kept)
        log.truncation.truncate_to(offset)
        model.log_start = min(model.log_start, log.log_start_offset)
        model.durable_end = min(model.durable_end, log.log_end_offset)
        model.histories = [kept]
        self.checkpoint(at)
        self.sequences[at] = self._next_sequence(log)

    def checkpoint(self, at: int) -> None:
        """Of both logs, as the log manager writes them."""
        logs = list(zip(self.models, self.logs, strict=True))
        points = {_name(model.directory): log.recovery_point for model, log in logs}
        starts = {_name(model.directory): log.log_start_offset for model, log in logs}
        self.filesystem.replace_bytes(RECOVERY_POINTS, encode_offsets(points))
        self.filesystem.replace_bytes(LOG_STARTS, encode_offsets(starts))

    def reopen(self, at: int) -> None:
        """A clean stop of the broker, and the next start."""
        for log, model in zip(self.logs, self.models, strict=True):
            log.close(clean=True)
            model.durable_end = max(model.durable_end, log.log_end_offset)
        self.checkpoint(at)
        self.filesystem.replace_bytes(CLEAN_MARKER, b'{"version":0}')
        logs = [restart(self.filesystem, model, self.config) for model in self.models]
        assert [log.log_end_offset for log in logs] == [log.log_end_offset for log in self.logs]
        self.logs = logs
        self.filesystem.unlink(CLEAN_MARKER)
        self.filesystem.sync_directory(ROOT)
        self.sequences = [self._next_sequence(log) for log in self.logs]

    def kill(self, at: int) -> None:
        """Kill -9 and the next start: the page cache is still there."""
        logs = [restart(self.filesystem, model, self.config) for model in self.models]
        assert [log.log_end_offset for log in logs] == [log.log_end_offset for log in self.logs]
        for log, model in zip(logs, self.models, strict=True):
            log.update_high_watermark(log.log_end_offset)
            model.log_start = max(model.log_start, log.log_start_offset)
        self.logs = logs
        self.sequences = [self._next_sequence(log) for log in self.logs]

    def _next_sequence(self, log: Log) -> int:
        entry = log.producer_state.last_entry(4)
        return 0 if entry is None else entry.last_sequence + 1


def check_state(log: Log, found: list[bytes], label: str) -> None:
    """Producers and aborted transactions are those of the batches from the log start on."""
    sequences: dict[int, int] = {}
    open_since: dict[int, int] = {}
    aborted = []
    for batch in found:
        header = read_header(batch)
        if header.producer_id < 0:
            continue
        if not header.is_control:
            if header.last_offset >= log.log_start_offset:
                sequences[header.producer_id] = header.last_sequence
            if header.is_transactional:
                open_since.setdefault(header.producer_id, header.base_offset)
            continue
        marker = parse_end_transaction_marker(memoryview(batch))
        assert marker is not None
        first = open_since.pop(header.producer_id, None)
        # What began below the log start, nobody reads any more.
        if first is not None and first >= log.log_start_offset and not marker.control_type:
            aborted.append((header.producer_id, first))
    for producer_id, sequence in sequences.items():
        entry = log.producer_state.last_entry(producer_id)
        assert entry is not None, f"producer forgotten: {label}"
        # A marker of the same epoch leaves the batches remembered.
        assert entry.last_sequence == sequence, f"sequence of {producer_id}: {label}"
    listed = log.reader.aborted_transactions(log.segment_facts()[0].base_offset, log.log_end_offset)
    listed = [txn for txn in listed if txn[1] >= log.log_start_offset]
    assert listed == aborted, f"aborted: {label}"
    log.update_high_watermark(log.log_end_offset)
    expected = min(open_since.values(), default=log.log_end_offset)
    assert log.last_stable_offset <= max(expected, log.log_start_offset), f"last stable: {label}"


@pytest.fixture(scope="module")
def totals() -> dict[str, int]:
    return {"points": 0, "restarts": 0}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_stop_leaves_a_log_that_keeps_its_promises(
    seed: int, totals: dict[str, int], record_property: Callable[[str, object], None]
) -> None:
    """See the module."""
    run = Run(seed)
    run.play()
    totals["points"] += run.points
    totals["restarts"] += run.restarts
    record_property("points", run.points)
    record_property("restarts", run.restarts)
    assert run.points > 300, run.points


def test_the_stops_are_enough(
    totals: dict[str, int], capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    """All runs together were stopped at 5,000 points or more."""
    if request.session.testscollected < len(SEEDS):
        pytest.skip("only meaningful after the runs")
    with capsys.disabled():
        sys.stdout.write(f" {totals['points']} stops, {totals['restarts']} restarts ")
    assert totals["points"] >= 5_000


def test_a_damaged_checkpoint_is_an_error_of_its_own() -> None:
    """The run above reads its checkpoints as the log manager does; half of one does not parse."""
    offsets = {TopicPartition("t", 0): 5}
    whole = encode_offsets(offsets)
    assert decode_offsets(whole, "x") == offsets
    with pytest.raises(CorruptFileError):
        decode_offsets(whole[: len(whole) // 2], "x")
