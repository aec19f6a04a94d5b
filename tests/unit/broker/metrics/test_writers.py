"""An operator sees which directory is slow, and what waits for it."""

import asyncio

from broker.metrics.writers import WriterMetrics
from broker.runtime.directory_writer import DirectoryWriters
from storage.log.directory_pace import PROOF_WRITES
from tests.fakes.clock import ManualClock


async def test_each_directory_is_told_of() -> None:
    writers = DirectoryWriters(asyncio.get_running_loop(), ManualClock(), ("/a", "/b"))
    quick, slow = writers.of("/a"), writers.of("/b")
    assert quick is not None
    assert slow is not None
    for _ in range(PROOF_WRITES):
        quick.pace.wrote_behind(1, 10)
    slow.pace.queue(500)
    slow.pace.queue(-100)
    slow.pace.wrote_behind(100, 10)
    found = {
        (sample.name, sample.labels["directory"]): sample.value
        async for family in WriterMetrics(writers).collect()
        for sample in family.samples
    }
    assert found["varve_directory_writes_are_slow", "/a"] == 0
    assert found["varve_directory_writes_are_slow", "/b"] == 1
    assert found["varve_directory_writer_queued_bytes", "/b"] == 400
    assert found["varve_directory_writer_queued_bytes_peak", "/b"] == 500
    assert found["varve_directory_late_writes_total", "/b"] == 1
