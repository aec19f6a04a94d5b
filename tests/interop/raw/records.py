"""Scripts about records: what a log refuses and says of it, what a Fetch may ask for."""

import time
from typing import Any

from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import script

TIMESTAMP_MS = 1_700_000_000_000


def produce(d: Dialogue, what: str, topic: str, records: bytes, version: int = 9) -> Any:
    """Produce to partition 0."""
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=records)]
            )
        ],
    )
    return d.ask(what, request, version)


@script
def fetches_of_negative_epochs(d: Dialogue) -> None:
    """As if they named none."""
    topic = d.create_topic()
    produce(d, "one", topic, bytes(build_batch([(None, b"v", (), TIMESTAMP_MS)])))
    for version in (9, 12, 16, 18):
        for epoch in (0, -1, -2, -(2**31)):
            for field in ("current_leader_epoch", "last_fetched_epoch"):
                if field == "last_fetched_epoch" and version < 12:
                    continue
                partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
                setattr(partition, field, epoch)
                name: dict[str, Any] = (
                    {"topic": topic} if version < 13 else {"topic_id": d.topic_id(topic)}
                )
                asked = FetchRequest(topics=[FetchTopic(partitions=[partition], **name)])
                d.ask(f"v{version} {field} {epoch}", asked, version)


@script
def records_out_of_time(d: Dialogue) -> None:
    """Each is named, and the log keeps none of the batch."""
    hour_ms = 3_600_000
    settings = {
        "message.timestamp.before.max.ms": hour_ms,
        "message.timestamp.after.max.ms": hour_ms,
    }
    topic = d.create_topic(configs=settings)
    now_ms = int(time.time() * 1000)
    old, new = now_ms - 2 * hour_ms, now_ms + 2 * hour_ms
    for what, times in (
        ("in time", [now_ms, -1]),
        ("too old", [old]),
        ("too new", [new]),
        ("some", [old, now_ms, new, now_ms]),
    ):
        for codec in (0, 1):
            records = bytes(build_batch([(None, b"v", (), at) for at in times], codec=codec))
            for version in (7, 9):
                produce(d, f"{what}, codec {codec}, v{version}", topic, records, version)


@script
def fetches_that_may_have_no_more(d: Dialogue) -> None:
    """They are answered at once, however few whole batches their limits have room for."""
    topic = d.create_topic(partitions=2)
    for _ in range(4):
        produce(d, "a batch", topic, bytes(build_batch([(None, bytes(300), (), TIMESTAMP_MS)])))
    for what, partition_max, least, most in (
        ("as much as a partition may have", 1000, 1000, 1 << 20),
        ("as much as all may have", 1 << 20, 1000, 1000),
        ("more than all may have", 1 << 20, 1 << 20, 1000),
        ("more than a partition may have", 1000, 1001, 1 << 20),
        ("all there is", 1 << 20, 1400, 1 << 20),
        ("more than there is", 1 << 20, 2000, 1 << 20),
    ):
        partitions = [
            FetchPartition(partition=index, partition_max_bytes=partition_max) for index in (0, 1)
        ]
        asked = FetchRequest(
            max_wait_ms=2_000,
            min_bytes=least,
            max_bytes=most,
            topics=[FetchTopic(topic=topic, partitions=partitions)],
        )
        begin = time.monotonic()
        answer = d.ask_quietly(asked, 12)
        d.note(f"{what}, waited", time.monotonic() - begin > 1.0)
        sizes = [len(one.records or b"") for of in answer.responses for one in of.partitions]
        d.note(f"{what}, any records", [size > 0 for size in sizes])


@script
def ends_of_leader_epochs(d: Dialogue) -> None:
    """Of a log with records, of an empty one and of none, by consumers and by replicas."""
    topic = d.create_topic(partitions=2)
    produce(d, "one", topic, bytes(build_batch([(None, b"v", (), TIMESTAMP_MS)])))
    for version, replica in ((2, -2), (3, -1), (4, -2), (4, -1), (4, 5)):
        for current in (-2, -1, 0, 1):
            for epoch in (-(2**31), -2, -1, 0, 1, 2**31 - 1):
                partitions = [
                    OffsetForLeaderPartition(
                        partition=index, current_leader_epoch=current, leader_epoch=epoch
                    )
                    for index in (0, 1, 5)
                ]
                request = OffsetForLeaderEpochRequest(
                    replica_id=replica,
                    topics=[
                        OffsetForLeaderTopic(topic=name, partitions=partitions)
                        for name in (topic, f"{topic}-none")
                    ],
                )
                d.ask(f"v{version} by {replica}, in {current}, of {epoch}", request, version)
