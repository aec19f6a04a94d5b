"""A reader of what brokers have in remote storage alone; see `tests.checker.worker`."""

import asyncio
from typing import Final

from tests.checker.clients.client_process import WRITABLE, Worker, name
from tests.checker.clients.raw import CommittedReader, RetryPolicy

FETCH_BYTES: Final = (512, 2 << 10, 8 << 10, 64 << 10)
"""A part of a segment, or several."""

TOPIC_CONFIGS: Final = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": str(8 << 10),
    "local.retention.bytes": "1",
}
"""Of topics whose records are in remote storage alone some seconds after they were written."""

BROKER_PROPERTIES: Final = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "500",
    "log.retention.check.interval.ms": "500",
}
"""And `rsm.config.storage.root`, a directory of all brokers."""


async def history(worker: Worker) -> None:
    """One key after the other from its beginning, up to what its leader has on its own disk."""
    draw, recorder = worker.random, worker.recorder
    reader = CommittedReader(worker.options.address, RetryPolicy(worker.answer_s, 600.0, 0.05))
    while not worker.stopping:
        worker.step()
        key = draw.choice(WRITABLE)
        end = await reader.local_start(key)
        offset = 0
        recorder.note("assign", keys=[name(key)])
        while offset < end and not worker.stopping:
            worker.step()
            fetched = await reader.fetch(key, offset, max_bytes=draw.choice(FETCH_BYTES))
            found = [record for record in fetched.records if record[0] < end]
            if found:
                recorder.note("poll", polls={name(key): found})
            offset = fetched.next_offset
        await asyncio.sleep(draw.expovariate(worker.options.rate_per_s))
    reader.close()
