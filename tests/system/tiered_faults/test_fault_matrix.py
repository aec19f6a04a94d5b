"""Nine kinds of trouble with a bucket, for each of what a broker does with one.

A cell: a healthy broker with history in the bucket; then, while one class of requests is broken, a
producer writes, one consumer reads the tail and another all history into an empty cache, records
are deleted and garbage is collected. Then the bucket heals. Nobody may ever see a wrong record, the
producer may not wait, and what was held up is made up for within two task intervals. How
long things took is printed; what fails a cell is what cannot be the doing of a busy machine.
"""

import asyncio
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.fakes.s3.memory_server import CLASSES, Fault, MemoryS3
from tests.system.conftest import until
from tests.system.tiered_faults.cluster import (
    CALL_TIMEOUT_MS,
    INTERVAL_MS,
    READ_TIMEOUT_MS,
    SEGMENT_BYTES,
    TIERED,
    Connect,
    admin,
    clients_of,
    disagreement,
    partition,
    s3_node,
    until_copied,
)
from tests.system.tiered_faults.workload import Consumer, Producer, percentile

FAULT_S = 2.0
COLUMNS = (*CLASSES, "multipart")
"""`multipart` breaks the class `copy`, for a topic whose segments are uploaded in parts."""

CELLS = [(fault, column) for fault in Fault for column in COLUMNS]
DIAGONAL = [(Fault.HANG, "copy"), (Fault.WRONG, "fetch")]
"""What has most to get wrong; each takes six seconds."""


@dataclass(slots=True)
class Cell:
    """What came of one."""

    name: str
    spoilt: int = 0
    records: int = 0
    problems: list[str] = field(default_factory=list)
    healthy_p99_ms: float = 0.0
    faulty_p99_ms: float = 0.0
    slow_produce_ms: float = 0.0
    longest_produce_ms: float = 0.0
    longest_call_ms: float = 0.0
    caught_up_s: float = 0.0
    orphans: int = 0
    missing: int = 0

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.spoilt} requests spoilt, {self.records} records read, "
            f"{len(self.problems)} wrong, produce p99 {self.faulty_p99_ms:.1f} ms (healthy "
            f"{self.healthy_p99_ms:.1f}), longest {self.longest_produce_ms:.0f} ms, longest call "
            f"{self.longest_call_ms:.0f} ms, caught up after {self.caught_up_s:.2f} s, "
            f"{self.orphans} orphans, {self.missing} missing"
        )


async def cell(directory: Path, fault: Fault, column: str) -> Cell:
    """Run one; raises AssertionError when something does not come to its end."""
    seen = Cell(f"{fault.name} x {column}")
    with MemoryS3() as s3:
        s3.late_s = 1.0
        node = s3_node(directory, s3)
        await asyncio.to_thread(node.start)
        try:
            async with clients_of(node) as connect:
                await _run(node.admin_address, connect, s3, fault, column, seen)
            assert await asyncio.to_thread(node.stop, 60) == 0
        except (AssertionError, OSError, TimeoutError) as error:
            error.add_note(f"exit status {await asyncio.to_thread(node.stop, 60)}")
            error.add_note(node.log_tail(60))
            raise
        finally:
            await asyncio.to_thread(node.kill)
        if "Traceback" in node.log_path.read_text():
            seen.problems.append("a traceback in the log: " + node.log_tail(40))
    return seen


async def _run(
    address: str, connect: Connect, s3: MemoryS3, fault: Fault, column: str, seen: Cell
) -> None:
    admin_client, producer_client = await connect("admin"), await connect("producer")
    tail_client, history_client = await connect("tail"), await connect("history")
    producers = {}
    for topic in ("t", "gone"):
        await admin_client.create_topic(topic, 1, **TIERED)
        producers[topic] = Producer(producer_client, topic)
    await producers["gone"].fill(3 * SEGMENT_BYTES)
    producer = producers["t"]
    await producer.fill(4 * SEGMENT_BYTES)
    for topic in producers:
        await until_copied(address, topic)
    if column == "multipart":
        await admin_client.alter_topic("t", segment_bytes=6 * SEGMENT_BYTES)

    first = producer.next
    tail = Consumer(tail_client, "t", first)
    history = Consumer(history_client, "t")
    healthy_began = time.monotonic()
    rate = 120 if column == "multipart" else 40
    working = [asyncio.create_task(producer.run(rate)), asyncio.create_task(tail.run())]
    await asyncio.sleep(FAULT_S / 2)
    kind = "copy" if column == "multipart" else column
    s3.break_down(fault, kind)
    faulty_began = time.monotonic()
    working.append(asyncio.create_task(history.run()))
    await admin_client.delete_records("gone", producers["gone"].next * 2 // 3)
    collecting = asyncio.create_task(admin(address, "POST", "/tier/gc"))
    while time.monotonic() - faulty_began < FAULT_S or not s3.spoilt[kind]:
        assert time.monotonic() - faulty_began < 30 * FAULT_S, f"nothing of {kind} came by"
        assert not any(task.done() for task in working), [str(task) for task in working]
        await asyncio.sleep(0.02)
    producer.stopping = True
    await working.pop(0)
    ended = time.monotonic()
    s3.heal()
    seen.spoilt = s3.spoilt[kind]

    async def is_deleted() -> bool:
        first_left = (await partition(address, "gone"))["remote"][0]
        return bool(first_left["end"] > producers["gone"].next * 2 // 3)

    await until_copied(address, "t")
    await until(is_deleted)
    seen.caught_up_s = time.monotonic() - ended
    status, _ = await collecting
    assert status in (200, 503)
    end = await admin_client.offset("t")
    deadline = time.monotonic() + 60
    while min(tail.next, history.next) < end:
        assert time.monotonic() < deadline, (tail.next, history.next, end, history.errors)
        assert not any(task.done() for task in working), [str(task) for task in working]
        await asyncio.sleep(0.02)
    for task in working:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    status, report = await admin(address, "POST", "/tier/gc")
    assert status == 200, report
    orphans, missing = await disagreement(address, producers, s3.objects)
    if missing or orphans or report["missingSegments"] or s3.uploads:
        seen.problems.append(f"{orphans=} {missing=} {report=} {s3.uploads=}")
    seen.orphans, seen.missing = len(orphans), len(missing)
    seen.records = tail.next - first + history.next
    seen.problems += [*producer.problems, *tail.problems, *history.problems]
    healthy, faulty = (
        producer.since(healthy_began, faulty_began),
        producer.since(faulty_began, ended),
    )
    seen.healthy_p99_ms, seen.faulty_p99_ms = percentile(healthy, 0.99), percentile(faulty, 0.99)
    seen.slow_produce_ms = percentile(faulty, 0.9)
    seen.longest_produce_ms = percentile(faulty, 1)
    seen.longest_call_ms = 1000 * max(
        one.seconds or time.monotonic() - one.began_s for one in s3.requests
    )


def check(seen: Cell) -> None:
    """What must hold in every cell."""
    assert not seen.problems, seen
    assert seen.spoilt, seen
    assert (seen.orphans, seen.missing) == (0, 0), seen
    # Two intervals, and what a starved machine adds; a task that is given up stays behind for ever.
    assert seen.caught_up_s <= 2 * INTERVAL_MS / 1000 + 30, seen
    # A call's own time, and the same; a bucket that hangs does so for ever.
    assert seen.longest_call_ms <= CALL_TIMEOUT_MS + 30_000, seen
    # A machine's hiccup is one write of many in a row; who waits for calls does so often.
    assert seen.slow_produce_ms < READ_TIMEOUT_MS, seen


@pytest.mark.parametrize(("fault", "column"), DIAGONAL, ids=lambda one: str(one))
async def test_diagonal(tmp_path: Path, fault: Fault, column: str) -> None:
    """One cell of each kind of trouble."""
    check(await cell(tmp_path, fault, column))


@pytest.mark.slow
async def test_matrix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them; prints a line for each, and one for all."""
    cells = []
    for index, (fault, column) in enumerate(CELLS):
        cells.append(await cell(tmp_path / str(index), fault, column))
        with capsys.disabled():
            sys.stdout.write(f"{cells[-1]}\n")
    with capsys.disabled():
        sys.stdout.write(
            f"fault matrix: {len(cells)} cells, {sum(one.spoilt for one in cells)} requests "
            f"spoilt, {sum(one.records for one in cells)} records read, "
            f"{sum(len(one.problems) for one in cells)} problems, "
            f"{sum(one.orphans for one in cells)} orphans, {sum(one.missing for one in cells)} "
            f"missing, caught up after at most {max(one.caught_up_s for one in cells):.2f} s, "
            f"longest produce {max(one.longest_produce_ms for one in cells):.0f} ms\n"
        )
    for seen in cells:
        check(seen)
