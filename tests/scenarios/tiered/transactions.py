"""Transactions in a scenario, before there is a coordinator.

A step is data of one producer, or the marker that ends its transaction:

    History().data("a", 2).data("b", 1).abort("a").commit("b")

    offset  0     1     2     3         4
            a     a     b     abort a   commit b

On Varve the broker is stopped, the batches are appended to the partition's log offline (with the
storage's own `Log`, so producer state, transaction index and segments are what they would be), and
the broker is started. On Kafka real transactional producers do the same, one per name. Both ways
every record is a batch of its own and every step ends at the same offset.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self
from uuid import UUID

from config.topic import TopicConfig
from protocol.records.builder import build_batch
from protocol.records.control import build_end_transaction_marker
from storage.append_origin import AppendOrigin
from storage.clock import SystemClock
from storage.filesystem import LocalFilesystem
from storage.log import Log
from storage.topic_partition import TopicPartition
from tests.fakes.client import EARLIEST, LATEST
from tests.scenarios.tiered.actions import StartBroker, StopBroker, one_batch_segments
from tests.scenarios.tiered.context import Context

PRODUCER_ID = 7_000
"""Of the first name; ids of later names follow."""


class Step(NamedTuple):
    """`kind` is "data", "commit" or "abort"; `records` of data."""

    kind: str
    producer: str
    records: int = 0


class Aborted(NamedTuple):
    """An aborted transaction: offsets of its first record and of its marker."""

    producer: str
    first: int
    marker: int


@dataclass(slots=True)
class History:
    """Steps from offset 0 on; the values tell producer and offset."""

    steps: list[Step] = field(default_factory=list)

    def data(self, producer: str, count: int = 1) -> Self:
        """Records of a producer, whose transaction begins with its first since the last marker."""
        self.steps.append(Step("data", producer, count))
        return self

    def commit(self, producer: str) -> Self:
        """End it."""
        self.steps.append(Step("commit", producer))
        return self

    def abort(self, producer: str) -> Self:
        """Take it back."""
        self.steps.append(Step("abort", producer))
        return self

    def outcome(self) -> "Outcome":
        """What readers must see."""
        offset = 0
        open_since: dict[str, int] = {}
        data: list[tuple[int, str]] = []
        aborted: list[Aborted] = []
        for kind, producer, count in self.steps:
            if kind == "data":
                open_since.setdefault(producer, offset)
                data += [(offset + n, producer) for n in range(count)]
                offset += count
            else:
                first = open_since.pop(producer)
                if kind == "abort":
                    aborted.append(Aborted(producer, first, offset))
                offset += 1
        stable = min(open_since.values(), default=offset)
        committed = [
            (at, producer)
            for at, producer in data
            if at < stable
            and not any(a.producer == producer and a.first <= at < a.marker for a in aborted)
        ]
        return Outcome(offset, stable, data, committed, aborted)


class Outcome(NamedTuple):
    """`data` and `committed` are (offset, producer) of all records, and of those that count."""

    end: int
    last_stable: int
    data: list[tuple[int, str]]
    committed: list[tuple[int, str]]
    aborted: list[Aborted]


@dataclass(slots=True)
class Transactions:
    """The action: appends the steps it has not appended yet to every one of `topics`."""

    topics: tuple[str, ...]
    history: History
    batches_per_segment: int = 1
    _done: int = 0
    _producers: dict[tuple[str, str], Any] = field(default_factory=dict)
    _sequences: dict[tuple[str, str], int] = field(default_factory=dict)

    async def run(self, context: Context) -> None:
        steps, self._done = self.history.steps[self._done :], len(self.history.steps)
        if context.cluster.kind == "kafka":
            for topic in self.topics:
                for step in steps:
                    await asyncio.to_thread(self._ask, context, topic, step)
                    await self._until_written(context, topic, step)
            return
        logs = []
        for topic in self.topics:
            (found,) = (await (await context.client()).metadata(topic)).topics
            start = await context.offset(topic, 0, EARLIEST)
            end = await context.offset(topic, 0, LATEST)
            logs.append((topic, found.topic_id, start, end))
        await context.close()
        await StopBroker(0).run(context)
        for topic, topic_id, start, end in logs:
            await asyncio.to_thread(self._append, context, topic, topic_id, start, end, steps)
        await StartBroker(0).run(context)

    # -- Kafka -----------------------------------------------------------------------------------

    def _ask(self, context: Context, topic: str, step: Step) -> None:
        from confluent_kafka import Producer

        key = (topic, step.producer)
        producer, is_open = self._producers.get(key, (None, False))
        if producer is None:
            producer = Producer(
                {
                    "bootstrap.servers": context.cluster.nodes[0].address,
                    "transactional.id": f"{topic}-{step.producer}",
                    "linger.ms": 0,
                }
            )
            producer.init_transactions(30)
        if step.kind == "data":
            if not is_open:
                producer.begin_transaction()
            for _ in range(step.records):
                producer.produce(topic, key=step.producer, value=step.producer, partition=0)
                assert producer.flush(30) == 0
        elif step.kind == "commit":
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
        self._producers[key] = (producer, step.kind == "data")

    async def _until_written(self, context: Context, topic: str, step: Step) -> None:
        """A marker is answered for before it is written."""
        key = (topic, "")
        self._sequences[key] = self._sequences.get(key, 0) + (step.records or 1)

        async def written() -> None:
            end = await context.offset(topic, 0, LATEST)
            assert end == self._sequences[key], f"{topic} ends at {end}"

        await context.eventually(written)

    # -- Varve -----------------------------------------------------------------------------------

    def _append(
        self, context: Context, topic: str, topic_id: UUID, start: int, end: int, steps: list[Step]
    ) -> None:
        directory = context.cluster.partition_directory(0, topic, 0)
        assert directory is not None
        tiered = context.topics[topic].tiered
        values = one_batch_segments(self.batches_per_segment, tiered=tiered)
        clock = SystemClock()
        log = Log.open(
            str(directory),
            TopicPartition(topic, 0),
            topic_id=topic_id,
            config=TopicConfig(
                remote_storage_enable=tiered,
                index_interval_bytes=int(values["index.interval.bytes"]),
                segment_index_bytes=int(values["segment.index.bytes"]),
                retention_ms=-1,
            ),
            filesystem=LocalFilesystem(),
            clock=clock,
            recovery_point=end,
            log_start_offset=start,
            high_watermark=end,
            clean_shutdown=True,
        )
        epoch = log.leader_epochs.latest_epoch or 0
        names = sorted({step.producer for step in self.history.steps})
        # Every batch a later time, so that each gets an entry in the time index.
        first_ms = int(time.time() * 1000)
        for kind, producer, count in steps:
            producer_id = PRODUCER_ID + names.index(producer)
            key = (topic, producer)
            now_ms = first_ms + log.log_end_offset
            if kind != "data":
                marker = build_end_transaction_marker(
                    producer_id=producer_id,
                    producer_epoch=0,
                    commit=kind == "commit",
                    coordinator_epoch=0,
                    timestamp_ms=now_ms,
                )
                self._write(log, marker, epoch, now_ms)
                continue
            for _ in range(count):
                now_ms = first_ms + log.log_end_offset
                sequence = self._sequences.get(key, 0)
                self._sequences[key] = sequence + 1
                text = producer.encode()
                batch = build_batch(
                    [(text, text, (), now_ms)],
                    producer_id=producer_id,
                    producer_epoch=0,
                    base_sequence=sequence,
                    transactional=True,
                )
                self._write(log, batch, epoch, now_ms)
        log.update_high_watermark(log.log_end_offset)
        log.close()

    @staticmethod
    def _write(log: Log, batch: bytearray, epoch: int, now_ms: int) -> None:
        log.append_as_leader(
            memoryview(batch), leader_epoch=epoch, now_ms=now_ms, origin=AppendOrigin.COORDINATOR
        )
