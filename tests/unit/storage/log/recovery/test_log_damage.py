"""A damaged log: after an unclean stop it is what was whole before the damage, and nothing else.

The last three batches are cut at every byte and flipped in every bit; side files go missing, are
cut, filled with noise and flipped. Each case opens the damaged copy and compares every record.
"""

import logging
import sys
from collections.abc import Callable, Iterator
from random import Random

import pytest

from config.topic import TopicConfig
from protocol.records.batch import iterate_batches, read_header
from protocol.records.control import build_end_transaction_marker
from storage.log.log import Log
from storage.types.append_origin import AppendOrigin
from tests.effort import drawn, swept
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import (
    DIRECTORY,
    NOW_MS,
    Opened,
    append,
    make_batch,
    open_log,
    read_batches,
    small_segments,
)

EPOCH_BYTES = range(12, 16)
"""Of a batch; neither under the sum nor of consequence for the records: the checkpoint knows."""


class Case:
    """A log that was killed: its files, and its batches in order."""

    def __init__(self, name: str, config: TopicConfig, fill: Callable[[Log], None]) -> None:
        self.name = name
        self.config = config
        filesystem = FakeFilesystem()
        log = open_log(filesystem, config)
        fill(log)
        self.batches = [_without_epoch(batch) for batch in read_batches(log)]
        self.epochs = log.leader_epochs.entries()
        self.end_offset = log.log_end_offset
        log.flusher.flush()
        log.segment_facts()[-1].seal()
        log.close(clean=False)
        self.files = {
            entry.name: filesystem.peek(f"{DIRECTORY}/{entry.name}")
            for entry in filesystem.list_directory(DIRECTORY)
        }
        self.active = max(name for name in self.files if name.endswith(".log"))

    def disk(self, changes: dict[str, bytes | None]) -> FakeFilesystem:
        filesystem = FakeFilesystem()
        filesystem.mkdir(DIRECTORY)
        filesystem.sync_directory("/data")
        filesystem.sync_directory("/")
        for name, data in {**self.files, **changes}.items():
            if data is not None:
                filesystem.poke(f"{DIRECTORY}/{name}", data)
        return filesystem


def _fill(sizes: list[int], codec: int = 0, producer: bool = False) -> Callable[[Log], None]:
    def fill(log: Log) -> None:
        sequence = 0
        for number, size in enumerate(sizes):
            values = [bytes([65 + number % 26]) * size for _ in range(1 + number % 3)]
            batch = make_batch(
                *values,
                timestamp_ms=NOW_MS + number * 10,
                codec=codec,
                producer_id=9 if producer else -1,
                producer_epoch=0 if producer else -1,
                base_sequence=sequence if producer else -1,
            )
            append(log, batch, leader_epoch=0 if number < 3 else 2)
            sequence += len(values)

    return fill


def _fill_transactions(log: Log) -> None:
    for number in range(4):
        sequence = number * 2
        append(
            log,
            make_batch(
                b"a", b"b", producer_id=5, producer_epoch=0, base_sequence=sequence,
                transactional=True,
            ),
        )  # fmt: skip
        marker = build_end_transaction_marker(
            producer_id=5,
            producer_epoch=0,
            commit=number % 2 == 0,
            coordinator_epoch=1,
            timestamp_ms=NOW_MS,
        )
        append(log, memoryview(marker), origin=AppendOrigin.COORDINATOR)


def _fill_with_gaps(log: Log) -> None:
    """As compaction leaves a log whose `cleanup.policy` is another one now."""
    for number, offset in enumerate((5, 6, 8, 15, 30, 31, 40, 58)):
        batch = make_batch(
            *[b"g" * 9] * (1 + number % 2), timestamp_ms=NOW_MS + offset, producer_id=9,
            producer_epoch=0, base_sequence=offset,
        )  # fmt: skip
        batch[0:8] = offset.to_bytes(8, "big")
        log.follower.append(batch)
    log.update_high_watermark(log.log_end_offset)


def _cases() -> list[Case]:
    wide = small_segments(10_000)
    return [
        Case("plain", wide, _fill([3, 40, 9, 17, 5, 30])),
        Case("many segments", small_segments(150), _fill([8, 8, 8, 8, 8, 8, 8])),
        Case("gzip", wide, _fill([30, 300, 310, 20], codec=1)),
        Case("snappy", wide, _fill([30, 700, 710, 20], codec=2)),
        Case("lz4", wide, _fill([30, 700, 710, 20], codec=3)),
        Case("zstd", wide, _fill([30, 300, 310, 20], codec=4)),
        Case("idempotent", wide, _fill([5, 6, 7, 8, 9], producer=True)),
        Case("transactions", wide, _fill_transactions),
        Case("larger", wide, _fill([2, 450, 380, 470])),
        Case("many records", wide, _fill([2] * 7 + [120, 130, 140])),
        Case("tiny", wide, _fill([0, 0, 0, 0])),
        Case("gaps", wide, _fill_with_gaps),
        Case("gaps in many segments", small_segments(200), _fill_with_gaps),
    ]


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    """Tens of thousands of warnings are expected; keeping them costs more than the cases."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return _cases()


def check(case: Case, changes: dict[str, bytes | None], expected: list[bytes], what: str) -> None:
    """Open the damaged log: exactly `expected` is there, and appending and reopening work."""
    filesystem = case.disk(changes)
    log = open_log(filesystem, case.config)
    found = read_batches(log, has_gaps=case.name.startswith("gaps"))
    assert [_without_epoch(batch) for batch in found] == expected, (
        f"{case.name}, {what}: {len(found)} of {len(expected)} batches"
    )
    if len(expected) == len(case.batches):
        assert log.leader_epochs.entries() == case.epochs, f"{case.name}, {what}"
    info = append(log, make_batch(b"new", timestamp_ms=NOW_MS), leader_epoch=2)
    assert info.first_offset == log.log_end_offset - 1
    assert len(read_batches(log, has_gaps=True)) == len(expected) + 1, (
        f"{case.name}, {what}: after an append"
    )


def _without_epoch(batch: bytes) -> bytes:
    return batch[:12] + bytes(4) + batch[16:]


def last_three(case: Case) -> Iterator[tuple[int, int, bytes]]:
    """(index of the batch, position in the active segment, batch), of those in that segment."""
    data = case.files[case.active]
    batches = [
        (position, data[position : position + header.size])
        for position, header in iterate_batches(memoryview(data))
    ]
    first = len(case.batches) - len(batches)
    for index, (position, batch) in list(enumerate(batches))[-3:]:
        yield first + index, position, batch


def test_every_prefix_keeps_the_whole_batches(
    cases: list[Case], record_property: Callable[[str, object], None]
) -> None:
    """A log file cut anywhere ends with its last whole batch."""
    prefixes = [
        (case, index, cut)
        for case in cases
        for index, position, batch in last_three(case)
        for cut in range(position, position + len(batch))
    ]
    assert len(prefixes) > 2_000, len(prefixes)
    for case, index, cut in (tried := swept(prefixes, 5)):
        data = case.files[case.active]
        check(case, {case.active: data[:cut]}, case.batches[:index], f"cut at {cut}")
    record_property("prefix_cases", len(tried))


@pytest.mark.parametrize("number", range(11))
def test_every_flipped_bit_is_found(
    cases: list[Case], number: int, record_property: Callable[[str, object], None]
) -> None:
    """One wrong bit costs the batch it is in and what follows; in an epoch it is set right."""
    case = cases[number]
    data = case.files[case.active]
    flips = [
        (index, position, at, bit)
        for index, position, batch in last_three(case)
        for at in range(len(batch))
        for bit in range(8)
    ]
    assert len(flips) >= 8 * 61
    for index, position, at, bit in (tried := swept(flips, 7)):
        expected = case.batches if at in EPOCH_BYTES else case.batches[:index]
        damaged = bytearray(data)
        damaged[position + at] ^= 1 << bit
        check(case, {case.active: bytes(damaged)}, expected, f"byte {at} bit {bit}")
    record_property("flipped_bit_cases", len(tried))


def test_the_cases_are_enough(cases: list[Case], capsys: pytest.CaptureFixture[str]) -> None:
    """Prefixes and flipped bits together are at least 50,000."""
    sizes = [len(batch) for case in cases for _, _, batch in last_three(case)]
    with capsys.disabled():
        sys.stdout.write(f" {sum(sizes)} prefixes, {8 * sum(sizes)} flipped bits ")
    assert 9 * sum(sizes) >= 50_000


def _damages(data: bytes, random: Random) -> Iterator[tuple[str, bytes | None]]:
    yield "missing", None
    yield "empty", b""
    for cut in {1, len(data) // 2, len(data) - 1}:
        if 0 < cut < len(data):
            yield f"cut to {cut}", data[:cut]
    for number in range(4):
        yield f"noise {number}", random.randbytes(len(data) or 24)
    yield "zeros", bytes(len(data) or 24)
    yield "longer", data + random.randbytes(12)
    for _ in range(12):
        if data:
            damaged = bytearray(data)
            at = random.randrange(len(damaged))
            damaged[at] ^= 1 << random.randrange(8)
            yield f"flipped at {at}", bytes(damaged)


@pytest.mark.parametrize("clean", [False, True])
def test_side_files_are_made_again(
    cases: list[Case], clean: bool, record_property: Callable[[str, object], None]
) -> None:
    """Whatever happens to an index, a snapshot or a checkpoint, every record is found and in place.

    A transaction index can only be made again from the log, which a clean stop does not have read;
    so it is damaged for unclean stops only.
    """
    random = Random(11)
    count = 0
    for case in [*cases, Case("indexed", small_segments(700), _fill([25] * 24))]:
        healthy = open_log(case.disk({}), case.config)
        times = [healthy.reader.offset_for_timestamp(NOW_MS + ms) for ms in range(0, 250, 7)]
        aborted = healthy.reader.aborted_transactions(0, case.end_offset)
        for name, data in case.files.items():
            if name.endswith(".log") or (clean and name.endswith(".txnindex")):
                continue
            for what, damaged in swept(list(_damages(data, random)), 5):
                filesystem = case.disk({name: damaged})
                opened = Opened(case.end_offset if clean else 0, clean_shutdown=clean)
                log = open_log(filesystem, case.config, opened=opened)
                label = f"{case.name}, {name} {what}"
                assert log.log_end_offset == case.end_offset, label
                assert [_without_epoch(b) for b in read_batches(log)] == case.batches, label
                found_times = [
                    log.reader.offset_for_timestamp(NOW_MS + ms) for ms in range(0, 250, 7)
                ]
                assert found_times == times, label
                assert log.reader.aborted_transactions(0, case.end_offset) == aborted, label
                for offset in range(case.end_offset):
                    found = log.reader.read(
                        offset, max_bytes=1, end_offset=case.end_offset, min_one_batch=True
                    )
                    assert found is not None, label
                    batch = found.file.read_at(found.length, found.position)
                    [(_, header)] = iterate_batches(memoryview(batch))
                    is_gap = not any(
                        read_header(b).base_offset <= offset < read_header(b).next_offset
                        for b in case.batches
                    )
                    assert is_gap or header.base_offset <= offset, label
                    assert offset < header.next_offset, label
                append(log, make_batch(b"new"), leader_epoch=2)
                count += 1
    record_property("side_file_cases", count)
    assert count >= drawn(250, 5), count
