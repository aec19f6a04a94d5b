"""A producer and consumers that work while the bucket is in trouble.

Record number n of a topic has the value `<n> <filling>`, and n is its offset: what is read tells by
itself whether it is the right record in the right place.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence

from protocol.error_codes import ErrorCode
from protocol.records.builder import build_batch
from protocol.records.record import Record
from tests.fakes.network.client import Client, produce_request, read_of

VALUE_BYTES = 16_000
RECORDS_PER_BATCH = 4
FETCH_BYTES = 1 << 20


def value_of(number: int) -> bytes:
    """The value of the record with this offset."""
    return (b"%010d " % number) * (VALUE_BYTES // 11)


def wrong(records: Sequence[Record], offset: int) -> list[str]:
    """What is not right in records that should begin at `offset` and be dense."""
    found = []
    for expected, record in enumerate(records, offset):
        if record.offset != expected:
            found.append(f"offset {record.offset} where {expected} was due")
        elif record.value != value_of(record.offset):
            found.append(f"another value at {record.offset}: {(record.value or b'')[:24]!r}")
        if len(found) > 3:
            break
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """Of seconds, as ms."""
    ordered = sorted(values)
    return 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


class Producer:
    """Writes batches one after the other; `latencies` in seconds, with when they began.

    Attributes:
        next: The next record's number: all before it are acknowledged.
        problems: What the broker did wrong.
    """

    def __init__(self, client: Client, topic: str, first: int = 0) -> None:
        self._client = client
        self._topic = topic
        self.next = first
        self.stopping = False
        self.latencies: list[tuple[float, float]] = []
        self.problems: list[str] = []

    async def write(self, records: int = RECORDS_PER_BATCH) -> None:
        """One batch."""
        now_ms = time.time_ns() // 1_000_000
        numbers = range(self.next, self.next + records)
        batch = build_batch([(None, value_of(number), (), now_ms) for number in numbers])
        began = time.monotonic()
        answer = await self._client.call(produce_request(self._topic, 0, batch))
        self.latencies.append((began, time.monotonic() - began))
        response = answer.responses[0].partition_responses[0]
        if response.error_code or response.base_offset != self.next:
            self.problems.append(f"produce at {self.next}: {response}")
        self.next += records

    async def fill(self, size: int) -> None:
        """So many bytes, as fast as they are taken."""
        end = self.next + size // VALUE_BYTES + 1
        while self.next < end:
            await self.write()

    async def run(self, batches_per_second: float) -> None:
        """Until `stopping` is set."""
        while not self.stopping:
            began = time.monotonic()
            await self.write()
            await asyncio.sleep(max(0.0, 1 / batches_per_second - (time.monotonic() - began)))

    def since(self, began: float, ended: float) -> list[float]:
        """Latencies of what was begun in between."""
        return [seconds for when, seconds in self.latencies if began <= when < ended]


class Consumer:
    """Reads one topic in order and compares; asks again after every answer, as a client does.

    Attributes:
        next: Offset of the next record.
        problems: Wrong records.
        errors: Error codes it was answered, which it goes on after.
        longest_s: The longest time one fetch took.
        fetches: Answers.
    """

    def __init__(self, client: Client, topic: str, offset: int = 0) -> None:
        self._client = client
        self._topic = topic
        self.next = offset
        self.problems: list[str] = []
        self.errors: Counter[str] = Counter()
        self.longest_s = 0.0
        self.fetches = 0

    async def read(self) -> None:
        """One fetch."""
        began = time.monotonic()
        answer = await asyncio.wait_for(
            self._client.start_fetch(
                self._topic, self.next, max_wait_ms=200, max_bytes=FETCH_BYTES
            ),
            45,
        )
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        self.fetches += 1
        read = read_of(answer)
        if read.error is not ErrorCode.NONE:
            self.errors[read.error.name] += 1
            await asyncio.sleep(0.05)
            return
        records = [record for record in read.records if record.offset >= self.next]
        self.problems += wrong(records, self.next)
        if records:
            self.next = records[-1].offset + 1

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self.read()

    async def read_to(self, end: int, timeout_s: float) -> bool:
        """Whether all before `end` was read in time."""
        deadline = time.monotonic() + timeout_s
        while self.next < end and time.monotonic() < deadline:
            await self.read()
        return self.next >= end
