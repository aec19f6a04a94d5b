"""A metadata topic whose leader is this broker, broker 2, or none; broker 2 is played in memory."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from broker.controller.images.partition_image import PartitionImage
from broker.controller.producer_ids import ProducerIdBlocks, ProducerIds
from broker.remote.cluster_metadata_log import ClusterMetadataLog
from broker.remote.metadata_leaders import MetadataLeaders
from broker.remote.metadata_topic import REMOTE_LOG_METADATA, TOPIC_CONFIGS
from broker.remote.metadata_writer import MetadataWriter
from broker.replicas.partition import Partition
from config.topic import TopicConfig
from protocol.error_codes import ErrorCode
from protocol.messages import fetch, list_offsets, produce
from protocol.records.batch import iterate_batches
from protocol.records.builder import build_batch
from protocol.records.record import iterate_records
from storage.environment.environment import Environment
from tests.fakes.broker.metadata_store import MemoryStore
from tests.fakes.broker.peers import FakePeers, Sent
from tests.fakes.environment import run_inline
from tests.unit.broker.world import NODE_ID, World

THERE = 2
OWN_EPOCH = 77
"""Broker epoch of this broker."""
PARTITIONS = 2


class Leader:
    """Broker 2's partition 0: batches, and what it answers.

    Attributes:
        codes: Errors that the next requests get, one each; "lost": appended, and no answer;
            "silent": neither.
        requests: Names of those that came.
    """

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.sequences: dict[int, dict[int, int]] = {}
        self.codes: list[ErrorCode | str] = []
        self.requests: list[str] = []
        self.start = 0
        self.silent: list[Sent] = []

    def put(self, *values: bytes) -> None:
        self.values += values

    def __call__(self, sent: Sent) -> None:
        message = sent.message
        self.requests.append(type(message).__name__.removesuffix("Request"))
        code = self.codes.pop(0) if self.codes else ErrorCode.NONE
        if code == "silent":
            self.silent.append(sent)
            return
        if isinstance(message, produce.ProduceRequest):
            base = -1 if isinstance(code, ErrorCode) and code else self._append(message)
            if code == "lost":
                sent.fail(sent=True)
                return
            assert isinstance(code, ErrorCode)
            sent.answer(_produced(code, base))
        elif isinstance(message, fetch.FetchRequest):
            assert isinstance(code, ErrorCode)
            sent.answer(self._fetched(message, code))
        else:
            assert isinstance(code, ErrorCode)
            sent.answer(self._listed(message, code))

    def _append(self, message: produce.ProduceRequest) -> int:
        assert message.acks == -1
        records = memoryview(bytes(message.topic_data[0].partition_data[0].records or b""))
        ((position, header),) = iterate_batches(records)
        seen = self.sequences.setdefault(header.producer_id, {})
        if header.base_sequence in seen:
            return seen[header.base_sequence]
        base = seen[header.base_sequence] = self.start + len(self.values)
        self.values += [
            value or b""
            for _, _, _, value, _ in iterate_records(records[position:], max_size=1 << 20)
        ]
        return base

    def _fetched(self, message: fetch.FetchRequest, code: ErrorCode) -> fetch.FetchResponse:
        offset = message.topics[0].partitions[0].fetch_offset
        end = self.start + len(self.values)
        if not self.start <= offset <= end:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        records = b""
        if not code and offset < end:
            new = [(None, value, (), 0) for value in self.values[offset - self.start :]]
            records = bytes(build_batch(new, base_offset=offset))
        data = fetch.PartitionData(
            partition_index=0, error_code=int(code), high_watermark=end, records=records
        )
        return fetch.FetchResponse(
            responses=[fetch.FetchableTopicResponse(topic=REMOTE_LOG_METADATA, partitions=[data])]
        )

    def _listed(
        self, message: list_offsets.ListOffsetsRequest, code: ErrorCode
    ) -> list_offsets.ListOffsetsResponse:
        latest = message.topics[0].partitions[0].timestamp == -1
        found = list_offsets.ListOffsetsPartitionResponse(
            error_code=int(code), offset=self.start + (len(self.values) if latest else 0)
        )
        return list_offsets.ListOffsetsResponse(
            topics=[
                list_offsets.ListOffsetsTopicResponse(name=REMOTE_LOG_METADATA, partitions=[found])
            ]
        )


def _produced(code: ErrorCode, base: int) -> produce.ProduceResponse:
    part = produce.PartitionProduceResponse(index=0, error_code=int(code), base_offset=base)
    return produce.ProduceResponse(
        responses=[
            produce.TopicProduceResponse(name=REMOTE_LOG_METADATA, partition_responses=[part])
        ]
    )


class _Controller:
    def __init__(self, world: "LeaderWorld") -> None:
        self._world = world

    @property
    def image(self) -> Any:
        return self._world.image


class LeaderWorld:
    """The log, its writer and its requests; nobody leads at first."""

    def __init__(self, directory: Path) -> None:
        self.world = World(directory)
        self.peers = FakePeers()
        self.leader = Leader()
        self.peers.on_request = self.leader
        self.epoch = 0
        self.image: Any = None
        self.lead(-1)
        self.environment = Environment(
            clock=self.world.clock,
            timer=self.world.timer,
            filesystem=self.world.filesystem,
            randomness=self.world.sessions._randomness,
            run_blocking=run_inline,
        )
        self.leaders = MetadataLeaders(self.peers, lambda: self.image, node_id=NODE_ID)
        self.producer_ids = ProducerIds(ProducerIdBlocks(MemoryStore(self.world.timer)))
        self.writer = MetadataWriter(
            self.world.replicas,
            self.leaders,
            self.producer_ids,
            node_id=NODE_ID,
            environment=self.environment,
        )
        controller: Any = _Controller(self)
        self.log = ClusterMetadataLog(
            self.world.replicas,
            controller,
            self.leaders,
            self.writer,
            node_id=NODE_ID,
            environment=self.environment,
        )

    def lead(self, node_id: int) -> tuple[Any, Any]:
        """The image before and after that broker leads all partitions; -1: nobody."""
        before, self.epoch = self.image, self.epoch + 1
        partitions = tuple(
            PartitionImage(index, node_id, self.epoch, 0, (NODE_ID, THERE), (NODE_ID, THERE))
            for index in range(PARTITIONS)
        )
        topic = SimpleNamespace(
            topic_id=UUID(int=5), partitions=partitions, overrides=dict(TOPIC_CONFIGS)
        )
        self.image = SimpleNamespace(
            topics={REMOTE_LOG_METADATA: topic},
            brokers={NODE_ID: SimpleNamespace(epoch=OWN_EPOCH), THERE: None},
            partition=lambda _topic, index: partitions[index],
        )
        return before, self.image

    def serve(self, index: int = 0) -> Partition:
        """Lead a partition here, as its only replica."""
        return self.world.add(REMOTE_LOG_METADATA, index, TopicConfig(flush_messages=1))

    async def passing(self, work: Any, *, ms: float = 100.0, rounds: int = 400) -> Any:
        """The result of work that waits on timers."""
        task = asyncio.ensure_future(work)
        for _ in range(rounds):
            await asyncio.sleep(0.001)
            if task.done():
                break
            self.world.timer.advance(ms)
        assert task.done(), "it still waits"
        return task.result()

    def close(self) -> None:
        self.log.close()
        self.world.close()
