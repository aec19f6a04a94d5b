"""Writers and a reader of the long run: numbered records, what was acknowledged, what was seen.

Two writers beside each other: librdkafka's idempotent producer (`bench.cluster.numbered`), and one
that speaks the protocol itself, a batch in flight for each partition, repeated until it is
acknowledged. Values begin with their number; the numbers of a partition ascend.
"""

import asyncio
import threading
import time
from array import array
from collections.abc import Sequence
from typing import Final

from typing_extensions import override

from bench.cluster.numbered import number_of
from protocol.api_keys import ApiKey
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from tests.checker.clients.raw import (
    Caller,
    CommittedReader,
    GaveUpError,
    RefusedError,
    RetryPolicy,
)

BATCH: Final = 20
"""Records of a raw batch."""

PRODUCE_VERSION: Final = 11
DELIVERY_S: Final = 300.0
STOP_S: Final = 30.0
NOT_SEEN: Final = -1


class RawWriter(threading.Thread):
    """An idempotent producer of our own, on a loop of its own.

    Attributes:
        acknowledged: For each partition, numbers and their offsets.
        failures: Errors that are no retriable ones; its partition stops there.
    """

    def __init__(
        self, bootstrap: str, topic: str, partitions: Sequence[int], rate_per_s: float
    ) -> None:
        super().__init__(name="raw-writer", daemon=True)
        self.topic = topic
        self.acknowledged: dict[int, dict[int, int]] = {index: {} for index in partitions}
        self.failures: list[str] = []
        self._addresses = bootstrap
        self._interval_s = BATCH * len(partitions) / rate_per_s
        self._stopping = threading.Event()

    @property
    def acknowledged_count(self) -> int:
        """Records acknowledged so far."""
        return sum(map(len, self.acknowledged.values()))

    def finish(self) -> None:
        """Stop; what is in flight is waited for.

        Raises:
            AssertionError: A batch was refused, or never answered.
        """
        self._stopping.set()
        self.join(2 * DELIVERY_S)
        assert not self.is_alive(), "a raw batch was never answered"
        assert not self.failures, self.failures[:5]

    def stop(self) -> None:
        """Stop, whatever is in flight."""
        self._stopping.set()

    @override
    def run(self) -> None:
        asyncio.run(self._write())

    async def _write(self) -> None:
        await asyncio.gather(*(self._write_partition(index) for index in self.acknowledged))

    async def _write_partition(self, index: int) -> None:
        """One producer id for each partition, so that each has a sequence and a pace of its own."""
        policy = RetryPolicy(answer_s=3.0, total_s=DELIVERY_S, pause_s=0.05)
        caller = Caller(self._addresses, f"raw-{self.topic}-{index}", policy)
        loop = asyncio.get_running_loop()
        try:
            given = await caller.until_answered(
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0),
                ApiKey.INIT_PRODUCER_ID,
                4,
            )
            sequence, due = 0, loop.time()
            while not self._stopping.is_set():
                offset = await self._send(caller, index, given, sequence)
                for number in range(BATCH):
                    self.acknowledged[index][sequence + number] = offset + number
                sequence += BATCH
                due = max(due + self._interval_s, loop.time() - 1.0)
                await asyncio.sleep(max(0.0, due - loop.time()))
        except (RefusedError, GaveUpError) as error:
            self.failures.append(f"{self.topic}-{index}: {error}")
        finally:
            caller.close()

    async def _send(
        self, caller: Caller, index: int, given: InitProducerIdResponse, sequence: int
    ) -> int:
        now_ms = int(time.time() * 1000)
        batch = build_batch(
            [
                (None, (b"%d " % number).ljust(100, b"."), (), now_ms)
                for number in range(sequence, sequence + BATCH)
            ],
            producer_id=given.producer_id,
            producer_epoch=given.producer_epoch,
            base_sequence=sequence,
        )
        data = [PartitionProduceData(index=index, records=batch)]
        request = ProduceRequest(
            acks=-1,
            timeout_ms=5_000,
            topic_data=[TopicProduceData(name=self.topic, partition_data=data)],
        )
        answer = await caller.until_answered(request, ApiKey.PRODUCE, PRODUCE_VERSION)
        offset: int = answer.responses[0].partition_responses[0].base_offset
        return offset


class Reader(threading.Thread):
    """Reads partitions as they grow; remembers which number it saw at which offset.

    By the protocol: librdkafka's consumer may never come back from its `close` when brokers have
    died often (2.16: `rd_kafka_toppar_forget_leader` waits for a lock that its own thread has).

    Attributes:
        changed: Offsets at which it has seen two numbers, and errors that are no retriable ones.
    """

    def __init__(self, bootstrap: str, partitions: Sequence[tuple[str, int]]) -> None:
        super().__init__(name="reader", daemon=True)
        self.changed: list[str] = []
        self._addresses = bootstrap
        self._seen = {one: array("q") for one in partitions}
        self._stopping = threading.Event()

    @property
    def count(self) -> int:
        """Records read so far."""
        return sum(map(len, self._seen.values()))

    def stop(self) -> None:
        """Read no more."""
        self._stopping.set()
        if self.is_alive():
            self.join(STOP_S)

    @override
    def run(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        tasks = [asyncio.ensure_future(self._follow(*one)) for one in self._seen]
        await asyncio.to_thread(self._stopping.wait)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, topic: str, index: int) -> None:
        policy = RetryPolicy(answer_s=3.0, total_s=DELIVERY_S, pause_s=0.05)
        reader = CommittedReader(self._addresses, policy, f"reader-{topic}-{index}")
        offset = 0
        try:
            while True:
                fetched = await reader.fetch((topic, index), offset, max_wait_ms=500)
                for at, value in fetched.records:
                    self._note(topic, index, at, number_of(value.encode()))
                offset = fetched.next_offset
        except (RefusedError, GaveUpError) as error:
            self.changed.append(f"{topic}-{index}@{offset}: {error}")
        finally:
            reader.close()

    def _note(self, topic: str, index: int, offset: int, number: int) -> None:
        seen = self._seen[topic, index]
        if offset < len(seen):
            if seen[offset] != number:
                self.changed.append(f"{topic}-{index}@{offset}: {seen[offset]}, then {number}")
            return
        seen.extend([NOT_SEEN] * (offset - len(seen)))
        seen.append(number)

    def judge(self, topic: str, index: int, numbers: Sequence[int]) -> list[str]:
        """What it saw of one partition, beside what is there at the end."""
        seen = self._seen[topic, index]
        return [
            f"{topic}-{index}@{offset}: read {number}, now {_at(numbers, offset)}"
            for offset, number in enumerate(seen)
            if _at(numbers, offset) != number
        ]


def _at(numbers: Sequence[int], offset: int) -> int | None:
    return numbers[offset] if offset < len(numbers) else None
